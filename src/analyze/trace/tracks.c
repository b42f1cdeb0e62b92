/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/tracks.h"

#include <inttypes.h>

#include "analyze/common/filter.h"
#include "analyze/trace/track_states.h"
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
 * MAX_HELD: limit of slices that are held until KVM reports the exit and so the guest thread, which
 * may be after the thread lost its pCPU.
 */
enum { MAX_PCPUS = 1 << 16, MAX_VCPUS = 1 << 16, MAX_HELD = 64 };

struct pcpu {
	bool known; /* its current thread is known */
	uint32_t tid;
	uint64_t since;
	uint32_t waiting; /* index + 1 of the first vCPU in its run queue; 0: empty */
};

struct vcpu {
	uint32_t vm, number, tid;
	bool known; /* its state is known */
	enum vp_track_state state;
	uint64_t since, wait_since;
	uint32_t pcpu;
	bool has_waker;
	uint32_t waker_tid, waker_pcpu;
	uint32_t next; /* index + 1 of the next vCPU in the same run queue; 0: the last */
	bool halts;    /* its last exit was a halt */
	/* The guest thread at the last exit. */
	bool has_guest, middle;
	uint32_t guest_tid, guest_pid;
	bool exit_pending; /* the exit was not reported yet: slices are held */
	VP_VEC(struct vp_track_slice) held;
	struct vp_track_switches switches;
};

struct vp_tracks {
	struct vp_tracks_options options;
	struct vp_feed feed;
	bool opened, ended;
	bool *chosen; /* by index in the feed's list of VMs */
	VP_VEC(struct pcpu) pcpus;
	VP_VEC(struct vcpu) vcpus;
	struct vp_map vcpu_of_tid, vcpu_of_key;
	struct vp_intern texts;         /* names of VMs that are not in the recording's list */
	struct vp_track_states *states; /* NULL: the feed has no vCPU states */
};

static bool tracks_is_of_vm(struct vp_tracks *tracks, const struct vp_track_slice *slice)
{
	const struct vp_vm *vm;

	if (!tracks->options.vm)
		return true;
	vm = slice->has_vcpu ? vp_vms_find(&tracks->feed.vms, slice->vm) : NULL;
	return vm && tracks->chosen[vm - tracks->feed.vms.at];
}

static bool tracks_is_of_pcpus(const struct vp_tracks_options *options, uint32_t pcpu)
{
	for (size_t i = 0; i < options->n_pcpus; i++)
		if ((uint32_t)options->pcpus[i] == pcpu)
			return true;
	return !options->n_pcpus;
}

static void tracks_emit(struct vp_tracks *tracks, struct vp_track_slice slice)
{
	const struct vp_tracks_options *options = &tracks->options;

	if (slice.begin < options->from)
		slice.begin = options->from;
	if (slice.end > options->to) {
		slice.end = options->to;
		slice.wait_ends = false;
	}
	if (slice.begin >= slice.end && !(slice.wait_ends && slice.begin == slice.end))
		return;
	if (tracks_is_of_vm(tracks, &slice) && tracks_is_of_pcpus(options, slice.pcpu))
		options->take(options->context, &slice);
}

/* Emits the held slices with the guest thread of the exit, if that was reported. `changed`: the
 * thread was a different one before. */
static void let_go(struct vp_tracks *tracks, struct vcpu *vcpu, bool reported, bool changed)
{
	vp_vec_each (&vcpu->held, slice) {
		if (slice->state == VP_TRACK_GUEST) {
			if (slice->certainty == VP_TRACK_EXACT && (!reported || changed))
				slice->certainty = VP_TRACK_UNCERTAIN;
		} else {
			slice->has_guest = reported && vcpu->has_guest;
			slice->guest_tid = vcpu->guest_tid;
			slice->guest_pid = vcpu->guest_pid;
			slice->guest_comm =
			    slice->has_guest
				? vp_feed_guest_comm(&tracks->feed, vcpu->vm, vcpu->guest_tid)
				: NULL;
		}
		tracks_emit(tracks, *slice);
	}
	vcpu->held.count = 0;
	vcpu->exit_pending = false;
}

static struct pcpu *tracks_pcpu_of(struct vp_tracks *tracks, uint32_t number)
{
	if (number >= MAX_PCPUS)
		return NULL;
	while (tracks->pcpus.count <= number)
		vp_vec_push(&tracks->pcpus, (struct pcpu){0});
	return &tracks->pcpus.at[number];
}

static bool tracks_waits(const struct vcpu *vcpu)
{
	return vcpu->known && (vcpu->state == VP_TRACK_PREEMPTED || vcpu->state == VP_TRACK_WAKING);
}

static enum vp_track_certainty certainty_of(const struct vcpu *vcpu)
{
	if (vcpu->state != VP_TRACK_GUEST || !vcpu->has_guest)
		return VP_TRACK_UNKNOWN;
	return vcpu->middle ? VP_TRACK_UNCERTAIN : VP_TRACK_EXACT;
}

/* The vCPU's current slice, if it ended now. */
static struct vp_track_slice tracks_slice_of(struct vp_tracks *tracks, const struct vcpu *vcpu,
					     uint64_t now)
{
	struct vp_track_slice slice = {
	    .track = VP_TRACK_VCPU,
	    .state = vcpu->state,
	    .begin = vcpu->since,
	    .end = now,
	    .pcpu = vcpu->pcpu,
	    .tid = vcpu->tid,
	    .comm = vp_feed_comm(&tracks->feed, vcpu->tid),
	    .has_vcpu = true,
	    .vm = vcpu->vm,
	    .vcpu = vcpu->number,
	    .has_guest = vcpu->has_guest,
	    .guest_tid = vcpu->guest_tid,
	    .guest_pid = vcpu->guest_pid,
	    .certainty = certainty_of(vcpu),
	};

	if (vcpu->has_guest)
		slice.guest_comm = vp_feed_guest_comm(&tracks->feed, vcpu->vm, vcpu->guest_tid);
	const struct pcpu *where = tracks_waits(vcpu) && vcpu->pcpu < tracks->pcpus.count
				       ? &tracks->pcpus.at[vcpu->pcpu]
				       : NULL;
	if (vcpu->state == VP_TRACK_WAKING && vcpu->has_waker) {
		slice.has_waker = true;
		slice.waker_tid = vcpu->waker_tid;
		slice.waker_pcpu = vcpu->waker_pcpu;
		slice.waker_comm = vp_feed_comm(&tracks->feed, vcpu->waker_tid);
	}
	/* Damaged streams may be out of order. */
	if (tracks_waits(vcpu))
		slice.wait_begin = vcpu->wait_since < vcpu->since ? vcpu->wait_since : vcpu->since;
	if (where && where->known && where->tid != vcpu->tid) {
		slice.has_thief = true;
		slice.thief_tid = where->tid;
		slice.thief_comm = vp_feed_comm(&tracks->feed, where->tid);
	}
	return slice;
}

static void tracks_begin_wait(struct vp_tracks *tracks, struct vcpu *vcpu)
{
	struct pcpu *where = tracks_pcpu_of(tracks, vcpu->pcpu);

	if (!where) {
		vcpu->pcpu = VP_NO_PCPU;
		return;
	}
	vcpu->next = where->waiting;
	where->waiting = (uint32_t)(vcpu - tracks->vcpus.at) + 1;
}

static void tracks_end_wait(struct vp_tracks *tracks, struct vcpu *vcpu)
{
	struct pcpu *where = tracks_pcpu_of(tracks, vcpu->pcpu);
	uint32_t own = (uint32_t)(vcpu - tracks->vcpus.at) + 1;

	if (!where)
		return;
	uint32_t *link = &where->waiting;
	while (*link && *link != own)
		link = &tracks->vcpus.at[*link - 1].next;
	if (*link)
		*link = vcpu->next;
}

static void close_slice(struct vp_tracks *tracks, struct vcpu *vcpu, struct vp_track_slice *slice)
{
	if (!vcpu->known)
		return;
	if (vcpu->held.count == MAX_HELD)
		let_go(tracks, vcpu, false, false);
	if (vcpu->exit_pending)
		vp_vec_push(&vcpu->held, *slice);
	else
		tracks_emit(tracks, *slice);
}

/* Sets the vCPU's state from now on. */
static void go_on(struct vp_tracks *tracks, struct vcpu *vcpu, enum vp_track_state state,
		  uint32_t pcpu, uint64_t now)
{
	struct vp_track_slice slice = tracks_slice_of(tracks, vcpu, now);
	bool waited = tracks_waits(vcpu);

	slice.wait_ends = waited && state == VP_TRACK_WORK;
	close_slice(tracks, vcpu, &slice);
	if (waited)
		tracks_end_wait(tracks, vcpu);
	vcpu->known = true;
	vcpu->state = state;
	vcpu->since = now;
	vcpu->pcpu = pcpu;
	if (tracks_waits(vcpu) && !waited)
		vcpu->wait_since = now;
	if (tracks_waits(vcpu))
		tracks_begin_wait(tracks, vcpu);
}

static struct vcpu *vcpu_of_tid(const struct vp_tracks *tracks, uint32_t tid)
{
	const uint32_t *index = tid ? vp_map_find(&tracks->vcpu_of_tid, tid) : NULL;

	return index ? &tracks->vcpus.at[*index] : NULL;
}

/* Key of a vCPU; if its number is unknown, by its thread. */
static uint64_t tracks_key_of(uint32_t vm, uint32_t number, uint32_t tid)
{
	return (uint64_t)vm << 32 | (number == VP_VCPU_UNKNOWN ? tid | 1U << 31 : number);
}

/* The vCPU, added if new; its thread may have changed. NULL: too many vCPUs. */
static struct vcpu *tracks_vcpu_of(struct vp_tracks *tracks, uint32_t vm, uint32_t number,
				   uint32_t tid)
{
	struct vcpu *known = vcpu_of_tid(tracks, tid);
	bool inserted;

	if (known && known->vm == vm && (known->number == number || number == VP_VCPU_UNKNOWN))
		return known;
	if (tracks->vcpus.count == MAX_VCPUS)
		return NULL;
	uint32_t *index = vp_map_insert(&tracks->vcpu_of_key, tracks_key_of(vm, number, tid),
					(uint32_t)tracks->vcpus.count, &inserted);
	if (inserted)
		vp_vec_push(&tracks->vcpus,
			    ((struct vcpu){.vm = vm, .number = number, .tid = tid}));
	uint32_t at = *index;
	tracks->vcpus.at[at].tid = tid;
	*vp_map_insert(&tracks->vcpu_of_tid, tid, at, &inserted) = at;
	return &tracks->vcpus.at[at];
}

/* Changes the thief of the vCPUs that wait for that pCPU. */
static void change_thief(struct vp_tracks *tracks, const struct pcpu *where, uint64_t now)
{
	for (uint32_t index = where->waiting; index; index = tracks->vcpus.at[index - 1].next) {
		struct vcpu *vcpu = &tracks->vcpus.at[index - 1];
		struct vp_track_slice slice = tracks_slice_of(tracks, vcpu, now);
		if (vcpu->since == now)
			continue;
		close_slice(tracks, vcpu, &slice);
		vcpu->since = now;
	}
}

static void emit_pcpu(struct vp_tracks *tracks, const struct pcpu *pcpu, uint32_t number,
		      uint64_t now)
{
	const struct vcpu *vcpu = vcpu_of_tid(tracks, pcpu->tid);

	if (!pcpu->known)
		return;
	tracks_emit(tracks,
		    (struct vp_track_slice){.track = VP_TRACK_PCPU,
					    .state = pcpu->tid ? VP_TRACK_RUNNING : VP_TRACK_IDLE,
					    .begin = pcpu->since,
					    .end = now,
					    .pcpu = number,
					    .tid = pcpu->tid,
					    .comm = vp_feed_comm(&tracks->feed, pcpu->tid),
					    .has_vcpu = vcpu != NULL,
					    .vm = vcpu ? vcpu->vm : 0,
					    .vcpu = vcpu ? vcpu->number : 0});
}

/* Ends a guest slice before a loss: its end, and the guest thread at that time, are unknown. */
static void doubt_guest(struct vp_tracks *tracks, struct vcpu *vcpu, uint64_t now)
{
	struct vp_track_slice slice = tracks_slice_of(tracks, vcpu, now);

	if (!vcpu->known || vcpu->state != VP_TRACK_GUEST)
		return;
	if (slice.certainty == VP_TRACK_EXACT)
		slice.certainty = VP_TRACK_UNCERTAIN;
	close_slice(tracks, vcpu, &slice);
	vcpu->known = false;
}

static void lose_pcpu(struct vp_tracks *tracks, struct vcpu *vcpu,
		      const struct vp_feed_event *event)
{
	const struct vp_trace_sched_switch *change = event->sched_switch;
	enum vp_track_state state = vcpu->halts ? VP_TRACK_HALTED : VP_TRACK_WAITING;
	bool runnable = change->preempted || !change->prev_state;

	vcpu->exit_pending |= vcpu->known && vcpu->state == VP_TRACK_GUEST;
	go_on(tracks, vcpu, runnable ? VP_TRACK_PREEMPTED : state,
	      runnable ? event->pcpu : VP_NO_PCPU, event->time);
}

static void tracks_take_switch(struct vp_tracks *tracks, const struct vp_feed_event *event)
{
	const struct vp_trace_sched_switch *change = event->sched_switch;
	struct pcpu *pcpu = tracks_pcpu_of(tracks, event->pcpu);
	struct vcpu *next = vcpu_of_tid(tracks, change->next_tid);
	struct vcpu *prev = vcpu_of_tid(tracks, change->prev_tid);

	if (!pcpu)
		return;
	if (pcpu->known && pcpu->tid != change->prev_tid)
		pcpu->known = false; /* a switch in between was lost */
	emit_pcpu(tracks, pcpu, event->pcpu, event->time);
	/* The vCPUs in the run queue waited for the previous thread until now. */
	if (next)
		doubt_guest(tracks, next, event->time);
	if (next)
		go_on(tracks, next, VP_TRACK_WORK, event->pcpu, event->time);
	change_thief(tracks, pcpu, event->time);
	pcpu->known = true;
	pcpu->tid = change->next_tid;
	pcpu->since = event->time;
	if (prev)
		lose_pcpu(tracks, prev, event);
}

static void take_wakeup(struct vp_tracks *tracks, const struct vp_feed_event *event)
{
	struct vcpu *vcpu = vcpu_of_tid(tracks, event->sched_wakeup->woken_tid);
	const struct pcpu *where = tracks_pcpu_of(tracks, event->pcpu);

	if (!vcpu || !vcpu->known ||
	    (vcpu->state != VP_TRACK_HALTED && vcpu->state != VP_TRACK_WAITING))
		return;
	go_on(tracks, vcpu, VP_TRACK_WAKING, event->sched_wakeup->target_cpu, event->time);
	vcpu->has_waker = where && where->known;
	vcpu->waker_tid = where ? where->tid : 0;
	vcpu->waker_pcpu = event->pcpu;
}

static void tracks_take_entry(struct vp_tracks *tracks, const struct vp_feed_event *event)
{
	const struct vp_trace_kvm_entry *entry = event->kvm_entry;
	struct vcpu *vcpu = tracks_vcpu_of(tracks, entry->vm, entry->vcpu, entry->tid);

	if (!vcpu)
		return;
	if (vcpu->exit_pending)
		let_go(tracks, vcpu, false, false);
	doubt_guest(tracks, vcpu, event->time);
	go_on(tracks, vcpu, VP_TRACK_GUEST, event->pcpu, event->time);
}

static void tracks_take_exit(struct vp_tracks *tracks, const struct vp_feed_event *event)
{
	const struct vp_trace_kvm_exit *exit = event->kvm_exit;
	struct vcpu *vcpu = tracks_vcpu_of(tracks, exit->vm, exit->vcpu, exit->tid);

	if (!vcpu)
		return;
	vcpu->halts = vp_exit_reason_is_halt(exit->vendor, exit->reason);
	if (vcpu->exit_pending)
		let_go(tracks, vcpu, true, false);
	if (!vcpu->known || vcpu->state == VP_TRACK_GUEST)
		go_on(tracks, vcpu, VP_TRACK_WORK, event->pcpu, event->time);
}

static void tracks_count_switches(struct vp_tracks *tracks, struct vcpu *vcpu,
				  const struct vp_feed_event *event)
{
	const struct vp_trace_guest_switch *change = event->guest_switch;

	if (event->time < tracks->options.from || event->time > tracks->options.to)
		return;
	vcpu->switches.total += change->switches;
	vcpu->switches.observed += change->switches != 0;
	vcpu->switches.implausible += (change->switch_flags & VP_SWITCH_IMPLAUSIBLE) != 0;
	vcpu->switches.restarts += (change->switch_flags & VP_SWITCH_FIRST) != 0;
}

/* Precedes the exit at which it was observed. */
static void take_guest_switch(struct vp_tracks *tracks, const struct vp_feed_event *event)
{
	const struct vp_trace_guest_switch *change = event->guest_switch;
	struct vcpu *vcpu = tracks_vcpu_of(tracks, change->vm, change->vcpu, change->tid);
	bool was_in_guest = vcpu && vcpu->known && vcpu->state == VP_TRACK_GUEST;

	if (!vcpu)
		return;
	tracks_count_switches(tracks, vcpu, event);
	if (was_in_guest) {
		struct vp_track_slice slice = tracks_slice_of(tracks, vcpu, event->time);
		slice.certainty = vcpu->has_guest ? VP_TRACK_UNCERTAIN : VP_TRACK_UNKNOWN;
		slice.switches = change->switches;
		close_slice(tracks, vcpu, &slice);
		vcpu->known = false;
	} else if (vcpu->exit_pending) {
		vp_vec_each (&vcpu->held, slice)
			if (slice->state == VP_TRACK_GUEST)
				slice->switches = change->switches;
	}
	vcpu->has_guest = !(change->switch_flags & VP_SWITCH_UNKNOWN);
	vcpu->middle = change->switch_flags & VP_SWITCH_MIDDLE;
	vcpu->guest_tid = change->guest_tid;
	vcpu->guest_pid = change->guest_pid;
	if (vcpu->exit_pending)
		let_go(tracks, vcpu, true, true);
	if (was_in_guest)
		go_on(tracks, vcpu, VP_TRACK_WORK, event->pcpu, event->time);
}

static void emit_of_states(void *context, const struct vp_track_slice *slice)
{
	tracks_emit(context, *slice);
}

static void tracks_take_event(struct vp_tracks *tracks, const struct vp_feed_event *event)
{
	if (tracks->states) {
		vp_track_states_take(tracks->states, event);
		return;
	}
	switch (event->kind) {
	case VP_TRACE_KIND_sched_switch:
		tracks_take_switch(tracks, event);
		break;
	case VP_TRACE_KIND_sched_wakeup:
	case VP_TRACE_KIND_sched_wakeup_new:
		take_wakeup(tracks, event);
		break;
	case VP_TRACE_KIND_kvm_entry:
		tracks_take_entry(tracks, event);
		break;
	case VP_TRACE_KIND_kvm_exit:
		tracks_take_exit(tracks, event);
		break;
	case VP_TRACE_KIND_guest_switch:
		take_guest_switch(tracks, event);
		break;
	default:
		break;
	}
}

/* Emits the slices that are open at the end, as far as they are known. */
static void tracks_end(struct vp_tracks *tracks)
{
	uint64_t now = tracks->feed.last;

	if (tracks->states)
		vp_track_states_end(tracks->states);
	vp_vec_each (&tracks->vcpus, vcpu) {
		struct vp_track_slice slice = tracks_slice_of(tracks, vcpu, now);
		if (slice.certainty == VP_TRACK_EXACT)
			slice.certainty = VP_TRACK_UNCERTAIN; /* no later exit */
		close_slice(tracks, vcpu, &slice);
		let_go(tracks, vcpu, false, false);
	}
	for (size_t i = 0; i < tracks->pcpus.count; i++)
		emit_pcpu(tracks, &tracks->pcpus.at[i], (uint32_t)i, now);
	tracks->ended = true;
}

bool vp_tracks_read(struct vp_tracks *tracks, uint64_t events)
{
	struct vp_feed_event event;

	for (uint64_t i = 0; !tracks->ended && i < events; i++) {
		if (!vp_feed_next(&tracks->feed, &event)) {
			tracks_end(tracks);
			break;
		}
		tracks_take_event(tracks, &event);
		if (tracks->options.event)
			tracks->options.event(tracks->options.context, &event);
	}
	return !tracks->ended;
}

static void tracks_add_vcpus(struct vp_tracks *tracks)
{
	vp_vec_each (&tracks->feed.vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->tid)
				tracks_vcpu_of(tracks, vp_vm_id(vm), vcpu->number, vcpu->tid);
}

static struct vp_error *tracks_open_all(const char *directory, struct vp_tracks *tracks)
{
	const struct vp_tracks_options *options = &tracks->options;

	VP_TRY(vp_feed_open(directory, &tracks->feed));
	tracks->opened = true;
	VP_TRY(vp_filter_choose_vms(&tracks->feed.vms, options->vm, &tracks->chosen));
	if (tracks->feed.by_states)
		return vp_track_states_new(directory, &tracks->feed, emit_of_states, tracks,
					   &tracks->states);
	tracks_add_vcpus(tracks);
	return NULL;
}

struct vp_error *vp_tracks_open(const char *directory, const struct vp_tracks_options *options,
				struct vp_tracks **ret)
{
	struct vp_tracks *tracks = vp_alloc(sizeof(*tracks));

	tracks->options = *options;
	struct vp_error *error = tracks_open_all(directory, tracks);
	if (error)
		vp_tracks_close(tracks);
	else
		*ret = tracks;
	return error;
}

void vp_tracks_close(struct vp_tracks *tracks)
{
	if (tracks->opened)
		vp_feed_close(&tracks->feed);
	vp_vec_each (&tracks->vcpus, vcpu)
		vp_vec_deinit(&vcpu->held);
	vp_track_states_free(tracks->states);
	free(tracks->chosen);
	vp_vec_deinit(&tracks->vcpus);
	vp_vec_deinit(&tracks->pcpus);
	vp_map_deinit(&tracks->vcpu_of_tid);
	vp_map_deinit(&tracks->vcpu_of_key);
	vp_intern_deinit(&tracks->texts);
	free(tracks);
}

const struct vp_feed *vp_tracks_feed(const struct vp_tracks *tracks)
{
	return &tracks->feed;
}

const char *vp_tracks_vm(struct vp_tracks *tracks, uint32_t id)
{
	const struct vp_vm *vm = vp_vms_find(&tracks->feed.vms, id);

	if (vm)
		return vm->name;
	VP_AUTO_FREE char *text = vp_format("%" PRIu32, id);
	return vp_intern_text(&tracks->texts, vp_intern_string(&tracks->texts, text));
}

struct vp_track_switches vp_tracks_switches(const struct vp_tracks *tracks, uint32_t vm,
					    uint32_t vcpu, uint32_t tid)
{
	const uint32_t *index = vp_map_find(&tracks->vcpu_of_key, tracks_key_of(vm, vcpu, tid));

	return index ? tracks->vcpus.at[*index].switches : (struct vp_track_switches){0};
}

const char *vp_tracks_host_thread(struct vp_tracks *tracks, uint32_t tid, const char *comm)
{
	const struct vcpu *vcpu = vcpu_of_tid(tracks, tid);
	VP_AUTO_FREE char *text = vcpu && vcpu->number != VP_VCPU_UNKNOWN
				      ? vp_format("vCPU %" PRIu32 " of VM %s", vcpu->number,
						  vp_tracks_vm(tracks, vcpu->vm))
				      : vp_format("%s/%" PRIu32, comm ? comm : "-", tid);

	return vp_intern_text(&tracks->texts, vp_intern_string(&tracks->texts, text));
}
