/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/account_slots.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/macros.h"
#include "bpf/account_abi.h"

#include "account.skel.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"

static void clear_row(const struct bpf_map *map, uint32_t slot, uint32_t columns)
{
	VP_AUTO_FREE void *nothing = vp_alloc(bpf_map__value_size(map));

	for (uint32_t i = 0; i < columns; i++) {
		uint32_t index = slot * columns + i;
		bpf_map_update_elem(bpf_map__fd(map), &index, nothing, BPF_ANY);
	}
}

/* Removes its thieves. Entries in which it is the thief of other vCPUs stay, because they
 * continue. */
static void remove_thieves(const struct bpf_map *map, const struct vp_map *released)
{
	VP_VEC(struct vp_thief_key) found = {0};
	struct vp_thief_key key, *before = NULL;
	uint32_t most = bpf_map__max_entries(map);

	/* Concurrent insertions may restart the iteration. */
	for (uint32_t i = 0; i < most && !bpf_map_get_next_key(bpf_map__fd(map), before, &key);
	     i++, before = &key)
		if (vp_map_find(released, key.vcpu))
			vp_vec_push(&found, key);
	vp_vec_each (&found, one)
		bpf_map_delete_elem(bpf_map__fd(map), one);
	vp_vec_deinit(&found);
}

void vp_account_slots_release(const struct account_bpf *programs, const uint32_t *slots,
			      size_t count)
{
	struct vp_map released = {0};
	bool inserted;

	for (size_t i = 0; i < count; i++)
		vp_map_insert(&released, slots[i], 0, &inserted);
	if (count)
		remove_thieves(programs->maps.thieves, &released);
	for (size_t i = 0; i < count; i++) {
		uint32_t slot = slots[i] + 1;
		clear_row(programs->maps.other_thieves, slots[i], VP_STEAL_STATES);
		clear_row(programs->maps.exits, slots[i], VP_EXIT_REASONS);
		clear_row(programs->maps.sites, slots[i], VP_EXIT_SITES);
		clear_row(programs->maps.vcpus, slots[i], 1);
		bpf_map_update_elem(bpf_map__fd(programs->maps.slots), NULL, &slot, BPF_ANY);
	}
	vp_map_deinit(&released);
}
