/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording's intervals by subject over time, in bins of equal length, for pictures: as many
 * numbers as a picture can show, however many intervals there are.
 */
#ifndef VP_ANALYZE_MODEL_INTERVAL_BINS_H
#define VP_ANALYZE_MODEL_INTERVAL_BINS_H

#include "analyze/model/intervals.h"
#include "base/intern.h"
#include "base/vec.h"

struct vp_interval_bins_subject {
	uint32_t name;      /* in `subjects` */
	uint64_t intervals; /* in all */
	size_t first;       /* of its bins.count_per_subject * (events + 1) numbers in `values` */
};

struct vp_interval_bins {
	uint64_t begin, width; /* of the first bin, of each; ns */
	uint32_t count;        /* of bins */
	size_t events;
	struct vp_intern texts;
	VP_VEC(struct vp_interval_bins_subject) subjects; /* most intervals first */
	/* Bin after bin of a subject: what each event counted in the intervals that end there
	 * (vp_interval_estimate(); NaN if it was never live), then their length in ns. */
	VP_VEC(double) values;
	size_t left_out; /* subjects for which there was no room */
};

/* At most `most` numbers in `values`. */
void vp_interval_bins_make(const struct vp_interval_recording *rec, size_t most,
			   struct vp_interval_bins *ret);
void vp_interval_bins_deinit(struct vp_interval_bins *bins);

#endif
