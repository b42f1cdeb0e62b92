/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/timeline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "store/packet.h"
#include "store/recording.h"

/* One hour. Longer periods are invalid, and their multiples might overflow. */
#define FILL_PERIOD_MAX 3600000000000ULL

void vp_timeline_init(struct vp_timeline *timeline, const struct vp_recording *recording,
		      vp_vms *vms, const vp_stream_readers *streams,
		      const struct vp_record_header *const *heads)
{
	*timeline = (struct vp_timeline){0};
	vp_guests_init(&timeline->guests, vms, streams->count);
	vp_merge_init(&timeline->merge, streams, heads);
	uint32_t pcpus = 0;
	vp_vec_each (streams, stream) {
		bool of_vcpus = vp_stream_class(*stream) == VP_STREAM_GUESTS;
		vp_vec_push(&timeline->pcpus, ((struct vp_pcpu){.last_tick = recording->start,
								.of_vcpus = of_vcpus}));
		pcpus += !of_vcpus;
	}
	for (size_t i = 0; i < VP_OCCUPANTS; i++)
		timeline->occupants[i].tid = timeline->occupants[i].owner = VP_NONE;
	timeline->weighting = recording->weighting;
	timeline->tick_weight = recording->weighting == VP_WEIGHTING_TICKS  ? 1
				: recording->weighting == VP_WEIGHTING_TIME ? recording->period_ns
				: recording->events                         ? recording->events
									    : 1;
	if (recording->weighting != VP_WEIGHTING_TIME || !recording->start ||
	    recording->period_ns > FILL_PERIOD_MAX)
		return;
	timeline->fill_period = recording->period_ns;
	timeline->next_fill = recording->start;
	timeline->fill_start = recording->start;
	timeline->fill_end = recording->end;
	if (recording->pcpus > pcpus)
		timeline->unseen_pcpus = recording->pcpus - pcpus;
}

void vp_timeline_deinit(struct vp_timeline *timeline)
{
	vp_guests_deinit(&timeline->guests);
	vp_merge_deinit(&timeline->merge);
	vp_intern_deinit(&timeline->comms);
	vp_map_deinit(&timeline->comm_of_tid);
	vp_map_deinit(&timeline->comm_of_guest_tid);
	vp_vec_each (&timeline->pcpus, pcpu)
		free(pcpu->chain);
	vp_vec_deinit(&timeline->pcpus);
}

static void name_set(struct vp_timeline *timeline, struct vp_map *names, uint64_t key,
		     uint32_t comm)
{
	bool inserted;
	uint32_t *known = vp_map_insert(names, key, comm, &inserted);

	timeline->renames += inserted || *known != comm;
	*known = comm;
}

void vp_timeline_name(struct vp_timeline *timeline, uint32_t tid, const char name[16])
{
	struct vp_occupant *occupant = &timeline->occupants[tid % VP_OCCUPANTS];
	uint32_t comm = vp_intern_add(&timeline->comms, name, sizeof(((struct vp_task *)0)->comm));

	name_set(timeline, &timeline->comm_of_tid, tid, comm);
	if (occupant->tid == tid)
		occupant->comm = comm;
}

static uint64_t guest_tid_key(uint32_t vm_id, uint32_t tid)
{
	return (uint64_t)vm_id << 32 | tid;
}

void vp_timeline_name_guest(struct vp_timeline *timeline, uint32_t vm_id, uint32_t guest_tid,
			    const char name[16])
{
	uint32_t comm = vp_intern_add(&timeline->comms, name, sizeof(((struct vp_task *)0)->comm));

	name_set(timeline, &timeline->comm_of_guest_tid, guest_tid_key(vm_id, guest_tid), comm);
}

static void take_task(struct vp_timeline *timeline, const struct vp_task *task)
{
	vp_timeline_name(timeline, task->tid, task->comm);
}

static void take_guest_task(struct vp_timeline *timeline, const struct vp_guest_task *task)
{
	vp_timeline_name_guest(timeline, task->vm, task->guest_tid, task->comm);
}

static void look_up(struct vp_timeline *timeline, uint32_t owner, uint32_t tid,
		    struct vp_occupant *occupant)
{
	struct vp_guests *guests = &timeline->guests;
	const uint32_t *comm = vp_map_find(&timeline->comm_of_tid, tid);
	*occupant = (struct vp_occupant){
	    .owner = owner,
	    .tid = tid,
	    .generation = guests->generation,
	    .vm = vp_guests_vm(guests, owner),
	    .vcpu = vp_guests_vcpu(guests, owner, tid),
	    .comm = comm ? *comm : VP_NONE,
	};
}

static inline const struct vp_occupant *occupy(struct vp_timeline *timeline, uint32_t owner,
					       uint32_t tid)
{
	struct vp_occupant *occupant = &timeline->occupants[tid % VP_OCCUPANTS];

	if (occupant->tid != tid || occupant->owner != owner ||
	    occupant->generation != timeline->guests.generation)
		look_up(timeline, owner, tid, occupant);
	return occupant;
}

/* A record of a vCPU thread on a pCPU sets the vCPU's home and its last exit. */
static inline void timeline_see_vcpu(struct vp_timeline *timeline, uint32_t pcpu, uint32_t vcpu,
				     uint32_t vendor, uint32_t reason, uint32_t flags)
{
	struct vp_vcpu_state *state = &timeline->guests.vcpus.at[vcpu];

	if (timeline->no_homes)
		return;
	vp_guests_move(&timeline->guests, vcpu, pcpu);
	state->blocked = flags & VP_BLOCKED;
	if (flags & VP_HAS_EXIT_REASON)
		state->exit = (struct vp_exit){vendor, reason, true};
}

static void timeline_take_switch(struct vp_timeline *timeline, uint32_t pcpu,
				 const struct vp_vcpu_in *in)
{
	uint32_t vcpu = vp_guests_vcpu_add(&timeline->guests, in->vm, in->tid, in->vcpu);

	timeline_see_vcpu(timeline, pcpu, vcpu, in->vendor, in->exit_reason, in->flags);
}

static void timeline_take_period(struct vp_timeline *timeline, const struct vp_merge_head *head)
{
	const struct vp_sample_period *period = (const void *)head->record;

	timeline->pcpus.at[head->stream].events = period->events;
}

static void timeline_take_chain(struct vp_timeline *timeline, const struct vp_merge_head *head)
{
	struct vp_pcpu *pcpu = &timeline->pcpus.at[head->stream];

	if (timeline->no_chains)
		return;
	if (!pcpu->chain)
		pcpu->chain = vp_alloc(sizeof(*pcpu->chain));
	vp_chain_take(pcpu->chain, head->record);
}

/* Samples by a vCPU's CPU time are clock ticks, whatever samples the pCPUs. */
static inline uint64_t weight_of(const struct vp_timeline *timeline, struct vp_pcpu *pcpu,
				 uint64_t time)
{
	uint64_t weight = timeline->tick_weight;

	if (__builtin_expect(timeline->weighting == VP_WEIGHTING_TICKS, 1) || pcpu->of_vcpus)
		return weight;
	if (timeline->weighting == VP_WEIGHTING_TIME) {
		weight = time > pcpu->last_tick ? time - pcpu->last_tick : 0;
		pcpu->last_tick = time;
	} else if (pcpu->events) {
		weight = pcpu->events;
		pcpu->events = 0;
	}
	return weight;
}

static inline void tick_of_sample(struct vp_timeline *timeline, const struct vp_merge_head *head,
				  struct vp_tick *tick)
{
	const struct vp_host_sample *sample = (const void *)head->record;
	const struct vp_occupant *occupant = occupy(timeline, sample->pid, sample->tid);

	*tick = (struct vp_tick){
	    .time = head->time,
	    .pcpu = head->stream,
	    .of_vcpu = timeline->pcpus.at[head->stream].of_vcpus,
	    .sample = sample,
	    .mode = sample->mode,
	    .vm = occupant->vm,
	    .vcpu = occupant->vcpu,
	    .comm = occupant->comm,
	};
}

uint32_t vp_timeline_guest_comm(const struct vp_timeline *timeline,
				const struct vp_guest_sample *sample)
{
	uint64_t key = guest_tid_key(sample->vm, sample->guest_tid);
	const uint32_t *comm =
	    sample->flags & VP_BY_MEMORY ? vp_map_find(&timeline->comm_of_guest_tid, key) : NULL;

	return comm ? *comm : VP_NONE;
}

static inline void tick_of_vcpu(struct vp_timeline *timeline, const struct vp_merge_head *head,
				struct vp_tick *tick)
{
	const struct vp_vcpu_sample *sample = (const void *)head->record;

	tick_of_sample(timeline, head, tick);
	if (tick->vcpu == VP_NONE) {
		vp_guests_vcpu_add(&timeline->guests, sample->vm, sample->tid, sample->vcpu);
		tick_of_sample(timeline, head, tick);
	}
}

static inline void tick_of_guest(struct vp_timeline *timeline, const struct vp_merge_head *head,
				 struct vp_tick *tick)
{
	const struct vp_guest_sample *sample = (const void *)head->record;

	tick_of_vcpu(timeline, head, tick);
	tick->comm = vp_timeline_guest_comm(timeline, sample);
	/* KVM's flag for user or kernel mode may be older than the guest RIP; the privilege level
	 * is from the same exit as the RIP. */
	if (sample->flags & VP_HAS_CPL)
		tick->mode = sample->cpl == 3 ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL;
}

static inline void take_guest_sample(struct vp_timeline *timeline, const struct vp_merge_head *head,
				     struct vp_tick *tick)
{
	const struct vp_guest_sample *sample = (const void *)head->record;

	tick_of_guest(timeline, head, tick);
	timeline_see_vcpu(timeline, head->stream, tick->vcpu, sample->vendor, sample->exit_reason,
			  sample->flags & VP_HAS_EXIT_REASON);
}

static inline void take_vcpu_sample(struct vp_timeline *timeline, const struct vp_merge_head *head,
				    struct vp_tick *tick)
{
	const struct vp_vcpu_sample *sample = (const void *)head->record;

	tick_of_vcpu(timeline, head, tick);
	timeline_see_vcpu(timeline, head->stream, tick->vcpu, sample->vendor, sample->exit_reason,
			  sample->flags & VP_HAS_EXIT_REASON);
}

/* A vCPU thread outside of KVM is working for its VM, so the vCPU is not blocked. */
static inline void take_host_sample(struct vp_timeline *timeline, const struct vp_merge_head *head,
				    struct vp_tick *tick)
{
	tick_of_sample(timeline, head, tick);
	if (tick->vcpu != VP_NONE)
		timeline_see_vcpu(timeline, head->stream, tick->vcpu, 0, 0, 0);
}

/* Processes one record; true if it is a tick. */
static inline bool timeline_take_record(struct vp_timeline *timeline,
					const struct vp_merge_head *head, struct vp_tick *tick)
{
	switch (head->record->id) {
	case VP_ID_host_sample:
		take_host_sample(timeline, head, tick);
		return true;
	case VP_ID_vcpu_sample:
		take_vcpu_sample(timeline, head, tick);
		return true;
	case VP_ID_guest_sample:
		take_guest_sample(timeline, head, tick);
		return true;
	case VP_ID_task:
		take_task(timeline, (const void *)head->record);
		return false;
	case VP_ID_guest_task:
		take_guest_task(timeline, (const void *)head->record);
		return false;
	case VP_ID_vcpu_in:
	case VP_ID_vcpu_out: /* the same fields at the same offset */
		timeline_take_switch(timeline, head->stream, (const void *)head->record);
		return false;
	case VP_ID_sample_period:
		timeline_take_period(timeline, head);
		return false;
	case VP_ID_guest_regs:
	case VP_ID_chain_frames:
	case VP_ID_chain_stack:
		timeline_take_chain(timeline, head);
		return false;
	default:
		return false;
	}
}

void vp_timeline_tick(struct vp_timeline *timeline, uint32_t stream,
		      const struct vp_record_header *record, struct vp_tick *tick)
{
	const struct vp_merge_head head = {record->time, stream, record};

	if (record->id == VP_ID_guest_sample)
		tick_of_guest(timeline, &head, tick);
	else if (record->id == VP_ID_vcpu_sample)
		tick_of_vcpu(timeline, &head, tick);
	else
		tick_of_sample(timeline, &head, tick);
}

void vp_timeline_take(struct vp_timeline *timeline, uint32_t stream,
		      const struct vp_record_header *record)
{
	const struct vp_merge_head head = {record->time, stream, record};
	struct vp_tick tick;

	(void)timeline_take_record(timeline, &head, &tick);
}

uint64_t vp_timeline_weight(struct vp_timeline *timeline, uint32_t stream, uint64_t time)
{
	return weight_of(timeline, &timeline->pcpus.at[stream], time);
}

/* Whether the record renames the thread. */
static bool is_other_name(const struct vp_timeline *timeline, const uint32_t *known,
			  const char name[VP_COMM_SIZE])
{
	return !known || strncmp(vp_intern_text(&timeline->comms, *known), name, VP_COMM_SIZE) != 0;
}

bool vp_timeline_is_of_all(struct vp_timeline *timeline, uint32_t stream,
			   const struct vp_record_header *record)
{
	struct vp_guests *guests = &timeline->guests;
	union {
		const struct vp_record_header *header;
		const struct vp_host_sample *sample;
		const struct vp_task *task;
		const struct vp_guest_task *guest_task;
		const struct vp_vcpu_in *in;
	} at = {record};
	uint32_t vcpu;

	switch (record->id) {
	case VP_ID_host_sample:
		vcpu = occupy(timeline, at.sample->pid, at.sample->tid)->vcpu;
		return vcpu != VP_NONE && !timeline->no_homes &&
		       guests->vcpus.at[vcpu].home != stream;
	case VP_ID_vcpu_sample:
	case VP_ID_guest_sample:
		vcpu = occupy(timeline, at.sample->pid, at.sample->tid)->vcpu;
		return vcpu == VP_NONE ||
		       (!timeline->no_homes && guests->vcpus.at[vcpu].home != stream);
	case VP_ID_task:
		return is_other_name(timeline, vp_map_find(&timeline->comm_of_tid, at.task->tid),
				     at.task->comm);
	case VP_ID_guest_task:
		return is_other_name(
		    timeline,
		    vp_map_find(&timeline->comm_of_guest_tid,
				guest_tid_key(at.guest_task->vm, at.guest_task->guest_tid)),
		    at.guest_task->comm);
	case VP_ID_vcpu_in:
	case VP_ID_vcpu_out:
		vcpu = vp_guests_vcpu(guests, at.in->vm & VP_PID_MASK, at.in->tid);
		return vcpu == VP_NONE ||
		       vp_vm_id(&guests->vms->at[guests->vcpus.at[vcpu].vm]) != at.in->vm ||
		       (!timeline->no_homes && guests->vcpus.at[vcpu].home != stream);
	default:
		return false;
	}
}

/*
 * A pCPU without a sample for 1.5 periods was idle: returns its missed ticks up to `now`, one pCPU
 * per call; false when there are no more.
 */
static bool fill_gap(struct vp_timeline *timeline, uint64_t now, struct vp_tick *tick)
{
	uint64_t period = timeline->fill_period;

	for (; timeline->fill_at < timeline->pcpus.count; timeline->fill_at++) {
		struct vp_pcpu *pcpu = &timeline->pcpus.at[timeline->fill_at];
		if (pcpu->of_vcpus || now <= pcpu->last_tick ||
		    now - pcpu->last_tick <= period + period / 2)
			continue;
		/* Each missed tick is due half a period late, so that the result does not depend on
		 * the number of calls. */
		uint64_t missed = (now - pcpu->last_tick - period / 2 - 1) / period;
		pcpu->last_tick += missed * period;
		*tick = (struct vp_tick){.time = pcpu->last_tick,
					 .weight = missed * period,
					 .pcpu = timeline->fill_at,
					 .vm = VP_NONE,
					 .vcpu = VP_NONE,
					 .comm = VP_NONE};
		return true;
	}
	timeline->fill_at = 0;
	timeline->next_fill = UINT64_MAX;
	vp_vec_each (&timeline->pcpus, pcpu) {
		uint64_t due = pcpu->last_tick + period + period / 2;
		if (!pcpu->of_vcpus && due < timeline->next_fill)
			timeline->next_fill = due;
	}
	return false;
}

/* Fills the time from each pCPU's last sample to the end, one pCPU per call. */
static bool fill_ends(struct vp_timeline *timeline, uint64_t end, struct vp_tick *tick)
{
	for (; timeline->end_at < timeline->pcpus.count; timeline->end_at++) {
		struct vp_pcpu *pcpu = &timeline->pcpus.at[timeline->end_at];
		if (pcpu->of_vcpus || end <= pcpu->last_tick)
			continue;
		*tick = (struct vp_tick){.time = end,
					 .weight = end - pcpu->last_tick,
					 .pcpu = timeline->end_at,
					 .vm = VP_NONE,
					 .vcpu = VP_NONE,
					 .comm = VP_NONE};
		pcpu->last_tick = end;
		return true;
	}
	return false;
}

/* After the end of all streams: fills the time up to the recording's end. */
static bool fill_rest(struct vp_timeline *timeline, struct vp_tick *tick)
{
	if (!timeline->fill_period)
		return false;
	uint64_t end = timeline->fill_end ? timeline->fill_end : timeline->last;
	if (fill_gap(timeline, end, tick) || fill_ends(timeline, end, tick))
		return true;
	uint64_t start = timeline->fill_start;
	uint64_t unseen = end > start ? end - start : 0;
	*tick = (struct vp_tick){.time = end,
				 .weight = unseen * timeline->unseen_pcpus,
				 .pcpu = VP_NONE,
				 .vm = VP_NONE,
				 .vcpu = VP_NONE,
				 .comm = VP_NONE};
	timeline->fill_period = 0;
	return tick->weight > 0;
}

static inline const struct vp_merge_head *timeline_next_record(struct vp_timeline *timeline)
{
	const struct vp_merge_head *head = vp_merge_next(&timeline->merge);

	if (!head || (timeline->until && head->time >= timeline->until))
		return NULL;
	if (!timeline->first)
		timeline->first = head->time;
	timeline->last = head->time > timeline->last ? head->time : timeline->last;
	return head;
}

/* A late sample shares the stacks of the next sample. `flags` is the first field of every
 * sample. */
static inline void find_chain(const struct vp_timeline *timeline, struct vp_tick *tick)
{
	struct vp_chain *chain = timeline->pcpus.at[tick->pcpu].chain;

	if (chain && vp_chain_use(chain, tick->sample->tid, tick->sample->flags & VP_LATE))
		tick->chain = chain;
}

bool vp_timeline_next(struct vp_timeline *timeline, struct vp_tick *tick)
{
	for (;;) {
		const struct vp_merge_head *head =
		    timeline->pending ? timeline->pending : timeline_next_record(timeline);
		timeline->pending = NULL;
		if (!head)
			return !timeline->until && fill_rest(timeline, tick);
		if (timeline->fill_period && head->time > timeline->next_fill &&
		    fill_gap(timeline, head->time, tick)) {
			timeline->pending = head;
			return true;
		}
		if (timeline_take_record(timeline, head, tick)) {
			tick->weight =
			    weight_of(timeline, &timeline->pcpus.at[head->stream], head->time);
			find_chain(timeline, tick);
			return true;
		}
	}
}
