/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/lane_states.h"

#include <inttypes.h>

#include "analyze/trace/trace_feed.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/packet.h"

/* TURNS: of a pCPU, kept for those who wait for it: a power of two. NOBODY: an index. */
enum { MAX_PCPUS = 1 << 16, MAX_VCPUS = 1 << 16, MAX_SWITCHES = 1 << 20, SLICES = 512 };
#define NOBODY UINT32_MAX

/* The owner of a pCPU, with the switch to it. */
struct slice {
	uint64_t begin, end;
	uint32_t index; /* of the vCPU, or NOBODY */
};

struct pcpu {
	bool known; /* somebody has, or had it last: */
	uint32_t index;
	uint64_t begin;        /* when the switch to it began */
	uint64_t since, until; /* it has it, as far as is known */
	uint64_t n_turns;
	VP_VEC(struct slice) slices; /* the latest, TURNS at most: the n-th at n % TURNS */
};

/* Host threads on its vCPU. */
struct thread_switch {
	uint64_t time;
	uint32_t prev, next;
};

struct vcpu {
	uint32_t vm, number, tid;
	bool is_host, has_thread;
	uint32_t thread;                       /* of the host, that it has */
	VP_VEC(struct thread_switch) switches; /* since its last state's end */
};

struct vp_lane_states {
	const struct vp_feed *feed;
	void (*emit)(void *context, const struct vp_period *period);
	void *context;
	VP_VEC(struct pcpu) pcpus;
	VP_VEC(struct vcpu) vcpus;
	struct vp_map vcpu_of_key;
	struct vp_intern texts;
	uint32_t host; /* number of the host's VM */
	bool has_host;
};

struct vp_lane_states *
vp_lane_states_new(const struct vp_feed *feed,
		   void (*emit)(void *context, const struct vp_period *period), void *context)
{
	struct vp_lane_states *states = vp_alloc(sizeof(*states));

	*states = (struct vp_lane_states){.feed = feed, .emit = emit, .context = context};
	vp_vec_each (&feed->vms, vm) {
		if (!vp_vm_is_host(vm))
			continue;
		states->has_host = true;
		states->host = vp_vm_id(vm);
	}
	return states;
}

void vp_lane_states_free(struct vp_lane_states *states)
{
	if (!states)
		return;
	vp_vec_each (&states->pcpus, pcpu)
		vp_vec_deinit(&pcpu->slices);
	vp_vec_each (&states->vcpus, vcpu)
		vp_vec_deinit(&vcpu->switches);
	vp_vec_deinit(&states->pcpus);
	vp_vec_deinit(&states->vcpus);
	vp_map_deinit(&states->vcpu_of_key);
	vp_intern_deinit(&states->texts);
	free(states);
}

static struct pcpu *lane_states_pcpu_of(struct vp_lane_states *states, uint32_t number)
{
	if (number >= MAX_PCPUS)
		return NULL;
	while (states->pcpus.count <= number)
		vp_vec_push(&states->pcpus, (struct pcpu){0});
	return &states->pcpus.at[number];
}

/* NOBODY: no recording has as many. */
static uint32_t lane_states_index_of(struct vp_lane_states *states, uint32_t vm, uint32_t number,
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

/* It has no thread, so it is called what 'vperf steal' calls it. */
static const char *lane_states_name_of(struct vp_lane_states *states, const struct vcpu *vcpu)
{
	const struct vp_vm *vm = vp_vms_find(&states->feed->vms, vcpu->vm);
	VP_AUTO_FREE char *text =
	    vm ? vp_format("vCPU %" PRIu32 " of VM %s", vcpu->number, vm->name)
	       : vp_format("vCPU %" PRIu32 " of VM %" PRIu32, vcpu->number, vcpu->vm);

	return vp_intern_text(&states->texts, vp_intern_string(&states->texts, text));
}

static void emit_slice(struct vp_lane_states *states, const struct pcpu *pcpu)
{
	const struct vcpu *vcpu = &states->vcpus.at[pcpu->index];
	const struct vp_period period = {.lane = VP_LANE_PCPU,
					 .state = VP_LANE_RUNNING,
					 .begin = pcpu->since,
					 .end = pcpu->until,
					 .pcpu = (uint32_t)(pcpu - states->pcpus.at),
					 .tid = vcpu->tid,
					 .comm = lane_states_name_of(states, vcpu),
					 .has_vcpu = true,
					 .vm = vcpu->vm,
					 .vcpu = vcpu->number};

	states->emit(states->context, &period);
}

static void emit_idle(struct vp_lane_states *states, const struct pcpu *pcpu, uint64_t end)
{
	const struct vp_period period = {.lane = VP_LANE_PCPU,
					 .state = VP_LANE_IDLE,
					 .begin = pcpu->until,
					 .end = end,
					 .pcpu = (uint32_t)(pcpu - states->pcpus.at)};

	states->emit(states->context, &period);
}

static void keep_slice(struct pcpu *pcpu, uint64_t begin, uint64_t end, uint32_t index)
{
	const struct slice slice = {begin, end, index};

	if (pcpu->slices.count < SLICES)
		vp_vec_push(&pcpu->slices, slice);
	else
		pcpu->slices.at[pcpu->n_turns % SLICES] = slice;
	pcpu->n_turns++;
}

/* A vCPU has the pCPU from `now` on, and the switch to it began at `begin`. */
static void lane_states_begin_slice(struct pcpu *pcpu, uint32_t index, uint64_t begin, uint64_t now)
{
	pcpu->known = true;
	pcpu->index = index;
	pcpu->begin = begin;
	pcpu->since = pcpu->until = now;
}

static void lane_states_end_turn(struct vp_lane_states *states, struct pcpu *pcpu)
{
	emit_slice(states, pcpu);
	keep_slice(pcpu, pcpu->begin, pcpu->until, pcpu->index);
}

/* The vCPU got the pCPU at `now`: from the one before it, or after nobody had it since then. */
static void get_pcpu(struct vp_lane_states *states, struct pcpu *pcpu, uint32_t index,
		     bool was_idle, uint64_t now)
{
	uint64_t begin = pcpu->known ? pcpu->until : now;

	if (pcpu->known)
		lane_states_end_turn(states, pcpu);
	if (pcpu->known && was_idle) {
		emit_idle(states, pcpu, now);
		keep_slice(pcpu, pcpu->until, now, NOBODY);
		begin = now;
	}
	lane_states_begin_slice(pcpu, index, begin, now);
}

/* The vCPU had the pCPU: at the beginning, or after a loss, without having got it. */
static void lane_states_have_pcpu(struct vp_lane_states *states, struct pcpu *pcpu, uint32_t index,
				  uint64_t begin, uint64_t end)
{
	if (pcpu->known && pcpu->index != index)
		lane_states_end_turn(states, pcpu);
	if (!pcpu->known || pcpu->index != index)
		lane_states_begin_slice(pcpu, index, begin, begin);
	pcpu->until = end;
}

static enum vp_lane_state lane_states_state_of(uint32_t state)
{
	switch (state) {
	case VP_STATE_GUEST:
		return VP_LANE_GUEST;
	case VP_STATE_HALTED:
		return VP_LANE_HALTED;
	case VP_STATE_WAITING:
	case VP_STATE_THROTTLED:
		return VP_LANE_BLOCKED;
	case VP_STATE_WAKING:
		return VP_LANE_WAKING;
	case VP_STATE_PREEMPTED:
		return VP_LANE_STOLEN;
	default:
		return VP_LANE_HOST;
	}
}

static struct vp_period lane_states_period_of(struct vp_lane_states *states,
					      const struct vcpu *vcpu,
					      const struct vp_vcpu_span *span)
{
	struct vp_period period = {.lane = VP_LANE_VCPU,
				   .state = lane_states_state_of(span->state),
				   .begin = span->ns < span->time ? span->time - span->ns : 0,
				   .end = span->time,
				   .pcpu = span->cpu,
				   .tid = vcpu->tid,
				   .comm = lane_states_name_of(states, vcpu),
				   .has_vcpu = true,
				   .vm = vcpu->vm,
				   .vcpu = vcpu->number};

	if (period.state == VP_LANE_HALTED || period.state == VP_LANE_BLOCKED)
		period.pcpu = VP_NO_PCPU;
	return period;
}

static void set_thread(struct vp_lane_states *states, const struct vcpu *vcpu,
		       struct vp_period *period)
{
	period->has_guest = vcpu->has_thread;
	if (!vcpu->has_thread)
		return;
	period->guest_tid = vcpu->thread;
	period->guest_pid = vp_feed_pid(states->feed, vcpu->thread);
	period->guest_comm = vp_feed_comm(states->feed, vcpu->thread);
	if (period->state == VP_LANE_GUEST)
		period->certainty = VP_LANE_EXACT;
}

/* In pieces, if the host's kernel switched threads on the vCPU meanwhile. */
static void emit_running(struct vp_lane_states *states, struct vcpu *vcpu, struct vp_period period)
{
	const uint64_t end = period.end;

	vp_vec_each (&vcpu->switches, change) {
		set_thread(states, vcpu, &period);
		if (vcpu->has_thread && vcpu->thread != change->prev &&
		    period.certainty == VP_LANE_EXACT)
			period.certainty = VP_LANE_UNCERTAIN; /* a switch between was lost */
		period.end = change->time < end ? change->time : end;
		if (period.end > period.begin) {
			states->emit(states->context, &period);
			period.begin = period.end;
		}
		vcpu->has_thread = true;
		vcpu->thread = change->next;
	}
	vcpu->switches.count = 0;
	period.end = end;
	set_thread(states, vcpu, &period);
	if (period.end > period.begin)
		states->emit(states->context, &period);
}

static void emit_piece(struct vp_lane_states *states, struct vp_period period, uint64_t begin,
		       uint64_t end, const struct slice *slice)
{
	const struct vcpu *thief =
	    slice && slice->index != NOBODY ? &states->vcpus.at[slice->index] : NULL;

	period.wait_ends = period.wait_ends && end == period.end;
	period.begin = begin;
	period.end = end;
	period.has_thief = slice != NULL;
	period.thief_tid = thief ? thief->tid : 0;
	period.thief_comm = thief ? lane_states_name_of(states, thief) : slice ? "nobody" : NULL;
	states->emit(states->context, &period);
}

/* A wait that ended with a pCPU: in pieces, by who had that meanwhile. The switch to the vCPU is
 * part of the turn before it. */
static void emit_wait(struct vp_lane_states *states, struct vp_period period,
		      const struct pcpu *pcpu)
{
	uint64_t at = pcpu->n_turns, oldest = at > SLICES ? at - SLICES : 0, done = period.begin;

	while (at > oldest && pcpu->slices.at[(at - 1) % SLICES].end > period.begin)
		at--;
	for (; at < pcpu->n_turns && done < period.end; at++) {
		const struct slice *slice = &pcpu->slices.at[at % SLICES];
		uint64_t end = at + 1 == pcpu->n_turns ? period.end : slice->end;
		/* Damaged streams may not be in order. */
		uint64_t begin = slice->begin < period.end ? slice->begin : period.end;
		end = end < period.end ? end : period.end;
		if (begin > done) {
			emit_piece(states, period, done, begin, NULL);
			done = begin;
		}
		if (end > done) {
			emit_piece(states, period, done, end, slice);
			done = end;
		}
	}
	if (done < period.end)
		emit_piece(states, period, done, period.end, NULL);
}

static void lane_states_take_wait(struct vp_lane_states *states, uint32_t index,
				  struct vp_period period, uint16_t flags)
{
	bool got = flags & VP_STATE_GOT_PCPU;
	struct pcpu *pcpu = got ? lane_states_pcpu_of(states, period.pcpu) : NULL;

	period.wait_begin = period.begin;
	period.wait_ends = got;
	set_thread(states, &states->vcpus.at[index], &period);
	if (!pcpu) {
		states->emit(states->context, &period);
		return;
	}
	get_pcpu(states, pcpu, index, flags & VP_STATE_WAS_IDLE, period.end);
	emit_wait(states, period, pcpu);
}

static void lane_states_take_span(struct vp_lane_states *states, const struct vp_vcpu_span *span)
{
	uint32_t index = span->state < VP_STATES
			     ? lane_states_index_of(states, span->vm, span->vcpu, span->tid)
			     : NOBODY;

	if (index == NOBODY)
		return;
	struct vcpu *vcpu = &states->vcpus.at[index];
	struct vp_period period = lane_states_period_of(states, vcpu, span);
	struct pcpu *pcpu = lane_states_pcpu_of(states, span->cpu);
	bool runs = period.state == VP_LANE_GUEST || period.state == VP_LANE_HOST;
	if (runs && pcpu)
		lane_states_have_pcpu(states, pcpu, index, period.begin, period.end);
	if (runs) {
		emit_running(states, vcpu, period);
	} else if (period.state == VP_LANE_STOLEN || period.state == VP_LANE_WAKING) {
		lane_states_take_wait(states, index, period, span->flags);
	} else {
		set_thread(states, vcpu, &period);
		states->emit(states->context, &period);
	}
}

/* The host's own scheduler: of a CPU that is one of its VM's vCPUs. */
static void lane_states_take_switch(struct vp_lane_states *states,
				    const struct vp_feed_event *event)
{
	uint32_t index =
	    states->has_host ? lane_states_index_of(states, states->host, event->pcpu, 0) : NOBODY;

	if (index == NOBODY || states->vcpus.at[index].switches.count == MAX_SWITCHES)
		return;
	vp_vec_push(&states->vcpus.at[index].switches,
		    ((struct thread_switch){.time = event->time,
					    .prev = event->sched_switch->prev_tid,
					    .next = event->sched_switch->next_tid}));
}

void vp_lane_states_take(struct vp_lane_states *states, const struct vp_feed_event *event)
{
	if (event->kind == VP_FEED_SPAN)
		lane_states_take_span(states, event->span);
	else if (event->kind == VP_TRACE_KIND_sched_switch)
		lane_states_take_switch(states, event);
}

void vp_lane_states_end(struct vp_lane_states *states)
{
	vp_vec_each (&states->pcpus, pcpu) {
		if (!pcpu->known)
			continue;
		emit_slice(states, pcpu);
		if (pcpu->until < states->feed->last)
			emit_idle(states, pcpu, states->feed->last);
	}
}
