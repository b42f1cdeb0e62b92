/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hash map from a 64-bit key to a 32-bit value (usually an index into a vector). Open addressing; a
 * lookup usually touches one cache line. */
#ifndef VP_BASE_MAP_H
#define VP_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/seed.h"

struct vp_map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct vp_map {
	struct vp_map_slot *slots;
	uint32_t count;
	uint32_t mask; /* number of slots - 1; 0 while empty */
};

/* Frees the slots; the map is empty then and can be used again. */
void vp_map_deinit(struct vp_map *map);
/* Address of the value of `key`, or NULL. Valid until the next insertion. */
uint32_t *vp_map_find(const struct vp_map *map, uint64_t key);
/* Address of the value of `key`; inserted with `value` if missing (then *inserted is true). */
uint32_t *vp_map_insert(struct vp_map *map, uint64_t key, uint32_t value, bool *inserted);

/* Mixes 64 bits so that each input bit affects all output bits (MurmurHash3 finalizer), seeded per
 * process. */
static inline uint64_t vp_hash64(uint64_t x)
{
	x ^= vp_hash_seed();
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ (x >> 33);
}

#endif
