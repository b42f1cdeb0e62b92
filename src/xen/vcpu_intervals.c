/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/vcpu_intervals.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "schema/account_terms.h"
#include "schema/event.h"
#include "schema/exit_class.h"
#include "xen/library.h"
#include "xen/trace.h"

/* Events of the class HVM_HANDLER (xen/event_types.h), without bit 0x100. */
enum {
	WIDE = 0x100,
	HANDLERS = 0x00082000,
	PF_INJECT = 0x00082002,
	INJ_EXC = 0x00082003,
	INJ_VIRQ = 0x00082004,
	REINJ_VIRQ = 0x00082005,
	MMIO_READ = 0x00082017,
	MMIO_WRITE = 0x00082217,
	NPF = 0x00082021,
	NPF_TYPE = 5,   /* index of the word with the page's type … */
	NPF_DEVICE = 4, /* … p2m_mmio_dm of Xen's asm-x86/p2m.h */
	/* Work for PV guests, as numbers above VP_PARAVIRTUAL_WORK. */
	PV_PAGE_FAULT = 4,
	PV_PTWR = 11,
	PV_PTWR_PAE = 12,
};

static bool vcpu_intervals_is_by_class(uint32_t index)
{
	return index >= VP_COUNT_BY_CLASS;
}

static enum vp_exit_class vcpu_intervals_class_of(uint32_t index)
{
	return (enum vp_exit_class)(index >= VP_COUNT_TIME_BY_CLASS ? index - VP_COUNT_TIME_BY_CLASS
								    : index - VP_COUNT_BY_CLASS);
}

/* Whether the event's records are of the class HVM_HANDLER. */
static bool needs_handlers(uint32_t index)
{
	enum vp_exit_class class = vcpu_intervals_is_by_class(index)
				       ? vcpu_intervals_class_of(index)
				       : VP_EXIT_CLASS_COUNT;

	return class == VP_EXITS_mmio || class == VP_EXITS_page_fault ||
	       index == VP_COUNT_inject_interrupt || index == VP_COUNT_inject_exception ||
	       index == VP_COUNT_inject_page_fault;
}

uint32_t vp_xen_intervals_mask(const struct vp_recipe *recipe, bool paravirtual)
{
	uint32_t mask = VP_XEN_TRACE_SCHED | VP_XEN_TRACE_EXITS;

	vp_vec_each (&recipe->events, event)
		if (event->event.source == VP_FROM_COUNT && needs_handlers(event->event.index))
			mask |= HANDLERS;
	return paravirtual ? mask | VP_XEN_TRACE_PV : mask;
}

void vp_xen_intervals_init(struct vp_xen_intervals *intervals, enum vp_vendor vendor)
{
	vp_xen_states_init(&intervals->states, vendor, false);
	intervals->subjects = vp_alloc(VP_XEN_SLOTS * sizeof(*intervals->subjects));
}

void vp_xen_intervals_deinit(struct vp_xen_intervals *intervals)
{
	if (!intervals->subjects)
		return;
	vp_xen_states_deinit(&intervals->states);
	free(intervals->subjects);
}

/* Time of the vCPU in a state up to `now`. */
static uint64_t vcpu_intervals_time_in(const struct vp_account_vcpu *vcpu, uint32_t state,
				       uint64_t now)
{
	uint32_t present = vcpu->state == VP_STATE_UNKNOWN ? vcpu->asleep : vcpu->state;

	return vcpu->states[state] +
	       (present == state && now > vcpu->since ? now - vcpu->since : 0);
}

/* Charges the open exit's time up to `now` to its class. */
static void vcpu_intervals_charge_exit(struct vp_xen_subject *subject,
				       const struct vp_account_vcpu *vcpu, uint64_t now)
{
	uint64_t kernel = vcpu_intervals_time_in(vcpu, VP_STATE_KERNEL, now);

	if (vcpu->flags & VP_EXIT_OPEN)
		subject->counts[VP_COUNT_TIME_BY_CLASS + subject->class] +=
		    kernel - subject->kernel;
	subject->kernel = kernel;
}

/* Sets the totals that follow from the vCPU's states. */
static void vcpu_intervals_sum(struct vp_xen_subject *subject, const struct vp_account_vcpu *vcpu,
			       uint64_t now)
{
	static const struct {
		uint8_t count, state;
	} parts[] = {
	    {VP_COUNT_time_running, VP_STATE_GUEST},     {VP_COUNT_time_running, VP_STATE_KERNEL},
	    {VP_COUNT_time_waiting, VP_STATE_PREEMPTED}, {VP_COUNT_time_waiting, VP_STATE_WAKING},
	    {VP_COUNT_time_waiting, VP_STATE_THROTTLED}, {VP_COUNT_time_blocked, VP_STATE_HALTED},
	    {VP_COUNT_time_blocked, VP_STATE_WAITING},   {VP_COUNT_time_guest, VP_STATE_GUEST},
	    {VP_COUNT_time_exits, VP_STATE_KERNEL}};
	uint64_t *counts = subject->counts;

	vcpu_intervals_charge_exit(subject, vcpu, now);
	for (uint32_t i = VP_COUNT_time; i <= VP_COUNT_time_exits; i++)
		counts[i] = 0;
	for (size_t i = 0; i < VP_ARRAY_SIZE(parts); i++)
		counts[parts[i].count] += vcpu_intervals_time_in(vcpu, parts[i].state, now);
	counts[VP_COUNT_time] = counts[VP_COUNT_time_running] + counts[VP_COUNT_time_waiting] +
				counts[VP_COUNT_time_blocked];
	counts[VP_COUNT_wakeups] = vcpu->wakeups;
	counts[VP_COUNT_preempted] = vcpu->preemptions;
}

bool vp_xen_intervals_has(uint32_t index, bool is_hvm, bool paravirtual)
{
	if (is_hvm || (index >= VP_COUNT_sched_in && index <= VP_COUNT_time_blocked))
		return true;
	if (!paravirtual || index >= VP_COUNT_TIME_BY_CLASS)
		return false;
	if (index == VP_COUNT_exits)
		return true;
	enum vp_exit_class class = vcpu_intervals_is_by_class(index)
				       ? vcpu_intervals_class_of(index)
				       : VP_EXIT_CLASS_COUNT;
	return class == VP_EXITS_hypercall || class == VP_EXITS_page_fault ||
	       class == VP_EXITS_other;
}

/* Passes on the present interval, which ended at `now`. */
static void vcpu_intervals_emit(const struct vp_xen_intervals *intervals,
				const struct vp_xen_subject *subject,
				const struct vp_account_vcpu *vcpu, uint64_t now, unsigned flags)
{
	const struct vp_recipe *recipe = intervals->recipe;
	struct {
		struct vp_interval head;
		struct vp_interval_value values[VP_EVENTS_MAX];
	} record = {.head = {.time = now,
			     .id = VP_ID_interval,
			     .flags = (uint16_t)flags,
			     .owner = vcpu->pid,
			     .tid = vcpu->tid,
			     .vcpu = vcpu->number,
			     .number = subject->number,
			     .values = (uint32_t)recipe->events.count,
			     .begin = subject->begin}};

	for (uint32_t i = 0; i < recipe->events.count; i++) {
		const struct vp_event *event = &recipe->events.at[i].event;
		bool has =
		    event->source == VP_FROM_COUNT &&
		    vp_xen_intervals_has(event->index, subject->is_hvm, intervals->paravirtual);
		record.values[i] = (struct vp_interval_value){
		    .time = now,
		    .id = VP_ID_interval_value,
		    .place = (uint16_t)i,
		    .live = has ? VP_LIVE_ALL : 0,
		    .value =
			has ? subject->counts[event->index] - subject->before[event->index] : 0};
	}
	intervals->take(intervals->context, subject->cpu, (char *)&record,
			sizeof(record.head) + recipe->events.count * sizeof(*record.values));
}

static void vcpu_intervals_close(struct vp_xen_intervals *intervals, uint32_t slot, uint64_t now,
				 unsigned flags)
{
	struct vp_xen_subject *subject = &intervals->subjects[slot];
	const struct vp_account_vcpu *vcpu = &intervals->states.vcpus[slot];

	if (now <= subject->begin)
		return;
	/* A later record may show that the present state is another one: what is in this interval
	 * stays. */
	vp_xen_states_charge(&intervals->states, slot, now);
	vcpu_intervals_sum(subject, vcpu, now);
	if (subject->damaged)
		intervals->lost++;
	else
		vcpu_intervals_emit(intervals, subject, vcpu, now, flags);
	memcpy(subject->before, subject->counts, sizeof(subject->before));
	subject->damaged = intervals->losing;
	subject->begin = now;
	subject->number++;
	subject->n_left = intervals->recipe->width;
}

static void vcpu_intervals_start(struct vp_xen_intervals *intervals, uint32_t slot, uint64_t now)
{
	const struct vp_account_vcpu *vcpu = &intervals->states.vcpus[slot];
	struct vp_xen_subject *subject = &intervals->subjects[slot];

	*subject = (struct vp_xen_subject){
	    .begun = true, .tid = vcpu->tid, .begin = now, .n_left = intervals->recipe->width};
	subject->is_hvm = intervals->is_hvm(intervals->context, vcpu->pid - 1);
	vcpu_intervals_sum(subject, vcpu, now);
	memcpy(subject->before, subject->counts, sizeof(subject->before));
}

void vp_xen_intervals_begin(struct vp_xen_intervals *intervals, uint64_t now)
{
	intervals->states.begin = intervals->border = now;
	for (uint32_t slot = 0; slot < intervals->states.n_slots; slot++)
		if (intervals->states.vcpus[slot].begin)
			vcpu_intervals_start(intervals, slot, now);
}

static bool vcpu_intervals_runs(const struct vp_account_vcpu *vcpu)
{
	uint32_t present = vcpu->state == VP_STATE_UNKNOWN ? vcpu->asleep : vcpu->state;

	return present == VP_STATE_GUEST || present == VP_STATE_KERNEL;
}

/* Ends intervals of running vCPUs at each border up to `now`. */
static void vcpu_intervals_pass_borders(struct vp_xen_intervals *intervals, uint64_t now)
{
	const uint64_t width = intervals->recipe->width;

	if (intervals->recipe->unit != VP_UNIT_TIME || !width)
		return;
	while (now >= intervals->border + width) {
		intervals->border += width;
		for (uint32_t slot = 0; slot < intervals->states.n_slots; slot++)
			if (intervals->subjects[slot].begun &&
			    vcpu_intervals_runs(&intervals->states.vcpus[slot]))
				vcpu_intervals_close(intervals, slot, intervals->border, 0);
	}
}

/* The vCPU, which is not on a pCPU, has an event now: its interval ends at the last border. */
static void vcpu_intervals_wake(struct vp_xen_intervals *intervals, uint32_t slot)
{
	if (intervals->recipe->unit == VP_UNIT_TIME && intervals->subjects[slot].begun)
		vcpu_intervals_close(intervals, slot, intervals->border, 0);
}

static void vcpu_intervals_take_runstate(struct vp_xen_intervals *intervals,
					 const struct vp_xen_traced *traced)
{
	const struct vp_xen_record *record = &traced->record;
	struct vp_xen_states *states = &intervals->states;
	uint32_t slot = vp_xen_states_slot(states, record->domain, record->vcpu);

	if (slot < VP_XEN_SLOTS)
		vcpu_intervals_wake(intervals, slot);
	vp_xen_states_take(states, traced);
	slot = vp_xen_states_slot(states, record->domain, record->vcpu);
	if (slot == VP_XEN_SLOTS)
		return;
	struct vp_xen_subject *subject = &intervals->subjects[slot];
	if (!subject->begun || subject->tid != states->vcpus[slot].tid)
		vcpu_intervals_start(intervals, slot, traced->time);
	if (record->before == VP_XEN_RUNNING && record->after != VP_XEN_RUNNING)
		subject->counts[VP_COUNT_sched_out]++;
	if (record->after != VP_XEN_RUNNING || record->before == VP_XEN_RUNNING)
		return;
	subject->counts[VP_COUNT_sched_in]++;
	subject->counts[VP_COUNT_migrations] += subject->ran && subject->cpu != traced->pcpu;
	subject->ran = true;
	subject->cpu = traced->pcpu;
}

static unsigned vcpu_intervals_class(const struct vp_xen_intervals *intervals, uint32_t reason)
{
	return intervals->states.vendor == VP_VENDOR_INTEL ? vp_exit_class_of_intel(reason)
							   : vp_exit_class_of_amd(reason);
}

/* Class of the reason for which a PV guest entered Xen. */
static unsigned vcpu_intervals_class_of_work(uint32_t reason)
{
	const uint32_t number = reason & ~(uint32_t)VP_PARAVIRTUAL;

	if (number < VP_PARAVIRTUAL_TRAP)
		return VP_EXITS_hypercall;
	if (number == VP_PARAVIRTUAL_WORK + PV_PAGE_FAULT ||
	    number == VP_PARAVIRTUAL_WORK + PV_PTWR || number == VP_PARAVIRTUAL_WORK + PV_PTWR_PAE)
		return VP_EXITS_page_fault;
	return VP_EXITS_other;
}

/* An exit counts in the interval in which it ends. */
static void vcpu_intervals_count_exit(struct vp_xen_subject *subject)
{
	subject->counts[VP_COUNT_exits]++;
	subject->counts[VP_COUNT_BY_CLASS + subject->class]++;
}

static void vcpu_intervals_take_entry(struct vp_xen_intervals *intervals, uint32_t slot,
				      const struct vp_xen_traced *traced)
{
	struct vp_xen_subject *subject = &intervals->subjects[slot];
	struct vp_account_vcpu *vcpu = &intervals->states.vcpus[slot];
	const bool open = vcpu->flags & VP_EXIT_OPEN;

	vcpu_intervals_charge_exit(subject, vcpu, traced->time);
	vp_xen_states_take(&intervals->states, traced);
	subject->counts[VP_COUNT_entries]++;
	if (!open)
		return;
	vcpu_intervals_count_exit(subject);
	if (intervals->recipe->unit == VP_UNIT_EXITS && !--subject->n_left)
		vcpu_intervals_close(intervals, slot, traced->time, 0);
}

static void vcpu_intervals_take_handler(struct vp_xen_subject *subject,
					const struct vp_xen_record *record)
{
	switch (record->id & ~(uint32_t)WIDE) {
	case INJ_VIRQ:
	case REINJ_VIRQ:
		subject->counts[VP_COUNT_inject_interrupt]++;
		break;
	case PF_INJECT:
		subject->counts[VP_COUNT_inject_page_fault]++;
		subject->counts[VP_COUNT_inject_exception]++;
		break;
	case INJ_EXC:
		subject->counts[VP_COUNT_inject_exception]++;
		break;
	case NPF:
		if (record->n_words > NPF_TYPE && record->words[NPF_TYPE] == NPF_DEVICE)
			subject->class = VP_EXITS_mmio;
		break;
	case MMIO_READ:
	case MMIO_WRITE:
		if (subject->class == VP_EXITS_page_fault)
			subject->class = VP_EXITS_mmio;
		break;
	}
}

/* An event of the vCPU that has the pCPU. */
static void vcpu_intervals_take_running(struct vp_xen_intervals *intervals,
					const struct vp_xen_traced *traced)
{
	struct vp_xen_states *states = &intervals->states;
	const uint32_t slot = vp_xen_states_running_slot(states, traced->pcpu);

	if (slot == VP_XEN_SLOTS || !intervals->subjects[slot].begun)
		return;
	struct vp_xen_subject *subject = &intervals->subjects[slot];
	switch (traced->record.event) {
	case VP_XEN_ENTRY:
		vcpu_intervals_take_entry(intervals, slot, traced);
		break;
	case VP_XEN_EXIT:
		vcpu_intervals_charge_exit(subject, &states->vcpus[slot], traced->time);
		vp_xen_states_take(states, traced);
		subject->class = vcpu_intervals_class(intervals, traced->record.reason);
		break;
	case VP_XEN_WORK:
		subject->class = vcpu_intervals_class_of_work(traced->record.reason);
		vcpu_intervals_count_exit(subject);
		break;
	default:
		vcpu_intervals_take_handler(subject, &traced->record);
		break;
	}
}

/* The present interval of any vCPU may lack the missing records. */
void vp_xen_intervals_lose(struct vp_xen_intervals *intervals, bool losing)
{
	if (losing && !intervals->losing)
		for (uint32_t slot = 0; slot < intervals->states.n_slots; slot++)
			intervals->subjects[slot].damaged = true;
	intervals->losing = losing;
}

void vp_xen_intervals_take(struct vp_xen_intervals *intervals, const struct vp_xen_traced *traced)
{
	if (traced->time < intervals->states.begin)
		return;
	vcpu_intervals_pass_borders(intervals, traced->time);
	if (traced->record.event != VP_XEN_RUNSTATE)
		vcpu_intervals_take_running(intervals, traced);
	else if (traced->record.domain == VP_XEN_DOMID_IDLE)
		vp_xen_states_take(&intervals->states, traced);
	else
		vcpu_intervals_take_runstate(intervals, traced);
}

void vp_xen_intervals_pass(struct vp_xen_intervals *intervals, uint64_t known)
{
	vcpu_intervals_pass_borders(intervals, known);
}

void vp_xen_intervals_leave(struct vp_xen_intervals *intervals, uint32_t slot, uint64_t now)
{
	struct vp_xen_subject *subject = &intervals->subjects[slot];

	if (subject->begun)
		vcpu_intervals_close(intervals, slot, now, VP_INTERVAL_PARTIAL | VP_INTERVAL_LAST);
	*subject = (struct vp_xen_subject){0};
}

void vp_xen_intervals_end(struct vp_xen_intervals *intervals, uint64_t now)
{
	for (uint32_t slot = 0; slot < intervals->states.n_slots; slot++)
		vp_xen_intervals_leave(intervals, slot, now);
}
