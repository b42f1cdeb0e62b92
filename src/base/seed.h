/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that nobody outside of this process can foretell. */
#ifndef VP_BASE_SEED_H
#define VP_BASE_SEED_H

#include <stdint.h>

/*
 * Chosen when the program starts, before any of it is confined: who chooses keys of our hash maps
 * (a guest does) cannot choose colliding ones. No order of output may depend on it.
 */
uint64_t vp_hash_seed(void) __attribute__((const));
/* Another one each time. Does not wait, not even soon after the boot. */
uint64_t vp_seed_new(void);

#endif
