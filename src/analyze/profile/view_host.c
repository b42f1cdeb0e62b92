/* SPDX-License-Identifier: GPL-2.0-or-later */
/* View host: activity of each pCPU, every tick once; a guest is one row. */
#include "analyze/common/filter.h"
#include "analyze/profile/flow.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/view.h"
#include "base/alloc.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/vm.h"
#include "timeline/timeline.h"

#define UNSEEN (VP_NONE - 1)

struct host_view {
	VP_VEC(uint32_t) frames; /* by vCPU: frame of its VM; VP_NONE: hidden */
};

/* Frame of a VM's (or, with that column, a vCPU's) guest-mode samples. */
static uint32_t vm_frame(struct vp_flow *flow, uint32_t part, const struct vp_tick *tick)
{
	const struct vp_vm *vm = &flow->vms->at[tick->vm];
	const struct vp_filter *filter = &flow->filter;
	uint32_t number = flow->timeline->guests.vcpus.at[tick->vcpu].number;
	VP_AUTO_FREE char *label = vp_format("[%s]", vm->name);

	if (!vp_filter_has_vm(filter, tick->vm) || filter->comm ||
	    (filter->pid && filter->pid != vm->pid) || !vp_filter_has_vcpu(filter, number))
		return VP_NONE;
	return vp_flow_label(
	    flow, label,
	    (struct vp_frame){
		.part = part, .kind = VP_KIND_VM, .pid = vm->pid, .vm = tick->vm, .vcpu = number});
}

static void count_guest(struct host_view *view, struct vp_flow *flow, const struct vp_tick *tick,
			uint32_t part)
{
	flow->totals.parts.at[part].kinds[VP_KIND_VM] += tick->weight;
	while (view->frames.count <= tick->vcpu)
		vp_vec_push(&view->frames, UNSEEN);
	uint32_t *frame = &view->frames.at[tick->vcpu];
	if (*frame == UNSEEN)
		*frame = vm_frame(flow, part, tick);
	if (*frame != VP_NONE)
		vp_flow_frame(flow, tick, *frame);
}

static void host_tick(void *state, struct vp_flow *flow, const struct vp_tick *tick)
{
	const uint32_t part = VP_FLOW_WHOLE;

	flow->totals.parts.at[part].samples += tick->weight;
	if (vp_tick_is_idle(tick))
		vp_flow_idle(flow, tick, part);
	else if (vp_tick_is_guest(tick))
		count_guest(state, flow, tick, part);
	else
		vp_flow_host(flow, tick, part);
}

static void view_host_host_deinit(void *state)
{
	struct host_view *view = state;

	vp_vec_deinit(&view->frames);
}

const struct vp_view_ops *vp_view_host(void)
{
	static const struct vp_view_ops view = {.name = "host",
						.columns = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE |
							   VP_COLUMN_PROCESS,
						.hosts_only = true,
						.state_size = sizeof(struct host_view),
						.tick = host_tick,
						.own = host_tick,
						.deinit = view_host_host_deinit};

	return &view;
}
