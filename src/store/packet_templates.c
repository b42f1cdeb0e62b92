/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_templates.h"

#include <string.h>

#include "base/macros.h"
#include "schema/records.h"
#include "schema/schema.h"

enum { TIME = sizeof(uint64_t), WORD = sizeof(uint64_t), USUAL_WORD = 24 };

_Static_assert(sizeof(struct vp_guest_sample) <= VP_TEMPLATE_ROOM, "samples have templates");

/* Id and size of a record are before all address words. */
static struct vp_template template_of(size_t size)
{
	struct vp_template template = {.size = (uint16_t)size, .address = (uint16_t)size};

	if (size >= USUAL_WORD + WORD)
		template.address = USUAL_WORD;
	else if (size == USUAL_WORD)
		template.address = USUAL_WORD - WORD;
	return template;
}

void vp_templates_clear(struct vp_templates *templates)
{
	templates->count = 0;
	memset(templates->places, 0, sizeof(templates->places));
}

static uint64_t hash_of(const char record[VP_TEMPLATE_ROOM])
{
	uint64_t words[VP_TEMPLATE_ROOM / WORD], hash = 0;

	memcpy(words, record, VP_TEMPLATE_ROOM);
	for (size_t i = 0; i < VP_ARRAY_SIZE(words); i++)
		hash = (hash ^ words[i] ^ (hash >> 29)) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 32);
}

/* Where the template is in the hash table, or would be. */
static uint16_t *place_of(struct vp_templates *templates, const char record[VP_TEMPLATE_ROOM])
{
	uint64_t hash = hash_of(record);

	for (;; hash++) {
		uint16_t *place = &templates->places[hash % VP_ARRAY_SIZE(templates->places)];
		if (!*place || !memcmp(templates->records[*place - 1], record, VP_TEMPLATE_ROOM))
			return place;
	}
}

bool vp_templates_find(struct vp_templates *templates, const char *record, size_t size,
		       uint8_t *template, uint32_t *address)
{
	struct vp_template about = template_of(size);
	char copy[VP_TEMPLATE_ROOM] = {0};

	*address = 0;
	if (size > VP_TEMPLATE_ROOM)
		return false;
	memcpy(copy + TIME, record + TIME, size - TIME);
	if (about.address < size) {
		memcpy(address, copy + about.address, VP_ADDRESS_BYTES);
		memset(copy + about.address, 0, VP_ADDRESS_BYTES);
	}
	uint16_t *place = place_of(templates, copy);
	if (!*place) {
		if (templates->count == VP_TEMPLATES_MAX)
			return false;
		memcpy(templates->records[templates->count], copy, VP_TEMPLATE_ROOM);
		templates->about[templates->count] = about;
		*place = (uint16_t)++templates->count;
	}
	*template = (uint8_t)(*place - 1);
	return true;
}

char *vp_templates_put(const struct vp_templates *templates, char *to)
{
	for (uint32_t i = 0; i < templates->count; i++) {
		size_t rest = templates->about[i].size - TIME;
		memcpy(to, templates->records[i] + TIME, rest);
		to += rest;
	}
	return to;
}

size_t vp_templates_read(struct vp_templates *templates, uint32_t count, const char *from,
			 size_t size)
{
	size_t at = 0;

	if (count > VP_TEMPLATES_MAX)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		size_t rest = vp_record_rest_size(from + at, size - at);
		if (!rest || rest > VP_TEMPLATE_ROOM - TIME)
			return 0;
		memset(templates->records[i], 0, VP_TEMPLATE_ROOM);
		memcpy(templates->records[i] + TIME, from + at, rest);
		templates->about[i] = template_of(rest + TIME);
		at += rest;
	}
	templates->count = count;
	return at;
}
