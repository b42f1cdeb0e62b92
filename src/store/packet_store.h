/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of all streams in a memory buffer of fixed size; the oldest are overwritten. */
#ifndef VP_STORE_PACKET_STORE_H
#define VP_STORE_PACKET_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "store/packet.h"

struct vp_packet_store;

/* Records of a stream without the packet's header. */
struct vp_stored_packet {
	struct vp_stream_id stream;
	uint64_t n, first, last; /* number of records, times of the first and the last one */
	uint64_t lost; /* records of the stream lost before this packet, since the start */
	size_t size;
	const char *bytes;
};

/* The packet is valid during the call. */
typedef void (*vp_packet_fn)(void *context, const struct vp_stored_packet *packet);

/* Minimum size of the buffer: any packet must fit. */
enum { VP_PACKET_STORE_MIN = 4 * VP_PACKET_MAX };

/* Allocates `bytes` bytes and touches them all; `overwritten` is called for each packet before it
 * is overwritten. Errors: too small, or no memory. */
struct vp_error *vp_packet_store_new(size_t bytes, vp_packet_fn overwritten, void *context,
				     struct vp_packet_store **ret) VP_MUST_CHECK;
void vp_packet_store_free(struct vp_packet_store *store);
/* Stores a copy of a packet of at most VP_PACKET_MAX bytes. */
void vp_packet_store_put(struct vp_packet_store *store, const struct vp_stored_packet *packet);
/* Calls the function for all packets, oldest first. */
void vp_packet_store_each(const struct vp_packet_store *store, vp_packet_fn take, void *context);

#endif
