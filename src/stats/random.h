/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generator of java.util.Random (formulas in its documentation), for shuffling rows like
 * WEKA. */
#ifndef VP_STATS_RANDOM_H
#define VP_STATS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct vp_random {
	uint64_t state; /* 48 bits */
};

/* Like java.util.Random(seed). */
void vp_random_init(struct vp_random *random, uint64_t seed);
/* A number in [0, bound); 0 < bound <= INT32_MAX. */
uint32_t vp_random_below(struct vp_random *random, uint32_t bound);
/* Shuffles like weka.core.Instances.randomize(). */
void vp_random_shuffle(struct vp_random *random, uint32_t *rows, size_t n);

#endif
