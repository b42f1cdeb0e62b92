/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/track_states.h"

#include <inttypes.h>

#include "analyze/trace/guest_switches.h"
#include "analyze/trace/trace_feed.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/packet.h"

/* RUNS: latest runs kept per pCPU, for vCPUs that wait for it. NOBODY: index of an idle pCPU's
 * owner. */
enum { MAX_PCPUS = 1 << 16, MAX_VCPUS = 1 << 16, MAX_SWITCHES = 1 << 20, RUNS = 512 };
#define NOBODY UINT32_MAX

/* A time during which a vCPU owned a pCPU, including the switch to it. */
struct run {
	uint64_t begin, end;
	uint32_t index; /* index of the vCPU, or NOBODY */
};

struct pcpu {
	bool known; /* the pCPU has, or last had, a known vCPU: */
	uint32_t index;
	uint64_t begin;        /* start of the switch to it */
	uint64_t since, until; /* start, and last time at which it is known to have the pCPU */
	uint64_t n_turns;
	VP_VEC(struct run) runs; /* the latest RUNS: number n at n % RUNS */
};

/* A context switch of the VM's kernel on one of its vCPUs. */
struct thread_switch {
	uint64_t time;
	uint32_t prev, next;
};

struct vcpu {
	uint32_t vm, number, tid;
	bool is_host, has_thread;
	uint32_t thread;                       /* current thread */
	VP_VEC(struct thread_switch) switches; /* since the end of the previous state */
};

struct vp_track_states {
	const struct vp_feed *feed;
	void (*emit)(void *context, const struct vp_track_slice *slice);
	void *context;
	VP_VEC(struct pcpu) pcpus;
	VP_VEC(struct vcpu) vcpus;
	struct vp_map vcpu_of_key;
	struct vp_intern texts;
	uint32_t host; /* VM number of the host */
	bool has_host;
	struct vp_guest_switches *guest_events;
};

struct vp_error *vp_track_states_new(const char *directory, const struct vp_feed *feed,
				     void (*emit)(void *context,
						  const struct vp_track_slice *slice),
				     void *context, struct vp_track_states **ret)
{
	struct vp_guest_switches *guest_events;

	VP_TRY(vp_guest_switches_open(directory, &feed->vms, &guest_events));
	struct vp_track_states *states = vp_alloc(sizeof(*states));
	*states = (struct vp_track_states){
	    .feed = feed, .emit = emit, .context = context, .guest_events = guest_events};
	vp_vec_each (&feed->vms, vm) {
		if (!vp_vm_is_host(vm))
			continue;
		states->has_host = true;
		states->host = vp_vm_id(vm);
	}
	*ret = states;
	return NULL;
}

void vp_track_states_free(struct vp_track_states *states)
{
	if (!states)
		return;
	vp_vec_each (&states->pcpus, pcpu)
		vp_vec_deinit(&pcpu->runs);
	vp_vec_each (&states->vcpus, vcpu)
		vp_vec_deinit(&vcpu->switches);
	vp_vec_deinit(&states->pcpus);
	vp_vec_deinit(&states->vcpus);
	vp_map_deinit(&states->vcpu_of_key);
	vp_intern_deinit(&states->texts);
	vp_guest_switches_close(states->guest_events);
	free(states);
}

static struct pcpu *track_states_pcpu_of(struct vp_track_states *states, uint32_t number)
{
	if (number >= MAX_PCPUS)
		return NULL;
	while (states->pcpus.count <= number)
		vp_vec_push(&states->pcpus, (struct pcpu){0});
	return &states->pcpus.at[number];
}

/* Index of the vCPU, added if new; NOBODY: too many vCPUs. */
static uint32_t track_states_index_of(struct vp_track_states *states, uint32_t vm, uint32_t number,
				      uint32_t tid)
{
	bool inserted;

	if (states->vcpus.count == MAX_VCPUS)
		return NOBODY;
	uint32_t index = *vp_map_insert(&states->vcpu_of_key, (uint64_t)vm << 32 | number,
					(uint32_t)states->vcpus.count, &inserted);
	if (inserted)
		vp_vec_push(&states->vcpus,
			    ((struct vcpu){.vm = vm,
					   .number = number,
					   .is_host = states->has_host && vm == states->host}));
	if (tid)
		states->vcpus.at[index].tid = tid;
	return index;
}

/* Name of a vCPU without a thread, in the form of 'vperf steal'. */
static const char *track_states_name_of(struct vp_track_states *states, const struct vcpu *vcpu)
{
	const struct vp_vm *vm = vp_vms_find(&states->feed->vms, vcpu->vm);
	VP_AUTO_FREE char *text =
	    vm ? vp_format("vCPU %" PRIu32 " of VM %s", vcpu->number, vm->name)
	       : vp_format("vCPU %" PRIu32 " of VM %" PRIu32, vcpu->number, vcpu->vm);

	return vp_intern_text(&states->texts, vp_intern_string(&states->texts, text));
}

static void emit_slice(struct vp_track_states *states, const struct pcpu *pcpu)
{
	const struct vcpu *vcpu = &states->vcpus.at[pcpu->index];
	const struct vp_track_slice slice = {.track = VP_TRACK_PCPU,
					     .state = VP_TRACK_RUNNING,
					     .begin = pcpu->since,
					     .end = pcpu->until,
					     .pcpu = (uint32_t)(pcpu - states->pcpus.at),
					     .tid = vcpu->tid,
					     .comm = track_states_name_of(states, vcpu),
					     .has_vcpu = true,
					     .vm = vcpu->vm,
					     .vcpu = vcpu->number};

	states->emit(states->context, &slice);
}

static void emit_idle(struct vp_track_states *states, const struct pcpu *pcpu, uint64_t end)
{
	const struct vp_track_slice slice = {.track = VP_TRACK_PCPU,
					     .state = VP_TRACK_IDLE,
					     .begin = pcpu->until,
					     .end = end,
					     .pcpu = (uint32_t)(pcpu - states->pcpus.at)};

	states->emit(states->context, &slice);
}

static void keep_slice(struct pcpu *pcpu, uint64_t begin, uint64_t end, uint32_t index)
{
	const struct run run = {begin, end, index};

	if (pcpu->runs.count < RUNS)
		vp_vec_push(&pcpu->runs, run);
	else
		pcpu->runs.at[pcpu->n_turns % RUNS] = run;
	pcpu->n_turns++;
}

/* The vCPU has the pCPU from `now` on; the switch to it started at `begin`. */
static void track_states_begin_run(struct pcpu *pcpu, uint32_t index, uint64_t begin, uint64_t now)
{
	pcpu->known = true;
	pcpu->index = index;
	pcpu->begin = begin;
	pcpu->since = pcpu->until = now;
}

static void track_states_end_turn(struct vp_track_states *states, struct pcpu *pcpu)
{
	emit_slice(states, pcpu);
	keep_slice(pcpu, pcpu->begin, pcpu->until, pcpu->index);
}

/* The vCPU got the pCPU at `now`, after the previous vCPU, or with `was_idle` after an idle
 * time. */
static void get_pcpu(struct vp_track_states *states, struct pcpu *pcpu, uint32_t index,
		     bool was_idle, uint64_t now)
{
	uint64_t begin = pcpu->known ? pcpu->until : now;

	if (pcpu->known)
		track_states_end_turn(states, pcpu);
	if (pcpu->known && was_idle) {
		emit_idle(states, pcpu, now);
		keep_slice(pcpu, pcpu->until, now, NOBODY);
		begin = now;
	}
	if (!pcpu->known && was_idle) /* no vCPU had it since the start */
		keep_slice(pcpu, states->feed->recording.start, now, NOBODY);
	track_states_begin_run(pcpu, index, begin, now);
}

/* The vCPU had the pCPU without an event for getting it: at the start, or after a loss. */
static void track_states_have_pcpu(struct vp_track_states *states, struct pcpu *pcpu,
				   uint32_t index, uint64_t begin, uint64_t end)
{
	if (pcpu->known && pcpu->index != index)
		track_states_end_turn(states, pcpu);
	if (!pcpu->known || pcpu->index != index)
		track_states_begin_run(pcpu, index, begin, begin);
	pcpu->until = end;
}

static enum vp_track_state track_states_state_of(uint32_t state)
{
	switch (state) {
	case VP_STATE_GUEST:
		return VP_TRACK_GUEST;
	case VP_STATE_HALTED:
		return VP_TRACK_HALTED;
	case VP_STATE_WAITING:
	case VP_STATE_THROTTLED:
		return VP_TRACK_WAITING;
	case VP_STATE_WAKING:
		return VP_TRACK_WAKING;
	case VP_STATE_PREEMPTED:
		return VP_TRACK_PREEMPTED;
	default:
		return VP_TRACK_WORK;
	}
}

static struct vp_track_slice track_states_slice_of(struct vp_track_states *states,
						   const struct vcpu *vcpu,
						   const struct vp_vcpu_span *span)
{
	struct vp_track_slice slice = {.track = VP_TRACK_VCPU,
				       .state = track_states_state_of(span->state),
				       .begin = span->ns < span->time ? span->time - span->ns : 0,
				       .end = span->time,
				       .pcpu = span->cpu,
				       .tid = vcpu->tid,
				       .comm = track_states_name_of(states, vcpu),
				       .has_vcpu = true,
				       .vm = vcpu->vm,
				       .vcpu = vcpu->number};

	if (slice.state == VP_TRACK_HALTED || slice.state == VP_TRACK_WAITING)
		slice.pcpu = VP_NO_PCPU;
	return slice;
}

static void set_thread(struct vp_track_states *states, const struct vcpu *vcpu,
		       struct vp_track_slice *slice)
{
	const struct vp_guest_switches *events = states->guest_events;

	slice->has_guest = vcpu->has_thread;
	if (!vcpu->has_thread)
		return;
	slice->guest_tid = vcpu->thread;
	slice->guest_pid = vcpu->is_host ? vp_feed_pid(states->feed, vcpu->thread)
					 : vp_guest_switches_pid(events, vcpu->vm, vcpu->thread);
	slice->guest_comm = vcpu->is_host ? vp_feed_comm(states->feed, vcpu->thread)
					  : vp_guest_switches_comm(events, vcpu->vm, vcpu->thread);
	if (slice->state != VP_TRACK_GUEST)
		return;
	/* After a guest's last event its threads may have changed. */
	slice->certainty = !vcpu->is_host && vp_guest_switches_ended(events, vcpu->vm, slice->end)
			       ? VP_TRACK_UNCERTAIN
			       : VP_TRACK_EXACT;
}

/* Emits running time, split at context switches of the VM's kernel on the vCPU. */
static void emit_running(struct vp_track_states *states, struct vcpu *vcpu,
			 struct vp_track_slice slice)
{
	const uint64_t end = slice.end;

	vp_vec_each (&vcpu->switches, change) {
		set_thread(states, vcpu, &slice);
		if (vcpu->has_thread && vcpu->thread != change->prev &&
		    slice.certainty == VP_TRACK_EXACT)
			slice.certainty = VP_TRACK_UNCERTAIN; /* a switch in between was lost */
		slice.end = change->time < end ? change->time : end;
		if (slice.end > slice.begin) {
			states->emit(states->context, &slice);
			slice.begin = slice.end;
		}
		vcpu->has_thread = true;
		vcpu->thread = change->next;
	}
	vcpu->switches.count = 0;
	slice.end = end;
	set_thread(states, vcpu, &slice);
	if (slice.end > slice.begin)
		states->emit(states->context, &slice);
}

static void emit_piece(struct vp_track_states *states, struct vp_track_slice slice, uint64_t begin,
		       uint64_t end, const struct run *run)
{
	const struct vcpu *thief =
	    run && run->index != NOBODY ? &states->vcpus.at[run->index] : NULL;

	slice.wait_ends = slice.wait_ends && end == slice.end;
	slice.begin = begin;
	slice.end = end;
	slice.has_thief = run != NULL;
	slice.thief_tid = thief ? thief->tid : 0;
	slice.thief_comm = thief ? track_states_name_of(states, thief) : run ? "nobody" : NULL;
	states->emit(states->context, &slice);
}

/* Emits a wait that ended by getting a pCPU, split by the pCPU's owners. The switch to the vCPU
 * belongs to the run before it. */
static void emit_wait(struct vp_track_states *states, struct vp_track_slice slice,
		      const struct pcpu *pcpu)
{
	uint64_t at = pcpu->n_turns, oldest = at > RUNS ? at - RUNS : 0, done = slice.begin;

	while (at > oldest && pcpu->runs.at[(at - 1) % RUNS].end > slice.begin)
		at--;
	for (; at < pcpu->n_turns && done < slice.end; at++) {
		const struct run *run = &pcpu->runs.at[at % RUNS];
		uint64_t end = at + 1 == pcpu->n_turns ? slice.end : run->end;
		/* Damaged streams may be out of order. */
		uint64_t begin = run->begin < slice.end ? run->begin : slice.end;
		end = end < slice.end ? end : slice.end;
		if (begin > done) {
			emit_piece(states, slice, done, begin, NULL);
			done = begin;
		}
		if (end > done) {
			emit_piece(states, slice, done, end, run);
			done = end;
		}
	}
	if (done < slice.end)
		emit_piece(states, slice, done, slice.end, NULL);
}

static void track_states_take_wait(struct vp_track_states *states, uint32_t index,
				   struct vp_track_slice slice, uint16_t flags)
{
	bool got = flags & VP_STATE_GOT_PCPU;
	struct pcpu *pcpu = got ? track_states_pcpu_of(states, slice.pcpu) : NULL;

	slice.wait_begin = slice.begin;
	slice.wait_ends = got;
	set_thread(states, &states->vcpus.at[index], &slice);
	if (!pcpu) {
		states->emit(states->context, &slice);
		return;
	}
	get_pcpu(states, pcpu, index, flags & VP_STATE_WAS_IDLE, slice.end);
	emit_wait(states, slice, pcpu);
}

static void track_states_add_switch(struct vp_track_states *states, uint32_t index,
				    const struct thread_switch *change)
{
	if (index != NOBODY && states->vcpus.at[index].switches.count < MAX_SWITCHES)
		vp_vec_push(&states->vcpus.at[index].switches, *change);
}

/* Adds the context switches of a guest's kernel up to the time of a state's end, of all its
 * vCPUs. */
static void take_guest_switches(struct vp_track_states *states, uint32_t vm, uint64_t time)
{
	struct vp_guest_switch change;

	while (vp_guest_switches_next(states->guest_events, vm, time, &change))
		track_states_add_switch(states, track_states_index_of(states, vm, change.vcpu, 0),
					&(struct thread_switch){.time = change.time,
								.prev = change.prev,
								.next = change.next});
}

static void track_states_take_span(struct vp_track_states *states, const struct vp_vcpu_span *span)
{
	uint32_t index = span->state < VP_STATES
			     ? track_states_index_of(states, span->vm, span->vcpu, span->tid)
			     : NOBODY;

	if (index == NOBODY)
		return;
	take_guest_switches(states, span->vm, span->time);
	struct vcpu *vcpu = &states->vcpus.at[index];
	struct vp_track_slice slice = track_states_slice_of(states, vcpu, span);
	struct pcpu *pcpu = track_states_pcpu_of(states, span->cpu);
	bool runs = slice.state == VP_TRACK_GUEST || slice.state == VP_TRACK_WORK;
	if (runs && pcpu)
		track_states_have_pcpu(states, pcpu, index, slice.begin, slice.end);
	if (runs) {
		emit_running(states, vcpu, slice);
	} else if (slice.state == VP_TRACK_PREEMPTED || slice.state == VP_TRACK_WAKING) {
		track_states_take_wait(states, index, slice, span->flags);
	} else {
		set_thread(states, vcpu, &slice);
		states->emit(states->context, &slice);
	}
}

/* A context switch of the host's scheduler on a CPU, which is a vCPU of the host's VM. */
static void track_states_take_switch(struct vp_track_states *states,
				     const struct vp_feed_event *event)
{
	uint32_t index =
	    states->has_host ? track_states_index_of(states, states->host, event->pcpu, 0) : NOBODY;

	track_states_add_switch(states, index,
				&(struct thread_switch){.time = event->time,
							.prev = event->sched_switch->prev_tid,
							.next = event->sched_switch->next_tid});
}

void vp_track_states_take(struct vp_track_states *states, const struct vp_feed_event *event)
{
	if (event->kind == VP_FEED_SPAN)
		track_states_take_span(states, event->span);
	else if (event->kind == VP_TRACE_KIND_sched_switch)
		track_states_take_switch(states, event);
}

void vp_track_states_end(struct vp_track_states *states)
{
	vp_vec_each (&states->pcpus, pcpu) {
		if (!pcpu->known)
			continue;
		emit_slice(states, pcpu);
		if (pcpu->until < states->feed->last)
			emit_idle(states, pcpu, states->feed->last);
	}
}
