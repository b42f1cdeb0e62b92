/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/tally.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

enum {
	/*
	 * Sets, as powers of two: few for a small recording, then sufficient for most (8 MB), then
	 * the maximum (32 MB). The number grows when more than one lookup in 1 << EVICTION_BITS of
	 * a window evicts a slot.
	 */
	BITS_FIRST = 10,
	BITS_USUAL = 17,
	BITS_MAX = 19,
	EVICTION_BITS = 5,
	EVICTION_WINDOW = 1 << 14,
};

/* A range of addresses of one function in a 64-byte line, with its counts. */
struct slot {
	uint64_t start;
	uint32_t context;
	uint32_t code; /* struct vp_named_range */
	uint32_t count;
	uint8_t size; /* 0: the slot is free */
} __attribute__((packed));

/* Slots per hash: as many as fit into a cache line of the processor. */
enum { SLOTS = 3 };
struct vp_tally_set {
	struct slot slots[SLOTS];
} __attribute__((aligned(VP_TALLY_SET)));
_Static_assert(sizeof(struct vp_tally_set) == VP_TALLY_SET, "one line of the cache");

static void count(struct vp_tally *tally, uint32_t code, uint64_t weight)
{
	if (!weight)
		return;
	struct vp_resolved sample = {.weight = weight,
				     .frame = vp_code_frame(code),
				     .route = vp_code_route(code),
				     .named = vp_code_is_named(code),
				     .guest = vp_code_is_guest(code)};
	vp_totals_take(tally->totals, &sample, 1, true);
}

static void drain(struct vp_tally *tally)
{
	for (size_t i = 0; i < 1ULL << tally->bits; i++)
		for (size_t j = 0; j < SLOTS; j++) {
			struct slot *slot = &tally->sets[i].slots[j];
			count(tally, slot->code, slot->count);
			slot->count = 0;
		}
}

/* False: out of memory; the tally is unchanged. */
static bool make_sets(struct vp_tally *tally, unsigned bits)
{
	struct vp_tally_set *sets = vp_alloc_large(sizeof(*sets) << bits);

	if (!sets)
		return false;
	if (tally->sets)
		drain(tally);
	free(tally->sets);
	tally->sets = sets;
	tally->bits = bits;
	tally->shift = 64 - bits;
	return true;
}

void vp_tally_init(struct vp_tally *tally, struct vp_resolver *resolver, struct vp_totals *totals)
{
	*tally = (struct vp_tally){.resolver = resolver, .totals = totals};
	if (!make_sets(tally, BITS_FIRST))
		vp_alloc_failed();
}

void vp_tally_deinit(struct vp_tally *tally)
{
	free(tally->sets);
	tally->sets = NULL;
}

/* Looks up the name of an address without a slot; it gets the first one. */
static VP_NOINLINE void tally_miss(struct vp_tally *tally, const struct vp_tally_sample *sample)
{
	struct slot *slots = sample->set->slots, *last = &slots[SLOTS - 1];
	uint64_t line = sample->ip >> VP_TALLY_LINE_BITS << VP_TALLY_LINE_BITS;
	struct vp_named_range range =
	    vp_resolver_range(tally->resolver, sample->context, sample->ip, sample->time);

	if (!range.size) {
		count(tally, range.code, sample->weight);
		return;
	}
	uint64_t start = range.start > line ? range.start : line;
	uint64_t in_line = (1 << VP_TALLY_LINE_BITS) - (start - line);
	uint64_t left = range.size - (start - range.start);
	if (last->size) {
		tally->evictions++;
		count(tally, last->code, last->count);
	}
	memmove(&slots[1], &slots[0], (SLOTS - 1) * sizeof(*slots));
	slots[0] = (struct slot){.start = start,
				 .context = sample->context,
				 .code = range.code,
				 .count = sample->weight,
				 .size = (uint8_t)(left < in_line ? left : in_line)};
}

void vp_tally_add_heavy(struct vp_tally *tally, const struct vp_tally_sample *sample,
			uint64_t weight)
{
	struct vp_named_range range =
	    vp_resolver_range(tally->resolver, sample->context, sample->ip, sample->time);

	count(tally, range.code, weight);
}

/* The counter would overflow: moves the count to the totals. */
static VP_NOINLINE void tally_spill(struct vp_tally *tally, const struct vp_tally_sample *sample,
				    const struct slot *slot)
{
	count(tally, slot->code, sample->weight);
}

/* Must not be called while samples are waiting: the sets may be replaced. */
static void tally_adapt(struct vp_tally *tally)
{
	bool few = tally->evictions > tally->lookups >> EVICTION_BITS;
	unsigned bits = tally->bits < BITS_USUAL ? BITS_USUAL : BITS_MAX;

	tally->lookups = tally->evictions = 0;
	/* out of memory: continue with the present size */
	if (few && tally->bits < BITS_MAX)
		(void)make_sets(tally, bits);
}

void vp_tally_flush(struct vp_tally *tally)
{
	const struct vp_tally_sample *end = &tally->waiting[tally->n_waiting];

	for (const struct vp_tally_sample *sample = tally->waiting; sample < end; sample++) {
		struct slot *slots = sample->set->slots;
		unsigned hit = 0;
		/* Without branches: the matching slot is not predictable. */
		for (unsigned j = 0; j < SLOTS; j++)
			hit |= (unsigned)((slots[j].context == sample->context) &
					  (sample->ip - slots[j].start < slots[j].size))
			       << j;
		if (__builtin_expect(!hit, 0)) {
			tally_miss(tally, sample);
			continue;
		}
		struct slot *slot = &slots[__builtin_ctz(hit)];
		if (__builtin_expect(sample->weight > UINT32_MAX - slot->count, 0))
			tally_spill(tally, sample, slot);
		else
			slot->count += sample->weight;
	}
	tally->lookups += tally->n_waiting;
	tally->n_waiting = 0;
	if (tally->lookups >= EVICTION_WINDOW)
		tally_adapt(tally);
}

void vp_tally_close(struct vp_tally *tally)
{
	vp_tally_flush(tally);
	drain(tally);
}
