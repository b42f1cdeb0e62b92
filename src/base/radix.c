/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/radix.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

enum { DIGIT_BITS = 8, VALUES = 1 << DIGIT_BITS, DIGITS = 64 / DIGIT_BITS };

static unsigned digit_of(uint64_t key, unsigned digit)
{
	return key >> digit * DIGIT_BITS & (VALUES - 1);
}

/* Sorts into `to` by one digit; `next_index`: next target index per value. */
static void move_by(unsigned digit, const struct vp_keyed *from, size_t count, struct vp_keyed *to,
		    size_t next_index[VALUES])
{
	size_t before = 0;

	for (unsigned value = 0; value < VALUES; value++) {
		size_t here = next_index[value];
		next_index[value] = before;
		before += here;
	}
	for (size_t i = 0; i < count; i++)
		to[next_index[digit_of(from[i].key, digit)]++] = from[i];
}

void vp_radix_sort(struct vp_keyed *things, size_t count)
{
	VP_AUTO_FREE struct vp_keyed *room = vp_realloc_array(NULL, count + 1, sizeof(*room));
	VP_AUTO_FREE size_t(*counts)[VALUES] = vp_alloc(DIGITS * sizeof(*counts));
	struct vp_keyed *from = things, *to = room;

	for (size_t i = 0; i < count; i++)
		for (unsigned digit = 0; digit < DIGITS; digit++)
			counts[digit][digit_of(things[i].key, digit)]++;
	for (unsigned digit = 0; digit < DIGITS && count; digit++) {
		/* For most digits, all keys are equal. */
		if (counts[digit][digit_of(from[0].key, digit)] == count)
			continue;
		move_by(digit, from, count, to, counts[digit]);
		struct vp_keyed *other = from;
		from = to;
		to = other;
	}
	if (from != things)
		memcpy(things, from, count * sizeof(*things));
}
