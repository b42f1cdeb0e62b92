/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records without their times, as a few templates: samples of a packet differ in time and address,
 * and are otherwise one of few. A template is a record whose time and address word are 0.
 *
 * The address word is the lower half of the 8 bytes at offset 24, or of the last 8 bytes of a
 * record of 24 bytes. Its upper half belongs to the template.
 *
 * Format: the templates without their times; a byte per record, the index of its template; the
 * lowest bytes of all address words, then the second-lowest bytes, and so on.
 */
#ifndef VP_STORE_PACKET_TEMPLATES_H
#define VP_STORE_PACKET_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "base/macros.h"
#include "schema/event_class.h"
#include "schema/records.h"
#include "schema/schema.h"

enum {
	VP_TEMPLATES_MAX = 256,
	VP_TEMPLATE_ROOM = 64, /* maximum size of a record that has one: of the largest sample */
	VP_ADDRESS_BYTES = sizeof(uint32_t)
};

struct vp_template {
	uint16_t size;    /* of the record; 0: none */
	uint16_t address; /* offset of the address word; that size: it has none */
};

struct vp_templates {
	char records[VP_TEMPLATES_MAX][VP_TEMPLATE_ROOM]; /* followed by zeros */
	struct vp_template about[VP_TEMPLATES_MAX];
	uint32_t count;
	uint16_t places[4 * VP_TEMPLATES_MAX]; /* hash table when splitting: index + 1; 0: empty */
};

/* Size of a record without its time, of which `left` bytes exist; 0: not a record. */
static VP_INLINE size_t vp_record_rest_size(const char *rest, size_t left)
{
	const size_t time = sizeof(uint64_t);
	struct {
		uint16_t id, size;
	} begin = {.size = 0};

	if (left < sizeof(begin.id))
		return 0;
	memcpy(&begin, rest, left < sizeof(begin) ? left : sizeof(begin));
	bool defined = begin.id >= VP_ID_DEFINED;
	size_t size = defined ? begin.size : vp_record_size(begin.id);
	size_t least = defined ? sizeof(struct vp_defined_record) : sizeof(struct vp_record_header);
	return size >= least && size - time <= left ? size - time : 0;
}

/* Removes all. */
void vp_templates_clear(struct vp_templates *templates);
/* The record's template, which is added if new, and its address word (0: it has none). False: the
 * record is too large, or there are too many templates. */
bool vp_templates_find(struct vp_templates *templates, const char *record, size_t size,
		       uint8_t *template, uint32_t *address);
/* Writes the templates without their times; returns the end. */
char *vp_templates_put(const struct vp_templates *templates, char *to);
/* Reads `count` templates from at most `size` bytes. Returns their size; 0: malformed. */
size_t vp_templates_read(struct vp_templates *templates, uint32_t count, const char *from,
			 size_t size);

#endif
