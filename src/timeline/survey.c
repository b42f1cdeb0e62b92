/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/survey.h"

#include <string.h>

static struct vp_survey_thread *find_thread(struct vp_survey *survey, uint32_t owner, uint32_t tid)
{
	bool inserted;
	uint32_t number = *vp_map_insert(&survey->thread_of_ids, (uint64_t)owner << 32 | tid,
					 (uint32_t)survey->threads.count, &inserted);

	if (inserted)
		vp_vec_push(&survey->threads,
			    ((struct vp_survey_thread){.owner = owner, .tid = tid}));
	survey->recent[tid % VP_SURVEY_RECENT] = number + 1;
	return &survey->threads.at[number];
}

static inline struct vp_survey_thread *thread_of(struct vp_survey *survey, uint32_t owner,
						 uint32_t tid)
{
	uint32_t recent = survey->recent[tid % VP_SURVEY_RECENT];
	struct vp_survey_thread *thread = recent ? &survey->threads.at[recent - 1] : NULL;

	if (thread && thread->owner == owner && thread->tid == tid)
		return thread;
	return find_thread(survey, owner, tid);
}

/*
 * What a record of a thread says of it. All of them have owner, tid, vendor and vCPU at the same
 * places. Which kind comes next cannot be foretold: what follows does not branch by it.
 */
struct kind {
	uint8_t of_thread, of_vcpu, by_switch, is_tick;
	uint8_t reason_at; /* where in the record the exit's reason is */
	uint16_t flags;    /* those that count */
};

static const struct kind kinds[VP_ID_MAX + 1] = {
    [VP_ID_host_sample] = {.of_thread = 1, .is_tick = 1},
    [VP_ID_vcpu_sample] = {.of_thread = 1,
			   .of_vcpu = 1,
			   .is_tick = 1,
			   .reason_at = offsetof(struct vp_vcpu_sample, exit_reason),
			   .flags = VP_HAS_EXIT_REASON},
    [VP_ID_guest_sample] = {.of_thread = 1,
			    .of_vcpu = 1,
			    .is_tick = 1,
			    .reason_at = offsetof(struct vp_guest_sample, exit_reason),
			    .flags = VP_HAS_EXIT_REASON},
    [VP_ID_vcpu_in] = {.of_thread = 1,
		       .of_vcpu = 1,
		       .by_switch = 1,
		       .reason_at = offsetof(struct vp_vcpu_in, exit_reason),
		       .flags = VP_HAS_EXIT_REASON | VP_BLOCKED},
    [VP_ID_vcpu_out] = {.of_thread = 1,
			.of_vcpu = 1,
			.by_switch = 1,
			.reason_at = offsetof(struct vp_vcpu_out, exit_reason),
			.flags = VP_HAS_EXIT_REASON | VP_BLOCKED},
};
_Static_assert(offsetof(struct vp_host_sample, pid) == offsetof(struct vp_vcpu_in, vm) &&
		   offsetof(struct vp_vcpu_sample, vm) == offsetof(struct vp_vcpu_in, vm) &&
		   offsetof(struct vp_guest_sample, vm) == offsetof(struct vp_vcpu_in, vm) &&
		   offsetof(struct vp_host_sample, tid) == offsetof(struct vp_vcpu_in, tid) &&
		   offsetof(struct vp_vcpu_sample, tid) == offsetof(struct vp_vcpu_in, tid) &&
		   offsetof(struct vp_guest_sample, tid) == offsetof(struct vp_vcpu_in, tid) &&
		   offsetof(struct vp_vcpu_sample, vcpu) == offsetof(struct vp_vcpu_in, vcpu) &&
		   offsetof(struct vp_guest_sample, vcpu) == offsetof(struct vp_vcpu_in, vcpu) &&
		   offsetof(struct vp_vcpu_sample, vendor) == offsetof(struct vp_vcpu_in, vendor) &&
		   offsetof(struct vp_guest_sample, vendor) == offsetof(struct vp_vcpu_in, vendor),
	       "records of threads begin alike");

/* Of a thread that has a record: streams come in the order of their numbers. */
static inline void see_thread(struct vp_survey *survey, const struct kind *kind,
			      const struct vp_vcpu_in *record, struct vp_survey_moment now)
{
	struct vp_survey_thread *thread = thread_of(survey, record->vm, record->tid);
	struct vp_survey_exit elsewhere, *exit = &elsewhere;
	uint32_t flags = record->flags & kind->flags, reason;

	if (kind->of_vcpu & (!thread->is_vcpu | (now.time < thread->birth.time))) {
		thread->is_vcpu = true;
		thread->by_switch = kind->by_switch;
		thread->vcpu = record->vcpu;
		thread->birth = now;
	}
	if (now.time >= thread->last.time) {
		thread->last = now;
		thread->blocked = (flags & VP_BLOCKED) != 0;
	}
	memcpy(&reason, (const char *)record + kind->reason_at, sizeof(reason));
	if ((flags & VP_HAS_EXIT_REASON) && now.time >= thread->exit.at.time)
		exit = &thread->exit;
	*exit = (struct vp_survey_exit){now, record->vendor, reason, true};
}

static inline void see_tick(struct vp_survey_pcpu *pcpu, const struct vp_host_sample *sample)
{
	pcpu->last_tick = sample->time;
	pcpu->ticked = true;
	if (pcpu->chain)
		(void)vp_chain_use(pcpu->chain, sample->tid, sample->flags & VP_LATE);
}

static void see_chain(struct vp_survey_pcpu *pcpu, const struct vp_record_header *record)
{
	if (!pcpu->chain)
		pcpu->chain = vp_alloc(sizeof(*pcpu->chain));
	vp_chain_take(pcpu->chain, record);
}

#define SEE_NAME(map, names, with_key, now, text)                                                  \
	do {                                                                                       \
		bool inserted;                                                                     \
		uint32_t number =                                                                  \
		    *vp_map_insert(map, with_key, (uint32_t)(names)->count, &inserted);            \
		if (inserted)                                                                      \
			vp_vec_push(names, ((struct vp_survey_name){.key = (with_key)}));          \
		struct vp_survey_name *name = &(names)->at[number];                                \
		if ((now).time >= name->time) {                                                    \
			name->time = (now).time;                                                   \
			memcpy(name->comm, text, sizeof(name->comm));                              \
		}                                                                                  \
	} while (0)

union any {
	const struct vp_record_header *header;
	const struct vp_host_sample *host;
	const struct vp_vcpu_in *in;
	const struct vp_task *task;
	const struct vp_guest_task *guest_task;
};

static void see_name(struct vp_survey *survey, union any record, struct vp_survey_moment now)
{
	if (record.header->id == VP_ID_task)
		SEE_NAME(&survey->name_of_tid, &survey->names, record.task->tid, now,
			 record.task->comm);
	else
		SEE_NAME(&survey->name_of_guest_tid, &survey->guest_names,
			 (uint64_t)record.guest_task->vm << 32 | record.guest_task->guest_tid, now,
			 record.guest_task->comm);
}

static inline void see(struct vp_survey *survey, struct vp_survey_pcpu *pcpu, union any record,
		       struct vp_survey_moment now)
{
	uint32_t id = record.header->id <= VP_ID_MAX ? record.header->id : 0;
	const struct kind *kind = &kinds[id];

	if (kind->of_thread) {
		if (kind->is_tick)
			see_tick(pcpu, record.host);
		see_thread(survey, kind, record.in, now);
		return;
	}
	switch (record.header->id) {
	case VP_ID_task:
	case VP_ID_guest_task:
		see_name(survey, record, now);
		break;
	case VP_ID_guest_regs:
	case VP_ID_chain_frames:
	case VP_ID_chain_stack:
		see_chain(pcpu, record.header);
		break;
	default:
		break;
	}
}

static void survey_stream(struct vp_survey *survey, struct vp_stream_reader *stream,
			  uint32_t number, uint64_t until)
{
	struct vp_survey_pcpu *pcpu = &survey->pcpus.at[number];
	struct vp_survey_moment now = {.stream = number};
	union any record;

	vp_stream_trust(stream, true);
	while ((record.header = vp_stream_next(stream)) && record.header->time < until) {
		uint64_t time = record.header->time;
		if (!survey->first || (!now.time && time < survey->first))
			survey->first = time;
		now.time = time > now.time ? time : now.time;
		see(survey, pcpu, record, now);
	}
	vp_stream_trust(stream, false);
	survey->heads[number] = record.header;
	survey->last = now.time > survey->last ? now.time : survey->last;
}

void vp_survey_make(const vp_stream_readers *streams, uint64_t until, struct vp_survey *ret)
{
	*ret = (struct vp_survey){0};
	ret->heads = vp_alloc((streams->count + 1) * sizeof(*ret->heads));
	for (uint32_t i = 0; i < streams->count; i++) {
		vp_vec_push(&ret->pcpus, (struct vp_survey_pcpu){0});
		survey_stream(ret, streams->at[i], i, until);
	}
}

void vp_survey_deinit(struct vp_survey *survey)
{
	free(survey->heads);
	vp_vec_each (&survey->pcpus, pcpu)
		free(pcpu->chain);
	vp_vec_deinit(&survey->pcpus);
	vp_vec_deinit(&survey->threads);
	vp_vec_deinit(&survey->names);
	vp_vec_deinit(&survey->guest_names);
	vp_map_deinit(&survey->thread_of_ids);
	vp_map_deinit(&survey->name_of_tid);
	vp_map_deinit(&survey->name_of_guest_tid);
}
