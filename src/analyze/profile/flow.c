/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/flow.h"

#include "analyze/profile/resolve.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/records.h"
#include "timeline/timeline.h"

uint32_t vp_flow_part(struct vp_flow *flow, uint32_t vm, uint32_t vcpu)
{
	vp_profile_parts *parts = &flow->totals.parts;
	bool split = flow->per_vcpu && vcpu != VP_NONE, inserted;

	if (!split && flow->unsplit_part != VP_NONE)
		return flow->unsplit_part;
	uint32_t *part = vp_map_insert(&flow->part_of_vcpu, split ? vcpu + 1ULL : 0,
				       (uint32_t)parts->count, &inserted);

	if (inserted)
		vp_vec_push(parts, ((struct vp_profile_part){
				       .vm = vm,
				       .vcpu = split ? flow->timeline->guests.vcpus.at[vcpu].number
						     : VP_NONE}));
	if (!split)
		flow->unsplit_part = *part;
	return *part;
}

static struct vp_sink_tick sink_tick(const struct vp_flow *flow, const struct vp_tick *tick)
{
	uint32_t vcpu =
	    tick->vcpu == VP_NONE ? VP_NONE : flow->timeline->guests.vcpus.at[tick->vcpu].number;

	return (struct vp_sink_tick){.time = tick->time,
				     .weight = tick->weight,
				     .pcpu = tick->pcpu,
				     .vcpu = vcpu,
				     .pid = tick->sample ? tick->sample->pid : 0,
				     .tid = tick->sample ? tick->sample->tid : 0};
}

static void flow_wait_for(struct vp_flow *flow, const struct vp_tick *tick, uint32_t frame,
			  bool emitted)
{
	if (flow->n_waiting == VP_FLOW_WAITING)
		vp_resolver_flush(flow->resolver);
	flow->waiting[flow->n_waiting++] = (struct vp_waiting_tick){
	    .tick = sink_tick(flow, tick),
	    .frame = frame,
	    .address = {.ip = frame == VP_NONE && tick->sample ? tick->sample->ip : 0},
	    .emitted = emitted};
}

/* Names the frames of waiting ticks; prefetches them first. */
static void name_waiting(struct vp_flow *flow, const struct vp_resolved *samples)
{
	for (uint32_t i = 0; i < flow->n_waiting; i++) {
		struct vp_waiting_tick *waiting = &flow->waiting[i];
		if (waiting->frame == VP_NONE) {
			waiting->address.start = samples->start;
			waiting->frame = (samples++)->frame;
		}
		if (waiting->frame == VP_NONE)
			continue;
		/* both cache lines in which it may be */
		const struct vp_frame *frame = &flow->frames.at.at[waiting->frame];
		__builtin_prefetch(frame);
		__builtin_prefetch(&frame->vcpu);
	}
}

void vp_flow_take(void *context, const struct vp_resolved *samples, uint32_t count)
{
	struct vp_flow *flow = context;

	vp_totals_take(&flow->totals, samples, count, false);
	name_waiting(flow, samples);
	for (uint32_t i = 0; i < flow->n_waiting; i++) {
		const struct vp_waiting_tick *waiting = &flow->waiting[i];
		if (!waiting->emitted && waiting->frame != VP_NONE)
			flow->sink->sample(flow->sink->context, flow, &waiting->tick,
					   &waiting->frame, &waiting->address, 1);
	}
	flow->n_waiting = 0;
}

/* A sample with a stack: queued samples are earlier. */
static void flow_emit_stack(struct vp_flow *flow, const struct vp_tick *tick,
			    const struct vp_stack *stack)
{
	const struct vp_sink_tick sample = sink_tick(flow, tick);

	vp_resolver_flush(flow->resolver);
	flow->sink->sample(flow->sink->context, flow, &sample, stack->frames, stack->addresses,
			   stack->count);
}

void vp_flow_code(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part)
{
	if (flow->apart) {
		flow->code_part = part;
		return;
	}
	bool alone = flow->sink && !flow->chains && !tick->chain;
	struct vp_stack stack;

	if (!alone && (flow->chains || flow->sink) &&
	    vp_stacks_make(&flow->stacks, tick, part, &stack)) {
		if (flow->chains)
			vp_totals_add_stack(&flow->totals, stack.frames, stack.count, tick->weight);
		if (flow->sink)
			flow_emit_stack(flow, tick, &stack);
	}
	if (flow->sink) {
		flow_wait_for(flow, tick, VP_NONE, !alone);
		vp_resolver_submit(flow->resolver, tick, part);
	} else {
		vp_tally_add(&flow->tally, vp_resolver_context(flow->resolver, tick, part),
			     tick->sample->ip, tick->time, tick->weight);
	}
}

void vp_flow_host(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part)
{
	bool kernel = tick->mode == VP_MODE_KERNEL;

	flow->totals.parts.at[part].kinds[kernel ? VP_KIND_KERNEL : VP_KIND_USER] += tick->weight;
	vp_flow_code(flow, tick, part);
}

void vp_flow_frame(struct vp_flow *flow, const struct vp_tick *tick, uint32_t frame)
{
	if (flow->sink)
		flow_wait_for(flow, tick, frame, false);
	else
		vp_totals_add(&flow->totals, frame, tick->weight);
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
	return vp_resolver_label(flow->resolver, label, frame);
}
