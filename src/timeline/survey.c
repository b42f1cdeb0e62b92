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

/* A record of the thread; streams come in the order of their numbers. */
static inline void survey_thread(struct vp_survey_thread *thread, struct vp_survey_moment now,
				 bool blocked)
{
	if (now.time < thread->last.time)
		return;
	thread->last = now;
	thread->blocked = blocked;
}

static inline void survey_vcpu(struct vp_survey_thread *thread, struct vp_survey_moment now,
			       uint32_t vcpu, uint32_t vendor, uint32_t reason, uint32_t flags,
			       bool by_switch)
{
	if (!thread->is_vcpu || now.time < thread->birth.time) {
		thread->is_vcpu = true;
		thread->by_switch = by_switch;
		thread->vcpu = vcpu;
		thread->birth = now;
	}
	survey_thread(thread, now, flags & VP_BLOCKED);
	if (!(flags & VP_HAS_EXIT_REASON) || (thread->exited && now.time < thread->exit.time))
		return;
	thread->exited = true;
	thread->exit = now;
	thread->vendor = vendor;
	thread->reason = reason;
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
	const struct vp_vcpu_sample *vcpu;
	const struct vp_guest_sample *guest;
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
	switch (record.header->id) {
	case VP_ID_host_sample:
		see_tick(pcpu, record.host);
		survey_thread(thread_of(survey, record.host->pid, record.host->tid), now, false);
		break;
	case VP_ID_vcpu_sample:
		see_tick(pcpu, record.host);
		survey_vcpu(thread_of(survey, record.vcpu->vm, record.vcpu->tid), now,
			    record.vcpu->vcpu, record.vcpu->vendor, record.vcpu->exit_reason,
			    record.vcpu->flags & VP_HAS_EXIT_REASON, false);
		break;
	case VP_ID_guest_sample:
		see_tick(pcpu, record.host);
		survey_vcpu(thread_of(survey, record.guest->vm, record.guest->tid), now,
			    record.guest->vcpu, record.guest->vendor, record.guest->exit_reason,
			    record.guest->flags & VP_HAS_EXIT_REASON, false);
		break;
	case VP_ID_vcpu_in:
	case VP_ID_vcpu_out: /* the same fields at the same places */
		survey_vcpu(thread_of(survey, record.in->vm, record.in->tid), now, record.in->vcpu,
			    record.in->vendor, record.in->exit_reason, record.in->flags, true);
		break;
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
