/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/guest_clock.h"

#include "base/clock.h"

void vp_guest_clock_read(struct vp_guest_clock *clock)
{
	struct vp_clock_reading now = vp_clock_read();

	clock->has_counter = now.tsc != 0;
	vp_clock_line_add(&clock->line, &(struct vp_clock_point){.from = now.tsc,
								 .to = now.monotonic,
								 .ns = now.monotonic,
								 .error_ns = now.error_ns});
}

uint64_t vp_guest_clock_at(struct vp_guest_clock *clock, const struct vp_vcpu *vcpu,
			   uint64_t guest_tsc)
{
	uint64_t tsc = vp_vcpu_host_tsc(vcpu, guest_tsc);

	if (vp_clock_line_is_near(&clock->line, tsc))
		return vp_clock_line_at(&clock->line, tsc);
	size_t next = vp_clock_line_find(&clock->line, tsc);

	if (next == clock->line.points.count) {
		vp_guest_clock_read(clock);
		next = vp_clock_line_find(&clock->line, tsc);
	}
	if (!next) {
		clock->past++;
		return clock->line.points.at[0].to;
	}
	if (next == clock->line.points.count) {
		clock->future++;
		return clock->line.points.at[next - 1].to;
	}
	return vp_clock_line_at(&clock->line, tsc);
}

void vp_guest_clock_deinit(struct vp_guest_clock *clock)
{
	vp_clock_line_deinit(&clock->line);
}
