/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Set of distinct keys of a fixed size, numbered from 0 in order of insertion. */
#ifndef VP_ANALYZE_COMMON_KEY_SET_H
#define VP_ANALYZE_COMMON_KEY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/vec.h"

struct vp_key_set {
	size_t key_size; /* set by the owner before first use; keys must not have padding */
	uint32_t count;
	struct vp_buffer keys;
	struct vp_map first;   /* hash → first key with it */
	VP_VEC(uint32_t) next; /* per key: next one with the same hash, or UINT32_MAX */
};

void vp_key_set_deinit(struct vp_key_set *set);
/* The key's number; *inserted: it is new. */
uint32_t vp_key_set_add(struct vp_key_set *set, const void *key, bool *inserted);
/* Valid until the next insertion. */
const void *vp_key_set_key(const struct vp_key_set *set, uint32_t number);

#endif
