/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/tick_counts.h"

#include "schema/records.h"

void vp_pass_counts_add(struct vp_pass_counts *counts, const struct vp_tick *tick, uint64_t n)
{
	counts->ticks += tick->weight;
	counts->samples += tick->sample ? n : 0;
	if (!tick->sample) {
		counts->filled += tick->weight;
	} else if (vp_tick_is_guest(tick)) {
		const struct vp_guest_sample *sample = (const void *)tick->sample;
		counts->guest_samples += tick->weight;
		if (!(sample->flags &
		      (VP_HAS_AS_ROOT | VP_HIDDEN | VP_BY_MEMORY | VP_AT_INTERRUPT)))
			counts->no_root += tick->weight;
	}
	/* flags are at the same offset in all samples */
	if (tick->sample && tick->sample->flags & VP_LATE)
		counts->late += n;
}

void vp_pass_counts_merge(struct vp_pass_counts *counts, const struct vp_pass_counts *from)
{
	counts->samples += from->samples;
	counts->guest_samples += from->guest_samples;
	counts->ticks += from->ticks;
	counts->late += from->late;
	counts->filled += from->filled;
	counts->no_root += from->no_root;
}
