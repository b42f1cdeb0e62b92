/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/weights.h"

uint64_t vp_xen_periods_due(uint64_t cpu_time, uint64_t period, uint64_t *accounted)
{
	int64_t passed = (int64_t)(cpu_time - *accounted) + (int64_t)(period / 2);
	uint64_t due = passed > 0 ? (uint64_t)passed / period : 0;

	*accounted += due * period;
	return due;
}

void vp_xen_weights_deinit(struct vp_xen_weights *weights)
{
	vp_vec_deinit(&weights->exits);
}

void vp_xen_weights_exit(struct vp_xen_weights *weights, uint64_t period, uint64_t time,
			 uint64_t ran, uint64_t ip)
{
	uint64_t due = vp_xen_periods_due(ran, period, &weights->accounted);

	weights->ran = ran;
	if (due)
		vp_vec_push(&weights->exits, ((struct vp_xen_exit_sample){time, ip, due}));
}

static bool same_process(const struct vp_guest_sample *one, const struct vp_guest_sample *other)
{
	const unsigned known = VP_HAS_AS_ROOT | VP_BY_MEMORY;

	return one->flags & VP_HAS_AS_ROOT && (one->flags & known) == (other->flags & known) &&
	       one->as_root == other->as_root && one->guest_pid == other->guest_pid &&
	       one->guest_tid == other->guest_tid;
}

/* `whose`: data of the vCPU, and of the process if known. */
static void take_exits(struct vp_xen_weights *weights, const struct vp_guest_sample *whose,
		       bool known, struct vp_xen_weighed out)
{
	vp_vec_each (&weights->exits, exit) {
		struct vp_guest_sample sample = *whose;
		bool user = !(exit->ip >> 63);
		sample.time = exit->time;
		sample.ip = exit->ip;
		sample.mode = user ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL;
		sample.cpl = user ? 3 : 0;
		sample.flags |= VP_HAS_CPL | VP_AT_INTERRUPT;
		if (!known) {
			sample.flags &= (uint16_t) ~(VP_HAS_AS_ROOT | VP_BY_MEMORY);
			sample.as_root = 0;
			sample.guest_pid = sample.guest_tid = 0;
		}
		out.take(out.context, &sample, exit->periods);
	}
	weights->exits.count = 0;
}

void vp_xen_weights_context(struct vp_xen_weights *weights, uint64_t period, struct vp_xen_ran ran,
			    const struct vp_guest_sample *sample, struct vp_xen_weighed out)
{
	uint64_t due = vp_xen_periods_due(ran.ns, period, &weights->accounted);
	size_t count = weights->exits.count;
	const struct vp_xen_exit_sample *last = count ? &weights->exits.at[count - 1] : NULL;

	if (last && last->time == ran.open_exit) {
		due += last->periods;
		weights->exits.count--;
	}
	take_exits(weights, sample, weights->has_context && same_process(&weights->context, sample),
		   out);
	if (due)
		out.take(out.context, sample, due);
	weights->ran = ran.ns;
	weights->has_context = true;
	weights->context = *sample;
}

void vp_xen_weights_flush(struct vp_xen_weights *weights, const struct vp_guest_sample *who,
			  struct vp_xen_weighed out)
{
	take_exits(weights, who, false, out);
}
