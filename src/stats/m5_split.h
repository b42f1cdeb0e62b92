/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the split of a node of an M5' tree. */
#ifndef VP_STATS_M5_SPLIT_H
#define VP_STATS_M5_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vp_split {
	size_t input;
	double cut;      /* rows with values <= cut go left */
	double impurity; /* reduction of impurity by the split */
};

/* Buffers for the largest node. */
struct vp_split_work {
	double *impurity; /* an estimate */
};

/* For nodes of up to `n` rows. */
void vp_split_work_init(struct vp_split_work *work, size_t n);
void vp_split_work_deinit(struct vp_split_work *work);
/* Finds the best cut of one input: `n` ascending values, with `y` in the same order; false:
 * none. */
bool vp_split_find(const double *x, const double *y, size_t n, struct vp_split_work *work,
		   struct vp_split *best);

#endif
