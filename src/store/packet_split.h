/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splits records of a packet so that they compress best: their times apart from the rest, as
 * differences. Nearly all bytes of a compressed event are its time; between the others' bytes, it
 * leaves few repetitions for the compressor.
 *
 * The split form: each record without its time; then the lowest bytes of all differences, each to
 * the previous record (the first one's to the packet's start), then their next bytes, and so on.
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

/* Splits the records into the splitter's bytes; `begin` is the packet's. Anything but whole records
 * is not split. */
struct vp_split vp_records_split(struct vp_splitter *splitter, const char *records, size_t size,
				 uint64_t begin);

/* Bytes of what was split of `size` bytes of records; SIZE_MAX: none are split so. */
size_t vp_split_size(struct vp_split split, size_t size);
/* Makes `size` bytes of records of the vp_split_size() bytes at `from`; false: malformed. */
bool vp_records_join(struct vp_split split, const char *from, uint64_t begin, char *records,
		     size_t size);

#endif
