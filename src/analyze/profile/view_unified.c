/* SPDX-License-Identifier: GPL-2.0-or-later */
/* View unified: guests, host kernel, VMMs and idleness in one table, every tick once. */
#include "analyze/profile/flow.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "timeline/timeline.h"

static void unified_tick(void *state, struct vp_flow *flow, const struct vp_tick *tick)
{
	const uint32_t part = VP_FLOW_WHOLE;
	struct vp_profile_part *whole = &flow->totals.parts.at[part];

	(void)state;
	whole->samples += tick->weight;
	if (vp_tick_is_idle(tick)) {
		vp_flow_idle(flow, tick, part);
	} else if (vp_tick_is_guest(tick)) {
		whole->kinds[VP_KIND_VM] += tick->weight;
		vp_flow_code(flow, tick, part);
	} else {
		vp_flow_host(flow, tick, part);
	}
}

const struct vp_view_ops *vp_view_unified(void)
{
	static const struct vp_view_ops view = {.name = "unified",
						.columns = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE |
							   VP_COLUMN_PROCESS | VP_COLUMN_VM,
						.tick = unified_tick,
						.own = unified_tick};

	return &view;
}
