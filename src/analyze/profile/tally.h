/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts samples by context and address: each 64-byte line of code with samples in a context has
 * its own counts, next to the names found for it. Sums per frame are computed later. */
#ifndef VP_ANALYZE_PROFILE_TALLY_H
#define VP_ANALYZE_PROFILE_TALLY_H

#include "analyze/profile/resolve.h"
#include "analyze/profile/totals.h"
#include "base/macros.h"

enum { VP_TALLY_WAITING = 32, VP_TALLY_LINE_BITS = 6 };

struct vp_tally_set;

/* A sample waiting for its slots to be fetched into the CPU cache. */
struct vp_tally_sample {
	struct vp_tally_set *set;
	uint64_t ip, time;
	uint32_t context;
	uint32_t weight;
};

struct vp_tally {
	struct vp_resolver *resolver;
	struct vp_totals *totals;
	struct vp_tally_set *sets; /* by hash of context and code line */
	unsigned bits, shift;      /* log2 of their number; hash >> shift is an index */
	/* Number of samples and evictions since the last check of the table's size. */
	uint32_t lookups, evictions;
	uint32_t n_waiting;
	struct vp_tally_sample waiting[VP_TALLY_WAITING];
};

/* `resolver` and `totals` must outlive it. */
void vp_tally_init(struct vp_tally *tally, struct vp_resolver *resolver, struct vp_totals *totals);
void vp_tally_deinit(struct vp_tally *tally);
/* Counts the waiting samples. */
void vp_tally_flush(struct vp_tally *tally);
/* Passes all counts to the totals. */
void vp_tally_close(struct vp_tally *tally);

/* Size of a set in bytes. */
enum { VP_TALLY_SET = 64 };

/* Counts a sample too heavy for a slot. */
void vp_tally_add_heavy(struct vp_tally *tally, const struct vp_tally_sample *sample,
			uint64_t weight);
/* Counts a sample in that context. */
static inline void vp_tally_add(struct vp_tally *tally, uint32_t context, uint64_t ip,
				uint64_t time, uint64_t weight)
{
	uint64_t line = (ip >> VP_TALLY_LINE_BITS) + ((uint64_t)context << 40);
	uint64_t hash = line * 0x9e3779b97f4a7c15ULL;
	struct vp_tally_set *set =
	    (struct vp_tally_set *)((char *)tally->sets + (hash >> tally->shift) * VP_TALLY_SET);

	__builtin_prefetch(set, 1);
	struct vp_tally_sample *sample = &tally->waiting[tally->n_waiting];
	*sample = (struct vp_tally_sample){
	    .set = set, .ip = ip, .time = time, .weight = (uint32_t)weight, .context = context};
	if (VP_RARELY(weight > UINT32_MAX)) {
		vp_tally_add_heavy(tally, sample, weight);
		return;
	}
	tally->n_waiting++;
	if (tally->n_waiting == VP_TALLY_WAITING)
		vp_tally_flush(tally);
}

#endif
