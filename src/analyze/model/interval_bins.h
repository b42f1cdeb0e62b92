/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intervals by subject over time, in a limited number of bins of equal length, for charts. */
#ifndef VP_ANALYZE_MODEL_INTERVAL_BINS_H
#define VP_ANALYZE_MODEL_INTERVAL_BINS_H

#include "analyze/model/intervals.h"
#include "base/intern.h"
#include "base/vec.h"

struct vp_interval_bins_subject {
	uint32_t name;      /* index in `subjects` */
	uint64_t intervals; /* total number of intervals */
	size_t first; /* index in `values` of its bins.count_per_subject * (events + 1) numbers */
};

struct vp_interval_bins {
	uint64_t begin, width; /* start of the first bin, and width of each; ns */
	uint32_t count;        /* number of bins */
	size_t events;
	struct vp_intern texts;
	VP_VEC(struct vp_interval_bins_subject)
	subjects; /* sorted by number of intervals, descending */
	/* Per subject, bin by bin: count of each event in the intervals that end there
	 * (vp_interval_estimate(); NaN if never live), then their length in ns. */
	VP_VEC(double) values;
	size_t left_out; /* subjects that did not fit */
};

/* `most`: maximum number of `values`. */
void vp_interval_bins_make(const struct vp_interval_recording *rec, size_t most,
			   struct vp_interval_bins *ret);
void vp_interval_bins_deinit(struct vp_interval_bins *bins);

#endif
