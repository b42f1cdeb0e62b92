/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/key_set.h"

#include <string.h>

#include <xxhash.h>

#include "base/seed.h"

void vp_key_set_deinit(struct vp_key_set *set)
{
	vp_buffer_deinit(&set->keys);
	vp_map_deinit(&set->first);
	vp_vec_deinit(&set->next);
	set->count = 0;
}

const void *vp_key_set_key(const struct vp_key_set *set, uint32_t number)
{
	return set->keys.bytes + number * set->key_size;
}

uint32_t vp_key_set_add(struct vp_key_set *set, const void *key, bool *inserted)
{
	uint64_t hash = XXH3_64bits_withSeed(key, set->key_size, vp_hash_seed());
	uint32_t *first = vp_map_insert(&set->first, hash, set->count, inserted);
	uint32_t last = *first;

	if (!*inserted) {
		for (uint32_t at = *first; at != UINT32_MAX; at = set->next.at[at]) {
			if (!memcmp(vp_key_set_key(set, at), key, set->key_size))
				return at;
			last = at;
		}
		set->next.at[last] = set->count;
		*inserted = true;
	}
	vp_buffer_append(&set->keys, key, set->key_size);
	vp_vec_push(&set->next, UINT32_MAX);
	return set->count++;
}
