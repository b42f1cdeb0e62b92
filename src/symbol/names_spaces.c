/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds processes: CR3 and pids over time. */
#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/maps.h"
#include "symbol/names.h"
#include "symbol/names_private.h"

#include <stdlib.h>

#include "base/search.h"

/* The recorded start of a space is slightly late; its recorded end, on Linux 6.16 and later,
 * precedes the release of its memory. */
#define LATE_NS 20000000ULL

void vp_names_set_clock(struct vp_names *names, const struct vp_names_clock *clock)
{
	names->clock = *clock;
}

/* Limit of 146 years: a guest may report any value, and larger ones would overflow. */
static __int128 bounded(__int128 ns)
{
	const __int128 most = (__int128)1 << 62;

	return ns > most ? most : ns < -most ? -most : ns;
}

uint64_t vp_names_machine_time(const struct vp_names *names, uint64_t host_ns)
{
	const struct vp_names_clock *clock = &names->clock;

	if (!clock->instants)
		return host_ns;
	__int128 since = bounded((__int128)host_ns - clock->host_ns[0]);
	if (clock->instants > 1 && clock->host_ns[1] != clock->host_ns[0])
		since = since * bounded((__int128)clock->machine_ns[1] - clock->machine_ns[0]) /
			bounded((__int128)clock->host_ns[1] - clock->host_ns[0]);
	__int128 time = clock->machine_ns[0] + since;
	return time < 0 ? 0 : time > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)time;
}

/* The page table's physical address: without PCID or flags (bits 0-11), bit 63 (keep the TLB)
 * and the LAM bits (61, 62). With page-table isolation, bit 12 selects the user or kernel table
 * of a pair. */
static uint64_t root_of_cr3(const struct vp_maps *maps, uint64_t cr3)
{
	uint64_t root = cr3 & 0x000ffffffffff000ULL;

	return maps->kpti ? root & ~0x1000ULL : root;
}

struct keyed_space {
	uint64_t key, start_ns;
	uint32_t space;
};

static int by_key_and_start(const void *left, const void *right)
{
	const struct keyed_space *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->space < b->space ? -1 : 1;
}

static uint64_t names_spaces_key_of(const struct vp_names *names, uint32_t space, bool by_root)
{
	const struct vp_maps_space *life = &names->maps.spaces.at[space];

	return by_root ? root_of_cr3(&names->maps, life->root) : life->tgid;
}

static void index_by_key(struct vp_names *names, bool by_root, struct vp_names_by_key *index)
{
	size_t count = names->maps.spaces.count;
	struct keyed_space *keyed = vp_realloc_array(NULL, count, sizeof(*keyed));
	size_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = names_spaces_key_of(names, i, by_root);
		if (key)
			keyed[used++] =
			    (struct keyed_space){key, names->maps.spaces.at[i].start_ns, i};
	}
	qsort(keyed, used, sizeof(*keyed), by_key_and_start);
	for (uint32_t i = 0; i < used; i++) {
		bool inserted;
		uint32_t *lives = vp_map_insert(&index->lives_of_key, keyed[i].key,
						(uint32_t)index->lives.count, &inserted);
		if (inserted)
			vp_vec_push(&index->lives, ((struct vp_names_lives){.first = i}));
		index->lives.at[*lives].count++;
		vp_vec_push(&index->order, keyed[i].space);
	}
	free(keyed);
}

void vp_names_index_spaces(struct vp_names *names)
{
	index_by_key(names, true, &names->by_root);
	index_by_key(names, false, &names->by_pid);
}

/* Distance of `time` from the space's lifetime; 0: inside. */
static uint64_t names_spaces_distance(const struct vp_maps_space *life, uint64_t time)
{
	if (time < life->start_ns)
		return life->start_ns - time;
	if (life->end_ns && time >= life->end_ns)
		return time - life->end_ns + 1;
	return 0;
}

static uint32_t find_life(const struct vp_names *names, const struct vp_names_by_key *index,
			  uint64_t key, uint64_t host_ns)
{
	uint32_t *which = key ? vp_map_find(&index->lives_of_key, key) : NULL;
	if (!which)
		return VP_NAMES_NO_SPACE;
	const struct vp_names_lives *lives = &index->lives.at[*which];
	const uint32_t *order = index->order.at + lives->first;
	uint64_t time = vp_names_machine_time(names, host_ns);
	size_t later = VP_FIRST(i, lives->count, names->maps.spaces.at[order[i]].start_ns > time);

	uint64_t best; /* distance */
	if (__builtin_add_overflow(names->clock.error_ns, LATE_NS, &best))
		best = UINT64_MAX;
	uint32_t found = VP_NAMES_NO_SPACE;
	for (size_t i = later ? later - 1 : 0; i <= later && i < lives->count; i++) {
		uint64_t far = names_spaces_distance(&names->maps.spaces.at[order[i]], time);
		if (far <= best && (found == VP_NAMES_NO_SPACE || far < best)) {
			best = far;
			found = order[i];
		}
	}
	return found;
}

uint32_t vp_names_space_by_root(const struct vp_names *names, uint64_t cr3, uint64_t host_ns)
{
	uint32_t found = find_life(names, &names->by_root, root_of_cr3(&names->maps, cr3), host_ns);

	if (found != VP_NAMES_NO_SPACE || !names->second)
		return found;
	return vp_names_from_fallback(names, vp_names_space_by_root(names->second, cr3, host_ns));
}

uint32_t vp_names_space_by_pid(const struct vp_names *names, uint32_t pid, uint64_t host_ns)
{
	uint32_t found = find_life(names, &names->by_pid, pid, host_ns);

	if (found != VP_NAMES_NO_SPACE || !names->second)
		return found;
	return vp_names_from_fallback(names, vp_names_space_by_pid(names->second, pid, host_ns));
}
