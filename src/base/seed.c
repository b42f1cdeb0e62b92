/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/seed.h"

#include <sys/random.h>
#include <time.h>

static uint64_t hash_seed;

uint64_t vp_hash_seed(void)
{
	return hash_seed;
}

uint64_t vp_seed_new(void)
{
	struct timespec now;
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		return seed;
	/* The kernel's generator is not ready: the stack address is a little random, too. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(uintptr_t)&now << 20 ^ (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 52;
}

static __attribute__((constructor)) void choose_seed(void)
{
	hash_seed = vp_seed_new();
}
