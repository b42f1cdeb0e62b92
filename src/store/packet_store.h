/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets in memory, of all streams together in bounded room: the oldest make way for new ones. */
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
	uint64_t n, first, last; /* records, and the times of the first and the last of them */
	uint64_t lost;           /* records of the stream lost before, since the start */
	size_t size;
	const char *bytes;
};

/* May look at the packet until it returns. */
typedef void (*vp_packet_fn)(void *context, const struct vp_stored_packet *packet);

/* Less is refused: no packet must be larger than the room. */
enum { VP_PACKET_STORE_MIN = 4 * VP_PACKET_MAX };

/* Allocates `bytes` bytes, all of it in memory from now on; `overwritten` is called for each packet
 * before it is overwritten. Errors: too little, no memory. */
struct vp_error *vp_packet_store_new(size_t bytes, vp_packet_fn overwritten, void *context,
				     struct vp_packet_store **ret) VP_MUST_CHECK;
void vp_packet_store_free(struct vp_packet_store *store);
/* Keeps a copy, of at most VP_PACKET_MAX bytes. */
void vp_packet_store_put(struct vp_packet_store *store, const struct vp_stored_packet *packet);
/* Shows all packets, oldest first. */
void vp_packet_store_each(const struct vp_packet_store *store, vp_packet_fn take, void *context);

#endif
