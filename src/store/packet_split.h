/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of a packet as they compress best: their times apart from the rest, as differences. Of
 * what a compressed event takes, nearly all is its time; and where that lies between the others'
 * bytes, little there is long enough to be found again.
 *
 * Split, records are: each one without its time; then the lowest bytes of all differences, each to
 * the record before (the first one's to the packet's begin), then their next bytes, and so on.
 */
#ifndef VP_STORE_PACKET_SPLIT_H
#define VP_STORE_PACKET_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/records.h"
#include "store/packet.h"

/* How records are split. */
struct vp_split {
	uint32_t count; /* of records; 0: they are not split */
	uint32_t bytes; /* of each difference, 0 to 8 */
} __attribute__((packed));

struct vp_splitter {
	uint64_t differences[VP_PACKET_MAX / sizeof(struct vp_record_header)];
	char bytes[VP_PACKET_MAX];
};

/* Puts the records, split, into the splitter's bytes; `begin` is the packet's. What is not records
 * from its first to its last byte is not split. */
struct vp_split vp_records_split(struct vp_splitter *splitter, const char *records, size_t size,
				 uint64_t begin);

/* Bytes of what was split of `size` bytes of records; SIZE_MAX: none are split so. */
size_t vp_split_size(struct vp_split split, size_t size);
/* Makes `size` bytes of records of the vp_split_size() bytes at `from`; false: they are none. */
bool vp_records_join(struct vp_split split, const char *from, uint64_t begin, char *records,
		     size_t size);

#endif
