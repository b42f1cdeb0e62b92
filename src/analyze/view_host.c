/* SPDX-License-Identifier: GPL-2.0-or-later */
/* View host: what each pCPU did, every tick once; a guest is one row. */
#include "analyze/profile_private.h"

#define UNSEEN (VP_NONE - 1)

/* Row of a VM's (or, with that column, a vCPU's) guest-mode samples. */
static uint32_t vm_row(struct vp_builder *builder, uint32_t part, const struct vp_tick *tick)
{
	VP_AUTO_FREE char *label = vp_format("[%s]", builder->vms->at[tick->vm].name);
	const struct vp_profile_options *options = builder->options;
	uint32_t number = builder->timeline->guests.vcpus.at[tick->vcpu].number;
	struct vp_row_key key = {.part = part,
				 .kind = VP_KIND_VM,
				 .function = vp_builder_text(builder, label),
				 .module = VP_NONE,
				 .process = VP_NONE,
				 .pid = builder->vms->at[tick->vm].pid,
				 .vm = tick->vm,
				 .vcpu = number};

	if (!vp_builder_is_chosen(builder, tick->vm) || options->comm ||
	    (options->pid && options->pid != key.pid) ||
	    (options->has_vcpu && options->vcpu != number))
		return VP_NONE;
	return vp_builder_row(builder, &key);
}

void vp_builder_count_idle(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part)
{
	const struct vp_profile_options *options = builder->options;

	builder->profile->parts.at[part].kinds[VP_KIND_IDLE] += tick->weight;
	if (!builder->all_chosen || options->comm || options->pid || options->has_vcpu)
		return;
	if (builder->idle_row == VP_NONE) {
		struct vp_row_key key = {.part = part,
					 .kind = VP_KIND_IDLE,
					 .function = vp_builder_text(builder, "[idle]"),
					 .module = VP_NONE,
					 .process = VP_NONE,
					 .pid = VP_NONE,
					 .vm = VP_NONE,
					 .vcpu = VP_NONE};
		builder->idle_row = vp_builder_row(builder, &key);
	}
	vp_builder_add(builder, builder->idle_row, tick->weight);
}

void vp_builder_count_host(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part)
{
	bool kernel = tick->mode == VP_MODE_KERNEL;

	builder->profile->parts.at[part].kinds[kernel ? VP_KIND_OS : VP_KIND_USER] += tick->weight;
	vp_builder_count(builder, tick, part);
}

void vp_view_host(struct vp_builder *builder)
{
	uint32_t part = vp_builder_part(builder, VP_NONE, VP_NONE);
	VP_VEC(uint32_t) rows = {0}; /* by vCPU: its VM's row; VP_NONE: not shown */
	struct vp_tick tick;

	while (vp_timeline_next(builder->timeline, &tick)) {
		vp_builder_see(builder, &tick);
		builder->profile->parts.at[part].samples += tick.weight;
		if (vp_tick_is_idle(&tick)) {
			vp_builder_count_idle(builder, &tick, part);
			continue;
		}
		if (!vp_tick_is_guest(&tick)) {
			vp_builder_count_host(builder, &tick, part);
			continue;
		}
		builder->profile->parts.at[part].kinds[VP_KIND_VM] += tick.weight;
		while (rows.count <= tick.vcpu)
			vp_vec_push(&rows, UNSEEN);
		if (rows.at[tick.vcpu] == UNSEEN)
			rows.at[tick.vcpu] = vm_row(builder, part, &tick);
		uint32_t row = rows.at[tick.vcpu];
		if (row != VP_NONE)
			vp_builder_add(builder, row, tick.weight);
	}
	vp_vec_deinit(&rows);
}
