/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/intern.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/seed.h"

void vp_intern_deinit(struct vp_intern *intern)
{
	vp_vec_each (&intern->strings, text)
		free(*text);
	vp_vec_deinit(&intern->strings);
	free(intern->slots);
	intern->slots = NULL;
	intern->mask = 0;
}

static uint32_t *intern_slot_of(const struct vp_intern *intern, const char *text, size_t size)
{
	uint32_t i = (uint32_t)XXH3_64bits_withSeed(text, size, vp_hash_seed()) & intern->mask;

	for (; intern->slots[i]; i = (i + 1) & intern->mask) {
		const char *known = intern->strings.at[intern->slots[i] - 1];
		if (!strncmp(known, text, size) && !known[size])
			break;
	}
	return &intern->slots[i];
}

static void intern_grow(struct vp_intern *intern)
{
	uint32_t mask = intern->slots ? 2 * intern->mask + 1 : 63;

	free(intern->slots);
	intern->slots = vp_alloc((mask + 1ULL) * sizeof(*intern->slots));
	intern->mask = mask;
	for (uint32_t id = 0; id < intern->strings.count; id++) {
		const char *text = intern->strings.at[id];
		*intern_slot_of(intern, text, strlen(text)) = id + 1;
	}
}

uint32_t vp_intern_add(struct vp_intern *intern, const char *text, size_t size)
{
	if (!intern->slots || 4 * (intern->strings.count + 1) > 3 * (intern->mask + 1ULL))
		intern_grow(intern);

	size = strnlen(text, size);
	uint32_t *slot = intern_slot_of(intern, text, size);
	if (!*slot) {
		vp_vec_push(&intern->strings, vp_strndup(text, size));
		*slot = (uint32_t)intern->strings.count;
	}
	return *slot - 1;
}

uint32_t vp_intern_string(struct vp_intern *intern, const char *text)
{
	return vp_intern_add(intern, text, strlen(text));
}

bool vp_intern_has(const struct vp_intern *intern, const char *text)
{
	return intern->slots && *intern_slot_of(intern, text, strlen(text));
}

const char *vp_intern_text(const struct vp_intern *intern, uint32_t id)
{
	return intern->strings.at[id];
}
