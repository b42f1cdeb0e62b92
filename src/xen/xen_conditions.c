/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_conditions.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "bpf/conditions_abi.h"
#include "collect/programs/condition_thief.h"
#include "schema/account_terms.h"
#include "schema/condition.h"
#include "schema/exit_reason.h"

struct xen_conditions {
	uint64_t limits[VP_CONDITIONS]; /* ns; UINT64_MAX: not requested */
	bool every_vm;
	VP_VEC(uint32_t) vms; /* numbers of the watched VMs, unless every_vm */
	bool is_enabled, is_armed, has_fired;
	bool has_account, is_closed; /* users: the accounting, and the flight recorder */
	struct vp_fired fired;       /* the first trigger since arming */
	uint64_t dropped;
};

static struct xen_conditions *xen_conditions_of(const struct vp_condition_watch *watch)
{
	return (struct xen_conditions *)watch;
}

struct vp_condition_watch *vp_xen_conditions_new(const struct vp_conditions *conditions,
						 bool every_vm)
{
	struct xen_conditions *its = vp_alloc(sizeof(*its));

	its->every_vm = every_vm;
	for (int i = 0; i < VP_CONDITIONS; i++)
		its->limits[i] = conditions->wanted[i] ? conditions->ns[i] : UINT64_MAX;
	return (struct vp_condition_watch *)its;
}

void vp_xen_conditions_add(struct vp_condition_watch *watch, uint32_t vm)
{
	struct xen_conditions *its = xen_conditions_of(watch);

	vp_vec_each (&its->vms, known)
		if (*known == vm)
			return;
	vp_vec_push(&its->vms, vm);
}

void vp_xen_conditions_arm(struct vp_condition_watch *watch)
{
	struct xen_conditions *its = xen_conditions_of(watch);

	its->is_enabled = its->is_armed = true;
}

bool vp_xen_conditions_is_fed(const struct vp_condition_watch *watch)
{
	return xen_conditions_of(watch)->has_account;
}

bool vp_xen_conditions_fired(struct vp_condition_watch *watch, struct vp_fired *ret)
{
	struct xen_conditions *its = xen_conditions_of(watch);

	if (!its->has_fired)
		return false;
	its->has_fired = false;
	*ret = its->fired;
	return true;
}

uint64_t vp_xen_conditions_dropped(const struct vp_condition_watch *watch)
{
	return xen_conditions_of(watch)->dropped;
}

static void free_unused(struct xen_conditions *its)
{
	if (its->has_account || !its->is_closed)
		return;
	vp_vec_deinit(&its->vms);
	free(its);
}

void vp_xen_conditions_free(struct vp_condition_watch *watch)
{
	struct xen_conditions *its = xen_conditions_of(watch);

	if (!its)
		return;
	its->is_enabled = false;
	its->is_closed = true;
	free_unused(its);
}

void vp_xen_conditions_join(struct vp_condition_watch *watch)
{
	xen_conditions_of(watch)->has_account = true;
}

void vp_xen_conditions_leave(struct vp_condition_watch *watch)
{
	struct xen_conditions *its = xen_conditions_of(watch);

	its->has_account = false;
	free_unused(its);
}

static bool is_watched(const struct xen_conditions *its, uint32_t vm)
{
	vp_vec_each (&its->vms, known)
		if (*known == vm)
			return true;
	return its->every_vm;
}

static void xen_conditions_fire(struct xen_conditions *its, const struct vp_xen_states *states,
				const struct vp_account_vcpu *vcpu, enum vp_condition kind,
				uint64_t ns, const struct vp_xen_traced *traced)
{
	struct vp_condition_cpu cpu;

	if (!is_watched(its, vcpu->pid))
		return;
	if (!its->is_armed) {
		its->dropped++;
		return;
	}
	its->is_armed = false;
	its->has_fired = true;
	its->fired = (struct vp_fired){.time = traced->time,
				       .ns = ns,
				       .kind = kind,
				       .pid = vcpu->pid,
				       .tid = vcpu->tid,
				       .vcpu = vcpu->number,
				       .cpu = traced->pcpu,
				       .reason = vcpu->reason};
	vp_xen_states_slices(states, traced->pcpu, &cpu);
	vp_condition_find_thief(&cpu, &its->fired);
}

/* The vCPU gets the pCPU, or its cap is used up. */
static void evaluate_runstate(struct xen_conditions *its, const struct vp_xen_states *states,
			      const struct vp_xen_traced *traced)
{
	const struct vp_xen_record *record = &traced->record;
	const struct vp_account_vcpu *vcpu =
	    vp_xen_states_vcpu(states, record->domain, record->vcpu);

	if (!vcpu)
		return;
	const bool woken = vcpu->state == VP_STATE_WAKING;
	const bool waited = woken || vcpu->state == VP_STATE_PREEMPTED;
	const uint64_t ns = waited && traced->time > vcpu->since ? traced->time - vcpu->since : 0;
	if (record->after == VP_XEN_OFFLINE && vcpu->state != VP_STATE_THROTTLED &&
	    states->capped[vcpu - states->vcpus] &&
	    its->limits[VP_CONDITION_THROTTLED] != UINT64_MAX)
		xen_conditions_fire(its, states, vcpu, VP_CONDITION_THROTTLED, 0, traced);
	if (record->after != VP_XEN_RUNNING)
		return;
	if (ns > its->limits[VP_CONDITION_STEAL])
		xen_conditions_fire(its, states, vcpu, VP_CONDITION_STEAL, ns, traced);
	else if (woken && ns > its->limits[VP_CONDITION_WAKEUP])
		xen_conditions_fire(its, states, vcpu, VP_CONDITION_WAKEUP, ns, traced);
}

static void evaluate_entry(struct xen_conditions *its, const struct vp_xen_states *states,
			   const struct vp_xen_traced *traced)
{
	const struct vp_account_vcpu *vcpu = vp_xen_states_running(states, traced->pcpu);

	if (!vcpu || !(vcpu->flags & VP_EXIT_OPEN) || traced->time < vcpu->exit_at ||
	    vp_exit_reason_is_halt(states->vendor, vcpu->reason))
		return;
	uint64_t ns = traced->time - vcpu->exit_at;
	if (ns > its->limits[VP_CONDITION_EXIT])
		xen_conditions_fire(its, states, vcpu, VP_CONDITION_EXIT, ns, traced);
}

void vp_xen_conditions_take(struct vp_condition_watch *watch, const struct vp_xen_states *states,
			    const struct vp_xen_traced *traced)
{
	struct xen_conditions *its = xen_conditions_of(watch);

	if (!its->is_enabled || traced->time < states->begin)
		return;
	if (traced->record.event == VP_XEN_RUNSTATE)
		evaluate_runstate(its, states, traced);
	else if (traced->record.event == VP_XEN_ENTRY)
		evaluate_entry(its, states, traced);
}
