/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/lanes.h"

#include <inttypes.h>

#include "analyze/common/filter.h"
#include "analyze/trace/lane_states.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/exit_reason.h"
#include "schema/records.h"
#include "schema/trace_records.h"
#include "schema/vm.h"
#include "store/packet.h"

/*
 * MAX_HELD: where KVM tells of an exit only after the thread may have lost its pCPU, periods wait
 * for what the exit says of the guest's thread.
 */
enum { MAX_PCPUS = 1 << 16, MAX_VCPUS = 1 << 16, MAX_HELD = 64 };

struct pcpu {
	bool known; /* who has it */
	uint32_t tid;
	uint64_t since;
	uint32_t waiting; /* the first vCPU in its run queue, its index + 1; or 0 */
};

struct vcpu {
	uint32_t vm, number, tid;
	bool known; /* its state */
	enum vp_lane_state state;
	uint64_t since, wait_since;
	uint32_t pcpu;
	bool has_waker;
	uint32_t waker_tid, waker_pcpu;
	uint32_t next; /* that waits for the same pCPU, as there */
	bool halts;    /* its last exit was one */
	/* The guest's thread, as of the last exit. */
	bool has_guest, middle;
	uint32_t guest_tid, guest_pid;
	bool exit_pending; /* it left the guest, and its exit was not reported yet: slices are
			    * held */
	VP_VEC(struct vp_period) held;
	struct vp_lane_switches switches;
};

struct vp_lanes {
	struct vp_lanes_options options;
	struct vp_feed feed;
	bool opened, ended;
	bool *chosen; /* VMs, by their index in the feed's list */
	VP_VEC(struct pcpu) pcpus;
	VP_VEC(struct vcpu) vcpus;
	struct vp_map vcpu_of_tid, vcpu_of_key;
	struct vp_intern texts;        /* names of VMs that the recording does not list */
	struct vp_lane_states *states; /* does all, if the feed tells them; else NULL */
};

static bool lanes_is_of_vm(struct vp_lanes *lanes, const struct vp_period *period)
{
	const struct vp_vm *vm;

	if (!lanes->options.vm)
		return true;
	vm = period->has_vcpu ? vp_vms_find(&lanes->feed.vms, period->vm) : NULL;
	return vm && lanes->chosen[vm - lanes->feed.vms.at];
}

static bool lanes_is_of_pcpus(const struct vp_lanes_options *options, uint32_t pcpu)
{
	for (size_t i = 0; i < options->n_pcpus; i++)
		if ((uint32_t)options->pcpus[i] == pcpu)
			return true;
	return !options->n_pcpus;
}

static void lanes_emit(struct vp_lanes *lanes, struct vp_period period)
{
	const struct vp_lanes_options *options = &lanes->options;

	if (period.begin < options->from)
		period.begin = options->from;
	if (period.end > options->to) {
		period.end = options->to;
		period.wait_ends = false;
	}
	if (period.begin >= period.end && !(period.wait_ends && period.begin == period.end))
		return;
	if (lanes_is_of_vm(lanes, &period) && lanes_is_of_pcpus(options, period.pcpu))
		options->take(options->context, &period);
}

/* Held slices get the guest thread of the exit: `changed` if it was another one before, NULL:
 * unknown. */
static void let_go(struct vp_lanes *lanes, struct vcpu *vcpu, bool reported, bool changed)
{
	vp_vec_each (&vcpu->held, period) {
		if (period->state == VP_LANE_GUEST) {
			if (period->certainty == VP_LANE_EXACT && (!reported || changed))
				period->certainty = VP_LANE_UNCERTAIN;
		} else {
			period->has_guest = reported && vcpu->has_guest;
			period->guest_tid = vcpu->guest_tid;
			period->guest_pid = vcpu->guest_pid;
			period->guest_comm =
			    period->has_guest
				? vp_feed_guest_comm(&lanes->feed, vcpu->vm, vcpu->guest_tid)
				: NULL;
		}
		lanes_emit(lanes, *period);
	}
	vcpu->held.count = 0;
	vcpu->exit_pending = false;
}

static struct pcpu *lanes_pcpu_of(struct vp_lanes *lanes, uint32_t number)
{
	if (number >= MAX_PCPUS)
		return NULL;
	while (lanes->pcpus.count <= number)
		vp_vec_push(&lanes->pcpus, (struct pcpu){0});
	return &lanes->pcpus.at[number];
}

static bool lanes_waits(const struct vcpu *vcpu)
{
	return vcpu->known && (vcpu->state == VP_LANE_STOLEN || vcpu->state == VP_LANE_WAKING);
}

static enum vp_lane_certainty certainty_of(const struct vcpu *vcpu)
{
	if (vcpu->state != VP_LANE_GUEST || !vcpu->has_guest)
		return VP_LANE_UNKNOWN;
	return vcpu->middle ? VP_LANE_UNCERTAIN : VP_LANE_EXACT;
}

/* The vCPU's present period as it is if it ends now. */
static struct vp_period lanes_period_of(struct vp_lanes *lanes, const struct vcpu *vcpu,
					uint64_t now)
{
	struct vp_period period = {
	    .lane = VP_LANE_VCPU,
	    .state = vcpu->state,
	    .begin = vcpu->since,
	    .end = now,
	    .pcpu = vcpu->pcpu,
	    .tid = vcpu->tid,
	    .comm = vp_feed_comm(&lanes->feed, vcpu->tid),
	    .has_vcpu = true,
	    .vm = vcpu->vm,
	    .vcpu = vcpu->number,
	    .has_guest = vcpu->has_guest,
	    .guest_tid = vcpu->guest_tid,
	    .guest_pid = vcpu->guest_pid,
	    .certainty = certainty_of(vcpu),
	};

	if (vcpu->has_guest)
		period.guest_comm = vp_feed_guest_comm(&lanes->feed, vcpu->vm, vcpu->guest_tid);
	const struct pcpu *where = lanes_waits(vcpu) && vcpu->pcpu < lanes->pcpus.count
				       ? &lanes->pcpus.at[vcpu->pcpu]
				       : NULL;
	if (vcpu->state == VP_LANE_WAKING && vcpu->has_waker) {
		period.has_waker = true;
		period.waker_tid = vcpu->waker_tid;
		period.waker_pcpu = vcpu->waker_pcpu;
		period.waker_comm = vp_feed_comm(&lanes->feed, vcpu->waker_tid);
	}
	/* Damaged streams may not be in order. */
	if (lanes_waits(vcpu))
		period.wait_begin = vcpu->wait_since < vcpu->since ? vcpu->wait_since : vcpu->since;
	if (where && where->known && where->tid != vcpu->tid) {
		period.has_thief = true;
		period.thief_tid = where->tid;
		period.thief_comm = vp_feed_comm(&lanes->feed, where->tid);
	}
	return period;
}

static void lanes_begin_wait(struct vp_lanes *lanes, struct vcpu *vcpu)
{
	struct pcpu *where = lanes_pcpu_of(lanes, vcpu->pcpu);

	if (!where) {
		vcpu->pcpu = VP_NO_PCPU;
		return;
	}
	vcpu->next = where->waiting;
	where->waiting = (uint32_t)(vcpu - lanes->vcpus.at) + 1;
}

static void lanes_end_wait(struct vp_lanes *lanes, struct vcpu *vcpu)
{
	struct pcpu *where = lanes_pcpu_of(lanes, vcpu->pcpu);
	uint32_t own = (uint32_t)(vcpu - lanes->vcpus.at) + 1;

	if (!where)
		return;
	uint32_t *link = &where->waiting;
	while (*link && *link != own)
		link = &lanes->vcpus.at[*link - 1].next;
	if (*link)
		*link = vcpu->next;
}

static void close_period(struct vp_lanes *lanes, struct vcpu *vcpu, struct vp_period *period)
{
	if (!vcpu->known)
		return;
	if (vcpu->held.count == MAX_HELD)
		let_go(lanes, vcpu, false, false);
	if (vcpu->exit_pending)
		vp_vec_push(&vcpu->held, *period);
	else
		lanes_emit(lanes, *period);
}

/* The vCPU is in that state from now on. */
static void go_on(struct vp_lanes *lanes, struct vcpu *vcpu, enum vp_lane_state state,
		  uint32_t pcpu, uint64_t now)
{
	struct vp_period period = lanes_period_of(lanes, vcpu, now);
	bool waited = lanes_waits(vcpu);

	period.wait_ends = waited && state == VP_LANE_HOST;
	close_period(lanes, vcpu, &period);
	if (waited)
		lanes_end_wait(lanes, vcpu);
	vcpu->known = true;
	vcpu->state = state;
	vcpu->since = now;
	vcpu->pcpu = pcpu;
	if (lanes_waits(vcpu) && !waited)
		vcpu->wait_since = now;
	if (lanes_waits(vcpu))
		lanes_begin_wait(lanes, vcpu);
}

static struct vcpu *vcpu_of_tid(const struct vp_lanes *lanes, uint32_t tid)
{
	const uint32_t *index = tid ? vp_map_find(&lanes->vcpu_of_tid, tid) : NULL;

	return index ? &lanes->vcpus.at[*index] : NULL;
}

/* For one with an unknown number: its thread's. */
static uint64_t lanes_key_of(uint32_t vm, uint32_t number, uint32_t tid)
{
	return (uint64_t)vm << 32 | (number == VP_VCPU_UNKNOWN ? tid | 1U << 31 : number);
}

/* The vCPU, known from now on; its thread may be another one than before. NULL: no recording has as
 * many. */
static struct vcpu *lanes_vcpu_of(struct vp_lanes *lanes, uint32_t vm, uint32_t number,
				  uint32_t tid)
{
	struct vcpu *known = vcpu_of_tid(lanes, tid);
	bool inserted;

	if (known && known->vm == vm && (known->number == number || number == VP_VCPU_UNKNOWN))
		return known;
	if (lanes->vcpus.count == MAX_VCPUS)
		return NULL;
	uint32_t *index = vp_map_insert(&lanes->vcpu_of_key, lanes_key_of(vm, number, tid),
					(uint32_t)lanes->vcpus.count, &inserted);
	if (inserted)
		vp_vec_push(&lanes->vcpus, ((struct vcpu){.vm = vm, .number = number, .tid = tid}));
	uint32_t at = *index;
	lanes->vcpus.at[at].tid = tid;
	*vp_map_insert(&lanes->vcpu_of_tid, tid, at, &inserted) = at;
	return &lanes->vcpus.at[at];
}

/* Those that wait for that pCPU have another thief from now on. */
static void change_thief(struct vp_lanes *lanes, const struct pcpu *where, uint64_t now)
{
	for (uint32_t index = where->waiting; index; index = lanes->vcpus.at[index - 1].next) {
		struct vcpu *vcpu = &lanes->vcpus.at[index - 1];
		struct vp_period period = lanes_period_of(lanes, vcpu, now);
		if (vcpu->since == now)
			continue;
		close_period(lanes, vcpu, &period);
		vcpu->since = now;
	}
}

static void emit_pcpu(struct vp_lanes *lanes, const struct pcpu *pcpu, uint32_t number,
		      uint64_t now)
{
	const struct vcpu *vcpu = vcpu_of_tid(lanes, pcpu->tid);

	if (!pcpu->known)
		return;
	lanes_emit(lanes, (struct vp_period){.lane = VP_LANE_PCPU,
					     .state = pcpu->tid ? VP_LANE_RUNNING : VP_LANE_IDLE,
					     .begin = pcpu->since,
					     .end = now,
					     .pcpu = number,
					     .tid = pcpu->tid,
					     .comm = vp_feed_comm(&lanes->feed, pcpu->tid),
					     .has_vcpu = vcpu != NULL,
					     .vm = vcpu ? vcpu->vm : 0,
					     .vcpu = vcpu ? vcpu->number : 0});
}

/* In the guest, and something after it was lost: until when, and who ran then, is not known. */
static void doubt_guest(struct vp_lanes *lanes, struct vcpu *vcpu, uint64_t now)
{
	struct vp_period period = lanes_period_of(lanes, vcpu, now);

	if (!vcpu->known || vcpu->state != VP_LANE_GUEST)
		return;
	if (period.certainty == VP_LANE_EXACT)
		period.certainty = VP_LANE_UNCERTAIN;
	close_period(lanes, vcpu, &period);
	vcpu->known = false;
}

static void lose_pcpu(struct vp_lanes *lanes, struct vcpu *vcpu, const struct vp_feed_event *event)
{
	const struct vp_trace_sched_switch *change = event->sched_switch;
	enum vp_lane_state state = vcpu->halts ? VP_LANE_HALTED : VP_LANE_BLOCKED;
	bool runnable = change->preempted || !change->prev_state;

	vcpu->exit_pending |= vcpu->known && vcpu->state == VP_LANE_GUEST;
	go_on(lanes, vcpu, runnable ? VP_LANE_STOLEN : state, runnable ? event->pcpu : VP_NO_PCPU,
	      event->time);
}

static void lanes_take_switch(struct vp_lanes *lanes, const struct vp_feed_event *event)
{
	const struct vp_trace_sched_switch *change = event->sched_switch;
	struct pcpu *pcpu = lanes_pcpu_of(lanes, event->pcpu);
	struct vcpu *next = vcpu_of_tid(lanes, change->next_tid);
	struct vcpu *prev = vcpu_of_tid(lanes, change->prev_tid);

	if (!pcpu)
		return;
	if (pcpu->known && pcpu->tid != change->prev_tid)
		pcpu->known = false; /* a switch between was lost */
	emit_pcpu(lanes, pcpu, event->pcpu, event->time);
	/* Waiting vCPUs waited until now for the thread that leaves. */
	if (next)
		doubt_guest(lanes, next, event->time);
	if (next)
		go_on(lanes, next, VP_LANE_HOST, event->pcpu, event->time);
	change_thief(lanes, pcpu, event->time);
	pcpu->known = true;
	pcpu->tid = change->next_tid;
	pcpu->since = event->time;
	if (prev)
		lose_pcpu(lanes, prev, event);
}

static void take_wakeup(struct vp_lanes *lanes, const struct vp_feed_event *event)
{
	struct vcpu *vcpu = vcpu_of_tid(lanes, event->sched_wakeup->woken_tid);
	const struct pcpu *where = lanes_pcpu_of(lanes, event->pcpu);

	if (!vcpu || !vcpu->known ||
	    (vcpu->state != VP_LANE_HALTED && vcpu->state != VP_LANE_BLOCKED))
		return;
	go_on(lanes, vcpu, VP_LANE_WAKING, event->sched_wakeup->target_cpu, event->time);
	vcpu->has_waker = where && where->known;
	vcpu->waker_tid = where ? where->tid : 0;
	vcpu->waker_pcpu = event->pcpu;
}

static void lanes_take_entry(struct vp_lanes *lanes, const struct vp_feed_event *event)
{
	const struct vp_trace_kvm_entry *entry = event->kvm_entry;
	struct vcpu *vcpu = lanes_vcpu_of(lanes, entry->vm, entry->vcpu, entry->tid);

	if (!vcpu)
		return;
	if (vcpu->exit_pending)
		let_go(lanes, vcpu, false, false);
	doubt_guest(lanes, vcpu, event->time);
	go_on(lanes, vcpu, VP_LANE_GUEST, event->pcpu, event->time);
}

static void lanes_take_exit(struct vp_lanes *lanes, const struct vp_feed_event *event)
{
	const struct vp_trace_kvm_exit *exit = event->kvm_exit;
	struct vcpu *vcpu = lanes_vcpu_of(lanes, exit->vm, exit->vcpu, exit->tid);

	if (!vcpu)
		return;
	vcpu->halts = vp_exit_reason_is_halt(exit->vendor, exit->reason);
	if (vcpu->exit_pending)
		let_go(lanes, vcpu, true, false);
	if (!vcpu->known || vcpu->state == VP_LANE_GUEST)
		go_on(lanes, vcpu, VP_LANE_HOST, event->pcpu, event->time);
}

static void lanes_count_switches(struct vp_lanes *lanes, struct vcpu *vcpu,
				 const struct vp_feed_event *event)
{
	const struct vp_trace_guest_switch *change = event->guest_switch;

	if (event->time < lanes->options.from || event->time > lanes->options.to)
		return;
	vcpu->switches.made += change->switches;
	vcpu->switches.seen += change->switches != 0;
	vcpu->switches.jumps += (change->switch_flags & VP_SWITCH_JUMPED) != 0;
	vcpu->switches.begins += (change->switch_flags & VP_SWITCH_FIRST) != 0;
}

/* Comes before the exit at which it was seen. */
static void take_guest_switch(struct vp_lanes *lanes, const struct vp_feed_event *event)
{
	const struct vp_trace_guest_switch *change = event->guest_switch;
	struct vcpu *vcpu = lanes_vcpu_of(lanes, change->vm, change->vcpu, change->tid);
	bool was_in_guest = vcpu && vcpu->known && vcpu->state == VP_LANE_GUEST;

	if (!vcpu)
		return;
	lanes_count_switches(lanes, vcpu, event);
	if (was_in_guest) {
		struct vp_period period = lanes_period_of(lanes, vcpu, event->time);
		period.certainty = vcpu->has_guest ? VP_LANE_UNCERTAIN : VP_LANE_UNKNOWN;
		period.switches = change->switches;
		close_period(lanes, vcpu, &period);
		vcpu->known = false;
	} else if (vcpu->exit_pending) {
		vp_vec_each (&vcpu->held, period)
			if (period->state == VP_LANE_GUEST)
				period->switches = change->switches;
	}
	vcpu->has_guest = !(change->switch_flags & VP_SWITCH_UNKNOWN);
	vcpu->middle = change->switch_flags & VP_SWITCH_MIDDLE;
	vcpu->guest_tid = change->guest_tid;
	vcpu->guest_pid = change->guest_pid;
	if (vcpu->exit_pending)
		let_go(lanes, vcpu, true, true);
	if (was_in_guest)
		go_on(lanes, vcpu, VP_LANE_HOST, event->pcpu, event->time);
}

static void emit_of_states(void *context, const struct vp_period *period)
{
	lanes_emit(context, *period);
}

static void lanes_take_event(struct vp_lanes *lanes, const struct vp_feed_event *event)
{
	if (lanes->states) {
		vp_lane_states_take(lanes->states, event);
		return;
	}
	switch (event->kind) {
	case VP_TRACE_KIND_sched_switch:
		lanes_take_switch(lanes, event);
		break;
	case VP_TRACE_KIND_sched_wakeup:
	case VP_TRACE_KIND_sched_wakeup_new:
		take_wakeup(lanes, event);
		break;
	case VP_TRACE_KIND_kvm_entry:
		lanes_take_entry(lanes, event);
		break;
	case VP_TRACE_KIND_kvm_exit:
		lanes_take_exit(lanes, event);
		break;
	case VP_TRACE_KIND_guest_switch:
		take_guest_switch(lanes, event);
		break;
	default:
		break;
	}
}

/* Open slices at the end are passed on as far as they are known. */
static void lanes_end(struct vp_lanes *lanes)
{
	uint64_t now = lanes->feed.last;

	if (lanes->states)
		vp_lane_states_end(lanes->states);
	vp_vec_each (&lanes->vcpus, vcpu) {
		struct vp_period period = lanes_period_of(lanes, vcpu, now);
		if (period.certainty == VP_LANE_EXACT)
			period.certainty = VP_LANE_UNCERTAIN; /* no exit said who ran */
		close_period(lanes, vcpu, &period);
		let_go(lanes, vcpu, false, false);
	}
	for (size_t i = 0; i < lanes->pcpus.count; i++)
		emit_pcpu(lanes, &lanes->pcpus.at[i], (uint32_t)i, now);
	lanes->ended = true;
}

bool vp_lanes_read(struct vp_lanes *lanes, uint64_t events)
{
	struct vp_feed_event event;

	for (uint64_t i = 0; !lanes->ended && i < events; i++) {
		if (!vp_feed_next(&lanes->feed, &event))
			lanes_end(lanes);
		else
			lanes_take_event(lanes, &event);
	}
	return !lanes->ended;
}

static void lanes_add_vcpus(struct vp_lanes *lanes)
{
	vp_vec_each (&lanes->feed.vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->tid)
				lanes_vcpu_of(lanes, vp_vm_id(vm), vcpu->number, vcpu->tid);
}

static struct vp_error *lanes_open_all(const char *directory, struct vp_lanes *lanes)
{
	const struct vp_lanes_options *options = &lanes->options;

	VP_TRY(vp_feed_open(directory, &lanes->feed));
	lanes->opened = true;
	VP_TRY(vp_filter_choose_vms(&lanes->feed.vms, options->vm, &lanes->chosen));
	if (lanes->feed.by_states)
		lanes->states = vp_lane_states_new(&lanes->feed, emit_of_states, lanes);
	else
		lanes_add_vcpus(lanes);
	return NULL;
}

struct vp_error *vp_lanes_open(const char *directory, const struct vp_lanes_options *options,
			       struct vp_lanes **ret)
{
	struct vp_lanes *lanes = vp_alloc(sizeof(*lanes));

	lanes->options = *options;
	struct vp_error *error = lanes_open_all(directory, lanes);
	if (error)
		vp_lanes_close(lanes);
	else
		*ret = lanes;
	return error;
}

void vp_lanes_close(struct vp_lanes *lanes)
{
	if (lanes->opened)
		vp_feed_close(&lanes->feed);
	vp_vec_each (&lanes->vcpus, vcpu)
		vp_vec_deinit(&vcpu->held);
	vp_lane_states_free(lanes->states);
	free(lanes->chosen);
	vp_vec_deinit(&lanes->vcpus);
	vp_vec_deinit(&lanes->pcpus);
	vp_map_deinit(&lanes->vcpu_of_tid);
	vp_map_deinit(&lanes->vcpu_of_key);
	vp_intern_deinit(&lanes->texts);
	free(lanes);
}

const struct vp_feed *vp_lanes_feed(const struct vp_lanes *lanes)
{
	return &lanes->feed;
}

const char *vp_lanes_vm(struct vp_lanes *lanes, uint32_t id)
{
	const struct vp_vm *vm = vp_vms_find(&lanes->feed.vms, id);

	if (vm)
		return vm->name;
	VP_AUTO_FREE char *text = vp_format("%" PRIu32, id);
	return vp_intern_text(&lanes->texts, vp_intern_string(&lanes->texts, text));
}

struct vp_lane_switches vp_lanes_switches(const struct vp_lanes *lanes, uint32_t vm, uint32_t vcpu,
					  uint32_t tid)
{
	const uint32_t *index = vp_map_find(&lanes->vcpu_of_key, lanes_key_of(vm, vcpu, tid));

	return index ? lanes->vcpus.at[*index].switches : (struct vp_lane_switches){0};
}
