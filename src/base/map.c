/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/map.h"

#include "base/alloc.h"

void vp_map_deinit(struct vp_map *map)
{
	free(map->slots);
	*map = (struct vp_map){0};
}

static struct vp_map_slot *map_slot_of(const struct vp_map *map, uint64_t key)
{
	uint32_t i = (uint32_t)vp_hash64(key) & map->mask;

	while (map->slots[i].used && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

uint32_t *vp_map_find(const struct vp_map *map, uint64_t key)
{
	if (!map->slots)
		return NULL;
	struct vp_map_slot *slot = map_slot_of(map, key);
	return slot->used ? &slot->value : NULL;
}

static void map_grow(struct vp_map *map)
{
	struct vp_map bigger = {.count = map->count};

	bigger.mask = map->slots ? 2 * map->mask + 1 : 63;
	bigger.slots = vp_alloc((bigger.mask + 1ULL) * sizeof(*bigger.slots));
	for (uint64_t i = 0; map->slots && i <= map->mask; i++)
		if (map->slots[i].used)
			*map_slot_of(&bigger, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = bigger;
}

uint32_t *vp_map_insert(struct vp_map *map, uint64_t key, uint32_t value, bool *inserted)
{
	if (!map->slots || 4ULL * (map->count + 1) > 3ULL * (map->mask + 1ULL))
		map_grow(map);

	struct vp_map_slot *slot = map_slot_of(map, key);
	*inserted = !slot->used;
	if (!slot->used) {
		*slot = (struct vp_map_slot){.key = key, .value = value, .used = 1};
		map->count++;
	}
	return &slot->value;
}
