/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * View guest: each vCPU on the host's time axis. Every tick of a vCPU's home pCPU is one tick of
 * the vCPU: in the guest's kernel or user space if it was running, else a blank. A blank is
 * idleness if the vCPU's last exit was a halt, else its time was stolen, by whoever had the pCPU.
 */
#include "analyze/profile_private.h"

/* Who had the pCPU, as a number: 0 the host, then two for each vCPU and VM. */
#define BY_HOST 0ULL
#define BY_VCPU(vcpu) (1 + 2ULL * (vcpu))
#define BY_VM(vm) (2 + 2ULL * (vm))

/* What is the same for every tick of a vCPU, and the last blank's row and reason: most often the
 * next has them too. */
struct shown_vcpu {
	bool known, shown;
	uint32_t part;
	uint64_t thief;
	uint32_t row; /* of `thief`; VP_NONE: not known, or not shown */
	uint32_t reason_row, reason;
	struct vp_exit exit; /* of `reason` */
};

struct guest_view {
	struct vp_builder *builder;
	struct vp_map row_of_thief;      /* key: part << 40 | by whom; idle: all ones below */
	VP_VEC(struct shown_vcpu) vcpus; /* by vCPU */
};

#define IDLE ((1ULL << 40) - 1)

/* Looks up what is the same for every tick of the vCPU. */
static void know_vcpu(struct guest_view *view, uint32_t number)
{
	struct vp_builder *builder = view->builder;
	const struct vp_profile_options *options = builder->options;
	const struct vp_vcpu_state *vcpu = &builder->timeline->guests.vcpus.at[number];
	struct shown_vcpu *known = &view->vcpus.at[number];

	*known = (struct shown_vcpu){.known = true, .row = VP_NONE, .reason_row = VP_NONE};
	known->shown = vp_builder_is_chosen(builder, vcpu->vm) &&
		       (!options->has_vcpu || options->vcpu == vcpu->number);
	if (known->shown)
		known->part = vp_builder_part(builder, vcpu->vm, number);
}

/* The vCPU if this tick of it is shown, else NULL. */
static struct shown_vcpu *shown_at(struct guest_view *view, uint32_t number,
				   const struct vp_vcpu_state *vcpu, uint64_t time)
{
	const struct vp_vm *vm = &view->builder->vms->at[vcpu->vm];

	while (view->vcpus.count <= number)
		vp_vec_push(&view->vcpus, (struct shown_vcpu){0});
	struct shown_vcpu *known = &view->vcpus.at[number];
	/* The part is made at the first tick that is shown, not before. */
	if (vm->end && time > vm->end)
		return NULL;
	if (!known->known)
		know_vcpu(view, number);
	return known->shown ? known : NULL;
}

/* Who kept `vcpu` from its pCPU at this tick. */
static uint64_t thief_of(const struct vp_vcpu_state *vcpu, uint32_t number,
			 const struct vp_tick *tick)
{
	if (tick->vm == VP_NONE || tick->vcpu == number)
		return BY_HOST;
	if (tick->vm != vcpu->vm)
		return BY_VM(tick->vm);
	return tick->vcpu == VP_NONE ? BY_HOST : BY_VCPU(tick->vcpu);
}

static char *thief_label(const struct vp_builder *builder, uint64_t thief)
{
	if (thief == IDLE)
		return vp_strdup("[idle]");
	if (thief == BY_HOST)
		return vp_strdup("[steal] (host)");
	uint32_t number = (uint32_t)((thief - 1) / 2);
	if (thief % 2)
		return vp_format("[steal] (on vcpu%u)",
				 builder->timeline->guests.vcpus.at[number].number);
	return vp_format("[steal] (%s)", builder->vms->at[number].name);
}

/* The row of a blank; VP_NONE if filters hide it: nobody's process has it. */
static uint32_t blank_row(struct guest_view *view, const struct vp_vcpu_state *vcpu, uint32_t part,
			  uint64_t thief)
{
	struct vp_builder *builder = view->builder;
	bool column = builder->profile->columns & VP_COLUMN_VCPU;
	bool inserted;

	if (builder->options->comm || builder->options->pid)
		return VP_NONE;
	uint64_t who = column ? (uint64_t)vcpu->number << 20 ^ part : part;
	uint32_t *row = vp_map_insert(&view->row_of_thief, who << 40 | thief, VP_NONE, &inserted);
	if (!inserted)
		return *row;
	VP_AUTO_FREE char *label = thief_label(builder, thief);
	struct vp_row_key key = {.part = part,
				 .kind = thief == IDLE ? VP_KIND_IDLE : VP_KIND_STEAL,
				 .function = vp_builder_text(builder, label),
				 .module = VP_NONE,
				 .process = VP_NONE,
				 .pid = VP_NONE,
				 .vm = vcpu->vm,
				 .vcpu = vcpu->number};
	*row = vp_builder_row(builder, &key);
	return *row;
}

/* Number of the (row, reason) in the profile. */
static uint32_t reason_of(struct vp_builder *builder, uint32_t row, const struct vp_exit *exit)
{
	struct vp_exit reason = exit->known ? *exit : (struct vp_exit){0};
	uint64_t key = (uint64_t)row << 34 | (uint64_t)(reason.vendor & 3) << 32 | reason.reason;
	bool inserted;

	/* No exit has vendor 3: it stands for "not known". */
	if (!reason.known)
		key |= 3ULL << 32;
	uint32_t *number = vp_map_insert(&builder->reason_of, key,
					 (uint32_t)builder->profile->reasons.count, &inserted);
	if (inserted)
		vp_vec_push(&builder->profile->reasons,
			    ((struct vp_profile_reason){.row = row, .exit = reason}));
	return *number;
}

static void count_reason(struct vp_builder *builder, struct shown_vcpu *shown, uint32_t row,
			 const struct vp_exit *exit, uint64_t weight)
{
	if (shown->reason_row != row || shown->exit.known != exit->known ||
	    shown->exit.reason != exit->reason || shown->exit.vendor != exit->vendor) {
		shown->reason = reason_of(builder, row, exit);
		shown->reason_row = row;
		shown->exit = *exit;
	}
	builder->profile->reasons.at[shown->reason].count += weight;
}

static void count_blank(struct guest_view *view, const struct vp_vcpu_state *vcpu, uint32_t number,
			struct shown_vcpu *shown, const struct vp_tick *tick)
{
	struct vp_builder *builder = view->builder;
	struct vp_profile_part *whole = &builder->profile->parts.at[shown->part];
	/* In its VMM's user space the vCPU's thread is at work, whatever its last exit was. */
	bool in_vmm = tick->vcpu == number && tick->sample->id == VP_ID_host_sample;
	bool idle = vp_vcpu_is_idle(vcpu) && !in_vmm;
	uint64_t thief = idle ? IDLE : thief_of(vcpu, number, tick);

	whole->kinds[idle ? VP_KIND_IDLE : VP_KIND_STEAL] += tick->weight;
	if (shown->row == VP_NONE || shown->thief != thief) {
		shown->row = blank_row(view, vcpu, shown->part, thief);
		shown->thief = thief;
	}
	if (shown->row == VP_NONE)
		return;
	vp_builder_add(builder, shown->row, tick->weight);
	if (!idle)
		count_reason(builder, shown, shown->row, &vcpu->exit, tick->weight);
}

static void count_tick(struct guest_view *view, uint32_t number, const struct vp_tick *tick)
{
	struct vp_builder *builder = view->builder;
	const struct vp_vcpu_state *vcpu = &builder->timeline->guests.vcpus.at[number];

	struct shown_vcpu *shown = shown_at(view, number, vcpu, tick->time);
	if (!shown)
		return;
	struct vp_profile_part *whole = &builder->profile->parts.at[shown->part];
	whole->samples += tick->weight;
	if (tick->vcpu != number || !vp_tick_is_guest(tick)) {
		count_blank(view, vcpu, number, shown, tick);
		return;
	}
	bool kernel = tick->mode == VP_MODE_GUEST_KERNEL;
	whole->kinds[kernel ? VP_KIND_OS : VP_KIND_USER] += tick->weight;
	vp_builder_count(builder, tick, shown->part);
}

void vp_view_guest(struct vp_builder *builder)
{
	struct guest_view view = {.builder = builder};
	struct vp_guests *guests = &builder->timeline->guests;
	struct vp_tick tick;

	while (vp_timeline_next(builder->timeline, &tick)) {
		vp_builder_see(builder, &tick);
		if (tick.pcpu == VP_NONE)
			continue;
		const struct vp_homes *homes = &guests->homes.at[tick.pcpu];
		for (size_t i = 0; i < homes->vcpus.count; i++)
			count_tick(&view, homes->vcpus.at[i], &tick);
	}
	vp_map_deinit(&view.row_of_thief);
	vp_vec_deinit(&view.vcpus);
}
