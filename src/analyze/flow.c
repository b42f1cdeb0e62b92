/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/flow.h"

uint32_t vp_flow_part(struct vp_flow *flow, uint32_t vm, uint32_t vcpu)
{
	vp_profile_parts *parts = &flow->totals.parts;
	bool split = flow->per_vcpu && vcpu != VP_NONE, inserted;
	uint32_t *part = vp_map_insert(&flow->part_of_vcpu, split ? vcpu + 1ULL : 0,
				       (uint32_t)parts->count, &inserted);

	if (inserted)
		vp_vec_push(parts, ((struct vp_profile_part){
				       .vm = vm,
				       .vcpu = split ? flow->timeline->guests.vcpus.at[vcpu].number
						     : VP_NONE}));
	return *part;
}

void vp_flow_code(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part)
{
	struct vp_stack stack;

	if ((flow->chains || flow->sink) && vp_stacks_make(&flow->stacks, tick, part, &stack)) {
		if (flow->chains)
			vp_totals_add_stack(&flow->totals, stack.frames, stack.count, tick->weight);
		if (flow->sink)
			flow->sink->sample(flow->sink->context, flow, tick, stack.frames,
					   stack.count);
	}
	vp_resolver_hand_on(flow->resolver, tick, part);
}

void vp_flow_host(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part)
{
	bool kernel = tick->mode == VP_MODE_KERNEL;

	flow->totals.parts.at[part].kinds[kernel ? VP_KIND_OS : VP_KIND_USER] += tick->weight;
	vp_flow_code(flow, tick, part);
}

void vp_flow_frame(struct vp_flow *flow, const struct vp_tick *tick, uint32_t frame)
{
	vp_totals_add(&flow->totals, frame, tick->weight);
	if (flow->sink)
		flow->sink->sample(flow->sink->context, flow, tick, &frame, 1);
}

void vp_flow_idle(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part)
{
	flow->totals.parts.at[part].kinds[VP_KIND_IDLE] += tick->weight;
	if (vp_filter_hides_any(&flow->filter))
		return;
	if (flow->idle_frame == VP_NONE)
		flow->idle_frame = vp_flow_label(flow, "[idle]",
						 (struct vp_frame){.part = part,
								   .kind = VP_KIND_IDLE,
								   .vm = VP_NONE,
								   .vcpu = VP_NONE,
								   .pid = VP_NONE});
	vp_flow_frame(flow, tick, flow->idle_frame);
}

uint32_t vp_flow_label(struct vp_flow *flow, const char *label, struct vp_frame frame)
{
	frame.function = vp_frames_text(&flow->frames, label);
	frame.module = frame.process = VP_NONE;
	return vp_frames_add(&flow->frames, &frame);
}
