/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/guest_clock.h"

#include <string.h>

enum {
	MOST_PAIRS = 4096,
	STEADY_PPM = 1, /* taken for what the speed of a clock changes by unseen */
};
/* Of pairs close to each other the errors of reading them would be the speed. */
#define APART_NS 20000000ULL

void vp_guest_clock_read(struct vp_guest_clock *clock)
{
	size_t count = clock->pairs.count;
	struct vp_clock_reading now = vp_clock_read();

	if (count == MOST_PAIRS) {
		memmove(clock->pairs.at, clock->pairs.at + MOST_PAIRS / 2,
			MOST_PAIRS / 2 * sizeof(*clock->pairs.at));
		clock->pairs.count = count = MOST_PAIRS / 2;
	}
	/* The last one makes way if it is too close to the one before it. */
	if (count > 1 && now.monotonic - clock->pairs.at[count - 2].monotonic < APART_NS)
		clock->pairs.at[count - 1] = now;
	else
		vp_vec_push(&clock->pairs, now);
}

/* The first pair from that counter on; the number of all if there is none. */
static size_t first_from(struct vp_guest_clock *clock, uint64_t tsc)
{
	size_t low = 0, high = clock->pairs.count, found = clock->found;

	if (found && found < high && clock->pairs.at[found].tsc >= tsc &&
	    clock->pairs.at[found - 1].tsc < tsc)
		return found;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (clock->pairs.at[middle].tsc < tsc)
			low = middle + 1;
		else
			high = middle;
	}
	clock->found = low;
	return low;
}

static void note_error(struct vp_guest_clock *clock, const struct vp_clock_reading *before,
		       const struct vp_clock_reading *after)
{
	uint64_t length = after->monotonic - before->monotonic;
	uint64_t error = before->error_ns + after->error_ns + length * STEADY_PPM / 1000000 + 1;

	if (error > clock->error_ns)
		clock->error_ns = error;
}

uint64_t vp_guest_clock_at(struct vp_guest_clock *clock, const struct vp_vcpu *vcpu,
			   uint64_t guest_tsc)
{
	uint64_t tsc = vp_vcpu_host_tsc(vcpu, guest_tsc);
	size_t next = first_from(clock, tsc);

	if (next == clock->pairs.count) {
		vp_guest_clock_read(clock);
		next = first_from(clock, tsc);
	}
	if (!next) {
		clock->past++;
		return clock->pairs.at[0].monotonic;
	}
	if (next == clock->pairs.count) {
		clock->future++;
		return clock->pairs.at[next - 1].monotonic;
	}
	const struct vp_clock_reading *before = &clock->pairs.at[next - 1];
	const struct vp_clock_reading *after = &clock->pairs.at[next];
	note_error(clock, before, after);
	return before->monotonic +
	       (uint64_t)((unsigned __int128)(tsc - before->tsc) *
			  (after->monotonic - before->monotonic) / (after->tsc - before->tsc));
}

void vp_guest_clock_deinit(struct vp_guest_clock *clock)
{
	vp_vec_deinit(&clock->pairs);
}
