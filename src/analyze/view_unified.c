/* SPDX-License-Identifier: GPL-2.0-or-later */
/* View unified: guests, host kernel, VMMs and idleness in one table, every tick once. */
#include "analyze/profile_private.h"

void vp_view_unified(struct vp_builder *builder)
{
	uint32_t part = vp_builder_part(builder, VP_NONE, VP_NONE);
	struct vp_tick tick;

	while (vp_timeline_next(builder->timeline, &tick)) {
		struct vp_profile_part *whole = &builder->profile->parts.at[part];
		vp_builder_see(builder, &tick);
		whole->samples += tick.weight;
		if (vp_tick_is_idle(&tick)) {
			vp_builder_count_idle(builder, &tick, part);
		} else if (vp_tick_is_guest(&tick)) {
			whole->kinds[VP_KIND_VM] += tick.weight;
			vp_builder_count(builder, &tick, part);
		} else {
			vp_builder_count_host(builder, &tick, part);
		}
	}
}
