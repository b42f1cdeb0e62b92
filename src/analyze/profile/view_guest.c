/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * View guest: each vCPU on the host's time axis. Every tick of a vCPU's home pCPU is one tick of
 * the vCPU: in the guest's kernel or user space if it was running, else a blank. A blank is
 * idleness if the vCPU's last exit was a halt, otherwise steal by the running thread.
 */
#include "analyze/common/filter.h"
#include "analyze/profile/flow.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "base/alloc.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "timeline/guests.h"
#include "timeline/timeline.h"

/* Number of the pCPU's owner: 0 the host, then two per vCPU and VM. */
#define BY_HOST 0ULL
#define BY_VCPU(vcpu) (1 + 2ULL * (vcpu))
#define BY_VM(vm) (2 + 2ULL * (vm))

/* A blank of a vCPU in a given state, and its counters. */
struct blank {
	uint64_t by; /* VM << 32 | vCPU that had the pCPU */
	uint64_t
	    exit; /* of the vCPU: 1 << 63 | blocked << 62 | known << 61 | vendor << 32 | reason */
	uint32_t frame;  /* VP_NONE: hidden */
	uint32_t reason; /* VP_NONE: idle, or hidden */
	bool idle;
};
enum { BLANK_BITS = 3 };

/* Data shared by all samples of a vCPU, and frame and exit reason of the last blank, which the next
 * one usually has, too. */
struct shown_vcpu {
	bool known, shown;
	uint32_t part;
	uint64_t thief;
	uint32_t frame; /* of `thief`; VP_NONE: unknown, or hidden */
	uint32_t reason_frame, reason;
	struct vp_exit exit; /* of `reason` */
	struct blank blanks[1 << BLANK_BITS];
};

struct guest_view {
	struct vp_map frame_of_thief;    /* key: part << 40 | by whom; idle: all ones below */
	VP_VEC(struct shown_vcpu) vcpus; /* by vCPU */
};

#define IDLE ((1ULL << 40) - 1)

/* Computes the data shared by all ticks of the vCPU. */
static void view_guest_add_vcpu(struct guest_view *view, struct vp_flow *flow, uint32_t number)
{
	const struct vp_vcpu_state *vcpu = &flow->timeline->guests.vcpus.at[number];
	struct shown_vcpu *known = &view->vcpus.at[number];

	*known = (struct shown_vcpu){.known = true, .frame = VP_NONE, .reason_frame = VP_NONE};
	known->shown = vp_filter_has_vm(&flow->filter, vcpu->vm) &&
		       vp_filter_has_vcpu(&flow->filter, vcpu->number);
	if (known->shown)
		known->part = vp_flow_part(flow, vcpu->vm, number);
}

/* The vCPU if this tick of it is shown, otherwise NULL. */
static VP_INLINE struct shown_vcpu *shown_at(struct guest_view *view, struct vp_flow *flow,
					     uint32_t number, const struct vp_vcpu_state *vcpu,
					     uint64_t time)
{
	const struct vp_vm *vm = &flow->vms->at[vcpu->vm];

	while (view->vcpus.count <= number)
		vp_vec_push(&view->vcpus, (struct shown_vcpu){0});
	struct shown_vcpu *known = &view->vcpus.at[number];
	/* The part is created at the first shown tick. */
	if (vm->end && time > vm->end)
		return NULL;
	if (!known->known)
		view_guest_add_vcpu(view, flow, number);
	return known->shown ? known : NULL;
}

/* The thief of `vcpu`'s pCPU at this sample. */
static uint64_t thief_of(const struct vp_vcpu_state *vcpu, uint32_t number,
			 const struct vp_tick *tick)
{
	if (tick->vm == VP_NONE || tick->vcpu == number)
		return BY_HOST;
	if (tick->vm != vcpu->vm)
		return BY_VM(tick->vm);
	return tick->vcpu == VP_NONE ? BY_HOST : BY_VCPU(tick->vcpu);
}

static char *thief_label(const struct vp_flow *flow, uint64_t thief)
{
	if (thief == IDLE)
		return vp_strdup("[idle]");
	if (thief == BY_HOST)
		return vp_strdup("[steal] (host)");
	uint32_t number = (uint32_t)((thief - 1) / 2);
	if (thief % 2)
		return vp_format("[steal] (on vcpu%u)",
				 flow->timeline->guests.vcpus.at[number].number);
	return vp_format("[steal] (%s)", flow->vms->at[number].name);
}

/* The frame of a blank; VP_NONE if filters hide it: it belongs to no process. */
static uint32_t blank_frame(struct guest_view *view, struct vp_flow *flow,
			    const struct vp_vcpu_state *vcpu, uint32_t part, uint64_t thief)
{
	bool column = flow->frames.columns & VP_COLUMN_VCPU, inserted;

	if (vp_filter_is_of_process(&flow->filter))
		return VP_NONE;
	uint64_t who = column ? (uint64_t)vcpu->number << 20 ^ part : part;
	uint32_t *frame =
	    vp_map_insert(&view->frame_of_thief, who << 40 | thief, VP_NONE, &inserted);
	if (!inserted)
		return *frame;
	VP_AUTO_FREE char *label = thief_label(flow, thief);
	*frame =
	    vp_flow_label(flow, label,
			  (struct vp_frame){.part = part,
					    .kind = thief == IDLE ? VP_KIND_IDLE : VP_KIND_STEAL,
					    .pid = VP_NONE,
					    .vm = vcpu->vm,
					    .vcpu = vcpu->number});
	return *frame;
}

static void count_reason(struct vp_totals *totals, struct shown_vcpu *shown,
			 const struct vp_exit *exit, uint64_t weight)
{
	if (shown->reason_frame != shown->frame || shown->exit.known != exit->known ||
	    shown->exit.reason != exit->reason || shown->exit.vendor != exit->vendor) {
		shown->reason = vp_totals_reason(totals, shown->frame, exit);
		shown->reason_frame = shown->frame;
		shown->exit = *exit;
	}
	totals->reasons.at[shown->reason].count += weight;
}

static void count_blank(struct guest_view *view, struct vp_flow *flow, uint32_t number,
			struct shown_vcpu *shown, const struct vp_tick *tick)
{
	const struct vp_vcpu_state *vcpu = &flow->timeline->guests.vcpus.at[number];
	struct vp_profile_part *whole = &flow->totals.parts.at[shown->part];
	/* While the vCPU thread is in its VMM's user space it is working, whatever its last
	 * exit. */
	bool in_vmm = tick->vcpu == number && tick->sample->id == VP_ID_host_sample;
	bool idle = vp_vcpu_is_idle(vcpu) && !in_vmm;
	uint64_t thief = idle ? IDLE : thief_of(vcpu, number, tick);

	whole->kinds[idle ? VP_KIND_IDLE : VP_KIND_STEAL] += tick->weight;
	if (shown->frame == VP_NONE || shown->thief != thief) {
		shown->frame = blank_frame(view, flow, vcpu, shown->part, thief);
		shown->thief = thief;
	}
	if (shown->frame == VP_NONE)
		return;
	vp_flow_frame(flow, tick, shown->frame);
	if (!idle)
		count_reason(&flow->totals, shown, &vcpu->exit, tick->weight);
}

static void count_vcpu(struct guest_view *view, struct vp_flow *flow, uint32_t number,
		       const struct vp_tick *tick)
{
	const struct vp_vcpu_state *vcpu = &flow->timeline->guests.vcpus.at[number];
	struct shown_vcpu *shown = shown_at(view, flow, number, vcpu, tick->time);

	if (!shown)
		return;
	struct vp_profile_part *whole = &flow->totals.parts.at[shown->part];
	whole->samples += tick->weight;
	if (tick->vcpu != number || !vp_tick_is_guest(tick)) {
		count_blank(view, flow, number, shown, tick);
		return;
	}
	bool kernel = tick->mode == VP_MODE_GUEST_KERNEL;
	whole->kinds[kernel ? VP_KIND_KERNEL : VP_KIND_USER] += tick->weight;
	vp_flow_code(flow, tick, shown->part);
}

static void guest_tick(void *state, struct vp_flow *flow, const struct vp_tick *tick)
{
	if (tick->pcpu == VP_NONE)
		return;
	if (tick->of_vcpu) { /* the state of other vCPUs is unknown */
		count_vcpu(state, flow, tick->vcpu, tick);
		return;
	}
	const struct vp_home_vcpus *here = &flow->timeline->guests.home_vcpus.at[tick->pcpu];
	for (size_t i = 0; i < here->vcpus.count; i++)
		count_vcpu(state, flow, here->vcpus.at[i], tick);
}

static void guest_own(void *state, struct vp_flow *flow, const struct vp_tick *tick)
{
	if (tick->vcpu != VP_NONE)
		count_vcpu(state, flow, tick->vcpu, tick);
}

static uint64_t state_key(const struct vp_vcpu_state *vcpu)
{
	return 1ULL << 63 | (uint64_t)vcpu->blocked << 62 | (uint64_t)vcpu->exit.known << 61 |
	       (uint64_t)vcpu->exit.vendor << 32 | vcpu->exit.reason;
}

/* Finds the counters of a blank while another thread has the pCPU. */
static VP_NOINLINE void blank_find(struct guest_view *view, struct vp_flow *flow, uint32_t number,
				   const struct shown_vcpu *shown, const struct vp_occupied *by,
				   struct blank *blank)
{
	const struct vp_vcpu_state *vcpu = &flow->timeline->guests.vcpus.at[number];
	const struct vp_tick tick = {.vm = by->vm, .vcpu = by->vcpu};
	bool idle = vp_vcpu_is_idle(vcpu);
	uint64_t thief = idle ? IDLE : thief_of(vcpu, number, &tick);

	blank->by = (uint64_t)by->vm << 32 | by->vcpu;
	blank->exit = state_key(vcpu);
	blank->frame = blank_frame(view, flow, vcpu, shown->part, thief);
	blank->reason = VP_NONE;
	if (blank->frame != VP_NONE && !idle)
		blank->reason = vp_totals_reason(&flow->totals, blank->frame, &vcpu->exit);
	blank->idle = idle;
}

/* The same as count_blank(), for other threads on the pCPU. */
static void guest_other(void *state, struct vp_flow *flow, uint32_t number,
			const struct vp_occupied *by)
{
	const struct vp_vcpu_state *vcpu = &flow->timeline->guests.vcpus.at[number];
	struct shown_vcpu *shown = shown_at(state, flow, number, vcpu, by->time);

	if (!shown)
		return;
	struct vp_profile_part *whole = &flow->totals.parts.at[shown->part];
	uint64_t who = (uint64_t)by->vm << 32 | by->vcpu, exit = state_key(vcpu);
	uint64_t hash = (who ^ exit << 7) * 0x9e3779b97f4a7c15ULL;
	struct blank *blank = &shown->blanks[hash >> (64 - BLANK_BITS)];
	if (VP_RARELY(blank->by != who || blank->exit != exit))
		blank_find(state, flow, number, shown, by, blank);
	whole->samples += by->weight;
	whole->kinds[blank->idle ? VP_KIND_IDLE : VP_KIND_STEAL] += by->weight;
	if (blank->frame != VP_NONE)
		vp_totals_add(&flow->totals, blank->frame, by->weight);
	if (blank->reason != VP_NONE)
		flow->totals.reasons.at[blank->reason].count += by->weight;
}

static void view_guest_guest_deinit(void *state)
{
	struct guest_view *view = state;

	vp_map_deinit(&view->frame_of_thief);
	vp_vec_deinit(&view->vcpus);
}

const struct vp_view_ops *vp_view_guest(void)
{
	static const struct vp_view_ops view = {.name = "guest",
						.columns = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE |
							   VP_COLUMN_PROCESS,
						.of_one_vm = true,
						.state_size = sizeof(struct guest_view),
						.tick = guest_tick,
						.own = guest_own,
						.other = guest_other,
						.deinit = view_guest_guest_deinit};

	return &view;
}
