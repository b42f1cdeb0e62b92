/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splits records before compression into times, as differences, and the rest. Most of the
 * information of an event is in its time; between the other bytes, times would break up
 * repetitions.
 *
 * Format: all records without their times, or as templates (packet_templates.h); then the lowest
 * bytes of all time differences (to the previous record; for the first one, to the packet's start),
 * then the second-lowest bytes, and so on.
 */
#ifndef VP_STORE_PACKET_SPLIT_H
#define VP_STORE_PACKET_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/records.h"
#include "store/packet.h"
#include "store/packet_templates.h"

/* Parameters of a split. */
struct vp_split {
	uint32_t count; /* number of records; 0: not split */
	uint8_t bytes;  /* bytes per difference, 0 to 8 */
	uint8_t reserved;
	uint16_t templates; /* number of templates; 0: records without them */
} __attribute__((packed));

enum { VP_SPLIT_RECORDS = VP_PACKET_MAX / sizeof(struct vp_record_header) };

struct vp_splitter {
	uint64_t differences[VP_SPLIT_RECORDS];
	uint32_t addresses[VP_SPLIT_RECORDS];
	uint8_t indices[VP_SPLIT_RECORDS];
	struct vp_templates templates;
	char bytes[VP_PACKET_MAX];
	size_t size; /* of `bytes` */
};

/* Splits the records into the splitter's buffer; `begin`: start time of the packet. Data other than
 * whole records is not split. */
struct vp_split vp_records_split(struct vp_splitter *splitter, const char *records, size_t size,
				 uint64_t begin);

/* Restores `size` bytes of records from `split_size` bytes at `from`; false: malformed. */
bool vp_records_join(struct vp_split split, const char *from, size_t split_size, uint64_t begin,
		     char *records, size_t size);

#endif
