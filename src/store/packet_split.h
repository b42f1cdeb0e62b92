/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splits records before compression into times, as differences, and the rest. Most of the
 * information of an event is in its time; between the other bytes, times would break up
 * repetitions.
 *
 * Format: all records without their times; then the lowest bytes of all time differences (to the
 * previous record; for the first one, to the packet's start), then the second-lowest bytes, and so
 * on.
 */
#ifndef VP_STORE_PACKET_SPLIT_H
#define VP_STORE_PACKET_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/records.h"
#include "store/packet.h"

/* Parameters of a split. */
struct vp_split {
	uint32_t count; /* number of records; 0: not split */
	uint32_t bytes; /* bytes per difference, 0 to 8 */
} __attribute__((packed));

struct vp_splitter {
	uint64_t differences[VP_PACKET_MAX / sizeof(struct vp_record_header)];
	char bytes[VP_PACKET_MAX];
};

/* Splits the records into the splitter's buffer; `begin`: start time of the packet. Data other than
 * whole records is not split. */
struct vp_split vp_records_split(struct vp_splitter *splitter, const char *records, size_t size,
				 uint64_t begin);

/* Size after splitting `size` bytes of records; SIZE_MAX: invalid parameters. */
size_t vp_split_size(struct vp_split split, size_t size);
/* Restores `size` bytes of records from the vp_split_size() bytes at `from`; false: malformed. */
bool vp_records_join(struct vp_split split, const char *from, uint64_t begin, char *records,
		     size_t size);

#endif
