/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/random.h"

#define MULTIPLIER 0x5deece66dULL
#define MASK ((1ULL << 48) - 1)

void vp_random_init(struct vp_random *random, uint64_t seed)
{
	random->state = (seed ^ MULTIPLIER) & MASK;
}

static uint32_t next31(struct vp_random *random)
{
	random->state = (random->state * MULTIPLIER + 0xb) & MASK;
	return (uint32_t)(random->state >> (48 - 31));
}

uint32_t vp_random_below(struct vp_random *random, uint32_t bound)
{
	uint32_t bits, value;

	if (!(bound & (bound - 1)))
		return (uint32_t)(((uint64_t)bound * next31(random)) >> 31);
	do {
		bits = next31(random);
		value = bits % bound;
	} while (bits - value + (bound - 1) > INT32_MAX);
	return value;
}

void vp_random_shuffle(struct vp_random *random, uint32_t *rows, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		uint32_t other = vp_random_below(random, (uint32_t)i + 1);
		uint32_t row = rows[i];
		rows[i] = rows[other];
		rows[other] = row;
	}
}
