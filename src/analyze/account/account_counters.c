/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_counters.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"

static const char other[] = "other";

static struct vp_counted_vm *counted_vm_of(struct vp_account_counters *counters, uint32_t id)
{
	vp_vec_each (&counters->vms, vm)
		if (vm->id == id)
			return vm;
	struct vp_counted_vm new = {.id = id};
	snprintf(new.reasons[VP_COUNTED_REASONS].name, VP_EXIT_NAME_SIZE, "%s", other);
	new.thieves[VP_COUNTED_THIEVES].kind = "";
	snprintf(new.thieves[VP_COUNTED_THIEVES].name, VP_COUNTED_NAME, "%s", other);
	vp_vec_push(&counters->vms, new);
	return &counters->vms.at[counters->vms.count - 1];
}

static struct vp_counted_vcpu *counted_vcpu_of(struct vp_counted_vm *vm, uint32_t number)
{
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->number == number)
			return vcpu;
	vp_vec_push(&vm->vcpus, ((struct vp_counted_vcpu){.number = number}));
	return &vm->vcpus.at[vm->vcpus.count - 1];
}

static void note_moment(const struct vp_account_counters *counters, uint64_t ns,
			struct vp_counted_moment *moment)
{
	if (!ns)
		return;
	moment->ns = ns;
	moment->realtime = counters->realtime;
	snprintf(moment->recording, sizeof(moment->recording), "%s",
		 counters->recording ? counters->recording : "");
}

static void count_times(const struct vp_account_counters *counters, struct vp_counted_vm *vm,
			const struct vp_account_times *times)
{
	struct vp_counted_vcpu *vcpu = counted_vcpu_of(vm, times->vcpu);

	uint64_t before = vp_counted_vcpu_stolen(vcpu);
	for (size_t i = 0; i < VP_STATES; i++)
		vcpu->ns[i] += times->states[i];
	note_moment(counters, vp_counted_vcpu_stolen(vcpu) - before, &vcpu->stolen);
	vcpu->wakeups += times->wakeups;
	vcpu->preemptions += times->preemptions;
	vcpu->poll_wasted_ns += times->poll_wasted;
	for (size_t i = 0; i < VP_WAKE_BUCKETS; i++)
		vm->wakes[i] += times->wakes[i];
	vm->wake_ns += times->wake_ns;
	vm->absent = 0;
}

static struct vp_counted_reason *reason_slot(struct vp_counted_vm *vm, const char *name,
					     uint64_t ns)
{
	for (size_t i = 0; i < vm->n_reasons; i++)
		if (!strcmp(vm->reasons[i].name, name))
			return &vm->reasons[i];
	if (vm->n_reasons == VP_COUNTED_REASONS || ns < VP_COUNTED_LEAST_NS)
		return &vm->reasons[VP_COUNTED_REASONS];
	struct vp_counted_reason *slot = &vm->reasons[vm->n_reasons++];
	snprintf(slot->name, sizeof(slot->name), "%s", name);
	return slot;
}

static void count_exits(struct vp_counted_vm *vm, const struct vp_account_cost *cost)
{
	char name[VP_EXIT_NAME_SIZE];
	uint64_t ns = vp_account_cost_work(cost);
	struct vp_counted_reason *slot =
	    reason_slot(vm, vp_exit_reason_name(cost->vendor, cost->reason, name), ns);

	slot->count += cost->count;
	slot->ns += ns;
}

static const char *kind_of(const struct vp_account_theft *theft)
{
	switch (theft->kind) {
	case VP_BY_VCPU:
		return "vm";
	case VP_BY_TASK:
		return "task";
	case VP_BY_DEVICE:
	case VP_BY_SOFTIRQ:
	case VP_BY_VECTOR:
		return "interrupt";
	default:
		return NULL;
	}
}

static struct vp_counted_thief *thief_slot(struct vp_counted_vm *vm, const char *kind,
					   const char *name, uint64_t ns)
{
	for (size_t i = 0; i < vm->n_thieves; i++)
		if (!strcmp(vm->thieves[i].kind, kind) && !strcmp(vm->thieves[i].name, name))
			return &vm->thieves[i];
	if (vm->n_thieves == VP_COUNTED_THIEVES || ns < VP_COUNTED_LEAST_NS)
		return &vm->thieves[VP_COUNTED_THIEVES];
	struct vp_counted_thief *slot = &vm->thieves[vm->n_thieves++];
	slot->kind = kind;
	snprintf(slot->name, sizeof(slot->name), "%s", name);
	return slot;
}

/* Time on an idle pCPU has no thief; it is only in the vCPU's states. */
static void count_theft(const struct vp_account_counters *counters,
			const struct vp_account *account, struct vp_counted_vm *vm,
			const struct vp_account_theft *theft)
{
	const char *kind = kind_of(theft);
	uint64_t ns = theft->preempted + theft->waking + theft->irq;
	char name[VP_COUNTED_NAME];

	if (theft->kind == VP_BY_NOBODY)
		return;
	const struct vp_vm *owner =
	    theft->kind == VP_BY_VCPU ? vp_account_vm(account, theft->owner) : NULL;
	snprintf(name, sizeof(name), "%s", owner && owner->name ? owner->name : theft->comm);
	struct vp_counted_thief *slot =
	    kind ? thief_slot(vm, kind, name, ns) : &vm->thieves[VP_COUNTED_THIEVES];
	slot->ns += ns;
	note_moment(counters, ns, &slot->stolen);
}

static void drop_absent(struct vp_account_counters *counters)
{
	size_t kept = 0;

	vp_vec_each (&counters->vms, vm)
		if (vm->absent < VP_COUNTED_ABSENT)
			counters->vms.at[kept++] = *vm;
		else
			vp_vec_deinit(&vm->vcpus);
	counters->vms.count = kept;
}

static void count_vm(const struct vp_account_counters *counters, const struct vp_account *account,
		     uint32_t number, struct vp_counted_vm *vm)
{
	vp_account_each_of (account, times, number, times)
		count_times(counters, vm, times);
	for (size_t mode = 0; mode < VP_SAMPLE_MODES; mode++)
		vm->samples[mode] += account->of_vms.at[number].counted[mode];
	vp_account_each_of (account, costs, number, cost)
		count_exits(vm, cost);
	vp_account_each_of (account, thefts, number, theft)
		count_theft(counters, account, vm, theft);
}

/* Losses in the account are totals since the recorder's start; an account without new losses has
 * none. */
static void count_losses(struct vp_account_counters *counters, const struct vp_account *account)
{
	uint64_t all = account->lost.vcpus + account->lost.thieves + account->lost.sites;

	if (!all)
		return;
	counters->lost += all >= counters->lost_then ? all - counters->lost_then : all;
	counters->lost_then = all;
}

void vp_account_counters_add(struct vp_account_counters *counters, const struct vp_account *account)
{
	counters->intervals++;
	counters->has_samples |= account->has_counted_samples;
	count_losses(counters, account);
	vp_vec_each (&counters->vms, vm)
		vm->absent++;
	for (uint32_t i = 0; i < account->of_vms.count; i++)
		if (account->of_vms.at[i].times.first)
			count_vm(counters, account, i,
				 counted_vm_of(counters, vp_vm_id(&account->vms->at[i])));
	drop_absent(counters);
}

void vp_account_counters_note(struct vp_account_counters *counters, uint32_t id)
{
	counted_vm_of(counters, id)->absent = 0;
}

void vp_account_counters_deinit(struct vp_account_counters *counters)
{
	vp_vec_each (&counters->vms, vm)
		vp_vec_deinit(&vm->vcpus);
	vp_vec_deinit(&counters->vms);
	*counters = (struct vp_account_counters){0};
}

uint64_t vp_counted_vcpu_stolen(const struct vp_counted_vcpu *vcpu)
{
	return vcpu->ns[VP_STATE_PREEMPTED] + vcpu->ns[VP_STATE_WAKING] +
	       vcpu->ns[VP_STATE_THROTTLED] + vcpu->ns[VP_STATE_IRQ];
}
