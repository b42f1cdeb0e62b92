/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/guest_sampling.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"

static double guest_sampling_ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void guest_sampling_put_exits(const struct vp_guest_sampling *sampling,
				     struct vp_buffer *out)
{
	double periods = (double)sampling->periods;

	vp_buffer_printf(
	    out, " (%.1f%% of the CPU time) and %" PRIu64 " at %s (%.1f%%; %.1f%% by address only)",
	    100 * guest_sampling_ratio(periods - (double)sampling->exit_periods, periods),
	    sampling->exit_samples,
	    sampling->exits == VP_GUEST_SAMPLING_COUNTERS ? "interrupts of a hardware counter"
							  : "exits for interrupts",
	    100 * guest_sampling_ratio((double)sampling->exit_periods, periods),
	    100 * guest_sampling_ratio((double)sampling->unknown_periods, periods));
}

char *vp_guest_sampling_text(const struct vp_guest_sampling *sampling)
{
	double seconds = (double)sampling->duration_ns / 1e9;
	double samples = (double)sampling->contexts, pause = (double)sampling->pause_ns;
	struct vp_buffer out = {0};

	if (sampling->method == VP_GUEST_SAMPLING_NONE)
		return vp_strdup("");
	vp_buffer_printf(&out, "%" PRIu64 " by the vCPU's context", sampling->contexts);
	if (sampling->method == VP_GUEST_SAMPLING_CONTEXTS)
		vp_buffer_string(&out, " from Xen");
	if (sampling->exits && sampling->periods)
		guest_sampling_put_exits(sampling, &out);
	if (sampling->exits == VP_GUEST_SAMPLING_COUNTERS)
		vp_buffer_printf(&out,
				 ", counter interrupts on %" PRIu64 " pCPUs, %" PRIu64
				 " of them in this host's own vCPUs and %" PRIu64
				 " in the hypervisor",
				 sampling->pcpus, sampling->own, sampling->hypervisor);
	vp_buffer_printf(
	    &out,
	    ", one per %.3f ms of CPU time, %.1f per second; each paused its vCPU for "
	    "%.1f us (at most %.1f us), %.3f%% of the time of one vCPU; CPU time "
	    "without samples: %.1f ms",
	    (double)sampling->period_ns / 1e6, guest_sampling_ratio(samples, seconds),
	    guest_sampling_ratio(pause, samples) / 1e3, (double)sampling->max_pause_ns / 1e3,
	    guest_sampling_ratio(pause, seconds) / 1e7, (double)sampling->unsampled_ns / 1e6);
	char *text = vp_strdup(vp_buffer_text(&out));
	vp_buffer_deinit(&out);
	return text;
}
