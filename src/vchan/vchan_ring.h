/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two rings of bytes of a vchan, in pages that a guest shares with dom0: the layout and rules
 * of Xen's public/io/libxenvchan.h. The guest is the server. The peer may write anything into these
 * pages at any time: each of its indices is read once and checked, and this side's own are kept in
 * memory of its own.
 */
#ifndef VP_VCHAN_VCHAN_RING_H
#define VP_VCHAN_VCHAN_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum {
	VP_VCHAN_PAGE = 4096,
	/* Rings of these orders lie in the page itself, at an offset of that size. */
	VP_VCHAN_SMALL_ORDER = 10,
	VP_VCHAN_LARGE_ORDER = 11,
	VP_VCHAN_PAGE_ORDER = 12,
	VP_VCHAN_MAX_ORDER = 20
};

struct vp_vchan_half {
	uint32_t consumed, produced; /* bytes, modulo 2^32 */
};

struct vp_vchan_page {
	struct vp_vchan_half left, right; /* to the server, to the client */
	uint16_t left_order, right_order;
	uint8_t client_live, server_live; /* enum vp_vchan_live */
	uint8_t client_notify,
	    server_notify; /* enum vp_vchan_notify: what the other side asks for */
	uint32_t grants[]; /* pages of the left ring, then of the right */
};

/* Whether a side is connected. For Xen's own library, all values but 0 are. */
enum vp_vchan_live {
	VP_VCHAN_GONE = 0,
	VP_VCHAN_LIVE = 1,
	VP_VCHAN_AWAITED = 2, /* a client that has not connected so far */
	VP_VCHAN_HALF = 3     /* it sends nothing more */
};

/* Events that a side asks for. */
enum vp_vchan_notify {
	VP_VCHAN_WRITTEN = 1, /* there is something to read */
	VP_VCHAN_READ = 2     /* there is space to write */
};

/* One side's view. */
struct vp_vchan_ring {
	struct vp_vchan_page *page;
	bool is_server;
	char *in, *out;             /* the rings */
	uint32_t in_size, out_size; /* powers of two */
	uint32_t consumed, produced;
};

/* A piece of a ring that lies together; it may be empty. */
struct vp_vchan_piece {
	char *at;
	uint32_t size;
};

/* Whether the page's orders are possible. Each is read once, into *left and *right. */
bool vp_vchan_orders_read(const struct vp_vchan_page *page, uint16_t *left,
			  uint16_t *right) VP_MUST_CHECK;
/* Pages of a ring of that order in addition to the page of both. */
uint32_t vp_vchan_pages_of(uint16_t order);
/* A ring of that order: in the page, or at `pages`. */
char *vp_vchan_bytes_of(struct vp_vchan_page *page, char *pages, uint16_t order);

/* The bytes to read, or the room to write. False: the peer's index is impossible. */
bool vp_vchan_readable(const struct vp_vchan_ring *ring, struct vp_vchan_piece *ret) VP_MUST_CHECK;
bool vp_vchan_writable(const struct vp_vchan_ring *ring, struct vp_vchan_piece *ret) VP_MUST_CHECK;
/* Publishes that so much of that was read or written. True: the peer asked for an event. */
bool vp_vchan_consume(struct vp_vchan_ring *ring, uint32_t size) VP_MUST_CHECK;
bool vp_vchan_produce(struct vp_vchan_ring *ring, uint32_t size) VP_MUST_CHECK;
/* Whether the peer has read everything that was written. */
bool vp_vchan_is_read(const struct vp_vchan_ring *ring) VP_MUST_CHECK;
/* Asks for events (bits of enum vp_vchan_notify). Look again after that: more may have come before.
 */
void vp_vchan_request(const struct vp_vchan_ring *ring, uint8_t events);
/* The peer's state, and this side's. */
uint8_t vp_vchan_peer(const struct vp_vchan_ring *ring);
void vp_vchan_declare(const struct vp_vchan_ring *ring, enum vp_vchan_live live);

#endif
