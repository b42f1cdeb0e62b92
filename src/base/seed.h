/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random seeds that other processes cannot predict. */
#ifndef VP_BASE_SEED_H
#define VP_BASE_SEED_H

#include <stdint.h>

/*
 * The process's seed, chosen at its start before confinement. Keys of our hash maps are partly
 * chosen by guests, which must not be able to provoke collisions. No order of output may depend on
 * it.
 */
uint64_t vp_hash_seed(void) __attribute__((const));
/* A new random number at each call. Does not block, not even early after boot. */
uint64_t vp_seed_new(void);

#endif
