/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/survey.h"

#include <string.h>

#include "base/alloc.h"
#include "schema/records.h"
#include "schema/schema.h"

/* Common members of thread records: owner, tid, vendor and vCPU have the same offset in all of
 * them. The kind of the next record is unpredictable, so the code that follows avoids branches on
 * it. */
struct kind {
	uint8_t of_thread, of_vcpu, by_switch, is_tick;
	uint8_t reason_at; /* offset of the exit reason in the record */
	uint8_t size;
	uint16_t flags; /* flags that are defined for this kind */
};

static const struct kind kinds[VP_ID_MAX + 1] = {
    [VP_ID_host_sample] = {.of_thread = 1, .is_tick = 1, .size = sizeof(struct vp_host_sample)},
    [VP_ID_vcpu_sample] = {.of_thread = 1,
			   .of_vcpu = 1,
			   .is_tick = 1,
			   .reason_at = offsetof(struct vp_vcpu_sample, exit_reason),
			   .size = sizeof(struct vp_vcpu_sample),
			   .flags = VP_HAS_EXIT_REASON},
    [VP_ID_guest_sample] = {.of_thread = 1,
			    .of_vcpu = 1,
			    .is_tick = 1,
			    .reason_at = offsetof(struct vp_guest_sample, exit_reason),
			    .size = sizeof(struct vp_guest_sample),
			    .flags = VP_HAS_EXIT_REASON},
    [VP_ID_vcpu_in] = {.of_thread = 1,
		       .of_vcpu = 1,
		       .by_switch = 1,
		       .reason_at = offsetof(struct vp_vcpu_in, exit_reason),
		       .size = sizeof(struct vp_vcpu_in),
		       .flags = VP_HAS_EXIT_REASON | VP_BLOCKED},
    [VP_ID_vcpu_out] = {.of_thread = 1,
			.of_vcpu = 1,
			.by_switch = 1,
			.reason_at = offsetof(struct vp_vcpu_out, exit_reason),
			.size = sizeof(struct vp_vcpu_out),
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
	       "thread records have the same first members");

/* Updates the thread's exit from a record. Records of a stream come in time order, streams in order
 * of their numbers. */
static void survey_see_exit(struct vp_survey_thread *thread, const struct vp_vcpu_in *record,
			    struct vp_survey_moment now)
{
	uint32_t reason;

	if (now.time < thread->exit.at.time)
		return;
	memcpy(&reason, (const char *)record + kinds[record->id].reason_at, sizeof(reason));
	thread->exit = (struct vp_survey_exit){now, record->vendor, reason, true};
}

static void survey_note_vcpu(struct vp_survey_thread *thread, const struct vp_vcpu_in *record,
			     struct vp_survey_moment now)
{
	if (now.time < thread->last.time)
		return;
	thread->last = now;
	thread->blocked = (record->flags & kinds[record->id].flags & VP_BLOCKED) != 0;
}

/* Processes the postponed last records of the thread. */
static void survey_settle(struct vp_survey *survey, struct vp_survey_recent *recent,
			  uint32_t stream)
{
	const struct vp_vcpu_in *without = recent->last[0], *with = recent->last[1];
	struct vp_survey_thread *thread = &survey->threads.at[recent->number];
	const struct vp_vcpu_in *last = without > with ? without : with;

	if (with)
		survey_see_exit(thread, with, (struct vp_survey_moment){with->time, stream});
	if (last)
		survey_note_vcpu(thread, last, (struct vp_survey_moment){last->time, stream});
	recent->last[0] = recent->last[1] = NULL;
}

static void settle_all(struct vp_survey *survey, uint32_t stream)
{
	struct vp_survey_recent *recent = survey->pending;

	for (; recent; recent = recent->next) {
		survey_settle(survey, recent, stream);
		recent->is_pending = false;
	}
	survey->pending = NULL;
}

static uint32_t thread_add(struct vp_survey *survey, uint32_t owner, uint32_t tid)
{
	bool inserted;
	uint32_t number = *vp_map_insert(&survey->thread_of_ids, (uint64_t)owner << 32 | tid,
					 (uint32_t)survey->threads.count, &inserted);

	if (inserted)
		vp_vec_push(&survey->threads,
			    ((struct vp_survey_thread){.owner = owner, .tid = tid}));
	return number;
}

static inline bool survey_is_of(const struct vp_survey_recent *recent,
				const struct vp_vcpu_in *record)
{
	return recent->is_used && recent->tid == record->tid && recent->owner == record->vm;
}

/* The thread's slot in the cache of recent threads, with its postponed records processed. */
static struct vp_survey_recent *recent_of(struct vp_survey *survey, const struct vp_vcpu_in *record,
					  uint32_t stream)
{
	struct vp_survey_recent *recent = &survey->recent[record->tid % VP_SURVEY_RECENT];

	if (recent->is_used)
		survey_settle(survey, recent, stream);
	if (survey_is_of(recent, record))
		return recent;
	recent->is_used = true;
	recent->is_born = false;
	recent->owner = record->vm;
	recent->tid = record->tid;
	recent->number = thread_add(survey, record->vm, record->tid);
	return recent;
}

static void see_thread(struct vp_survey *survey, const struct kind *kind,
		       const struct vp_vcpu_in *record, struct vp_survey_moment now)
{
	struct vp_survey_recent *recent = recent_of(survey, record, now.stream);
	struct vp_survey_thread *thread = &survey->threads.at[recent->number];

	recent->is_born |= kind->of_vcpu;
	if (kind->of_vcpu && (!thread->is_vcpu || now.time < thread->birth.time)) {
		thread->is_vcpu = true;
		thread->by_switch = kind->by_switch;
		thread->vcpu = record->vcpu;
		thread->birth = now;
	}
	survey_note_vcpu(thread, record, now);
	if (record->flags & kind->flags & VP_HAS_EXIT_REASON)
		survey_see_exit(thread, record, now);
}

static inline void see_tick(struct vp_survey_pcpu *pcpu, const struct vp_host_sample *sample)
{
	pcpu->last_tick = sample->time;
	pcpu->ticked = true;
	pcpu->events = 0;
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
	const struct vp_sample_period *period;
};

static void survey_see_name(struct vp_survey *survey, union any record, struct vp_survey_moment now)
{
	if (record.header->id == VP_ID_task)
		SEE_NAME(&survey->name_of_tid, &survey->names, record.task->tid, now,
			 record.task->comm);
	else
		SEE_NAME(&survey->name_of_guest_tid, &survey->guest_names,
			 (uint64_t)record.guest_task->vm << 32 | record.guest_task->guest_tid, now,
			 record.guest_task->comm);
}

static inline void survey_see(struct vp_survey *survey, struct vp_survey_pcpu *pcpu,
			      union any record, struct vp_survey_moment now)
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
		survey_see_name(survey, record, now);
		break;
	case VP_ID_sample_period:
		pcpu->events = record.period->events;
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

/*
 * Most records are of recently seen threads, and have only the thread's pCPU and exit reason: the
 * last record of each thread in a packet is sufficient. Skips such records from the cursor on, up
 * to one that has more, is out of order or not before `until`.
 */
static void pass_by(struct vp_survey *survey, struct vp_survey_pcpu *pcpu,
		    struct vp_stream_cursor *cursor, uint64_t until, struct vp_survey_moment *now)
{
	const struct vp_host_sample *tick_or_not[2] = {NULL, NULL};
	const char *at = cursor->at, *end = cursor->end;
	uint64_t time = now->time, records = 0;

	while (end - at >= (ptrdiff_t)sizeof(struct vp_guest_sample)) {
		const struct vp_vcpu_in *record = (const void *)at;
		const struct kind *kind = &kinds[record->id <= VP_ID_MAX ? record->id : 0];
		struct vp_survey_recent *recent = &survey->recent[record->tid % VP_SURVEY_RECENT];

		if (!kind->of_thread || record->time < time || record->time >= until ||
		    !survey_is_of(recent, record) || kind->of_vcpu > recent->is_born)
			break;
		if (!recent->is_pending) {
			recent->is_pending = true;
			recent->next = survey->pending;
			survey->pending = recent;
		}
		recent->last[(record->flags & kind->flags & VP_HAS_EXIT_REASON) != 0] = record;
		tick_or_not[kind->is_tick] = (const void *)record;
		time = record->time;
		at += kind->size;
		records++;
	}
	if (tick_or_not[1])
		see_tick(pcpu, tick_or_not[1]);
	now->time = time;
	cursor->at = at;
	cursor->records += records;
}

/* As in packet_threads.c: threads of marked packets have at most 24 bits. */
static uint64_t survey_key(const struct vp_vcpu_in *record)
{
	return (uint64_t)record->vm << 32 | (uint64_t)record->id << 24 | (record->tid & 0xffffff);
}

static void survey_threads_deinit(struct vp_survey_threads *threads)
{
	vp_map_deinit(&threads->reasons);
	vp_vec_deinit(&threads->keys);
	threads->ticked = false;
}

/* The threads of the packet just read. */
static void threads_of_packet(struct vp_stream_reader *stream, struct vp_survey_threads *ret)
{
	const char *at = (const char *)(vp_stream_packet(stream) + 1);
	const char *end = vp_stream_packet_end(stream);
	bool inserted;

	survey_threads_deinit(ret);
	while (at < end) {
		const struct vp_vcpu_in *record = (const void *)at;
		const struct kind *kind = &kinds[record->id <= VP_ID_MAX ? record->id : 0];
		size_t size = vp_record_size(record->id);
		if (!size || size > (size_t)(end - at))
			return;
		at += size;
		if (!kind->of_thread)
			continue;
		ret->ticked |= kind->is_tick;
		uint32_t *reason = vp_map_insert(&ret->reasons, survey_key(record), 0, &inserted);
		*reason |= (record->flags & kind->flags & VP_HAS_EXIT_REASON) != 0;
		if (inserted)
			vp_vec_push(&ret->keys, survey_key(record));
	}
}

/* Whether the packet just read has all that skipped ones may have left: their threads and types of
 * records are among those of the packet before them. */
static bool survey_has_all(const struct vp_survey *survey, struct vp_stream_reader *stream)
{
	const struct vp_survey_threads *first = &survey->skip.first;
	struct vp_survey_threads last = {0};
	bool all = true;

	threads_of_packet(stream, &last);
	if (survey->needs.weights)
		all = last.ticked;
	for (size_t i = 0; survey->needs.homes && all && i < first->keys.count; i++) {
		uint64_t key = first->keys.at[i];
		const uint32_t *reason = vp_map_find(&last.reasons, key);
		all = reason && (*reason || !kinds[key >> 24 & 0xff].reason_at);
	}
	survey_threads_deinit(&last);
	return all;
}

/* At the end of a packet: skips packets that only continue it, or has skipped ones read. */
static void survey_skip(struct vp_survey *survey, struct vp_stream_reader *stream, uint64_t until,
			struct vp_survey_moment *now)
{
	const struct vp_packet_header *packet = vp_stream_packet(stream);
	struct vp_survey_skip *skip = &survey->skip;
	bool was_pending = skip->is_pending;

	if (!packet || survey->needs.ticks)
		return;
	skip->is_pending = false;
	if (was_pending && !survey_has_all(survey, stream)) {
		skip->read_to = packet->packet_seq_num;
		vp_stream_seek(stream, skip->position);
		now->time = skip->time;
		return;
	}
	if (packet->packet_seq_num < skip->read_to)
		return;
	skip->position = vp_stream_position(stream);
	skip->time = now->time;
	if (!vp_stream_skip_continuing(stream, until) ||
	    !(survey->needs.homes || survey->needs.weights))
		return;
	threads_of_packet(stream, &skip->first);
	skip->is_pending = true;
}

/* The next record of the stream. Postponed records are processed before the reader replaces the
 * packet. */
static const struct vp_record_header *next_of(struct vp_survey *survey,
					      struct vp_stream_reader *stream, uint64_t until,
					      struct vp_survey_moment *now)
{
	const struct vp_stream_cursor *cursor = (const void *)stream;
	size_t size =
	    vp_record_size(((const struct vp_record_header *)(const void *)cursor->at)->id);

	if (!size || size > (size_t)(cursor->end - cursor->at)) {
		settle_all(survey, now->stream);
		if (cursor->at == cursor->end)
			survey_skip(survey, stream, until, now);
	}
	return vp_stream_next(stream);
}

static void survey_stream(struct vp_survey *survey, struct vp_stream_reader *stream,
			  uint32_t number, uint64_t until)
{
	struct vp_survey_pcpu *pcpu = &survey->pcpus.at[number];
	struct vp_survey_moment now = {.stream = number};
	union any record;

	for (size_t i = 0; i < VP_SURVEY_RECENT; i++)
		survey->recent[i].is_born = false;
	survey->skip.is_pending = false;
	survey->skip.read_to = 0;
	vp_stream_trust(stream, true);
	while ((record.header = next_of(survey, stream, until, &now)) &&
	       record.header->time < until) {
		uint64_t time = record.header->time;
		if (!survey->first || (!now.time && time < survey->first))
			survey->first = time;
		now.time = time > now.time ? time : now.time;
		survey_see(survey, pcpu, record, now);
		/* Stacks need every tick. */
		if (!pcpu->chain)
			pass_by(survey, pcpu, (struct vp_stream_cursor *)stream, until, &now);
	}
	settle_all(survey, number);
	vp_stream_trust(stream, false);
	if (!survey->needs.ticks)
		((struct vp_stream_cursor *)stream)->records = record.header != NULL;
	survey->heads[number] = record.header;
	survey->last = now.time > survey->last ? now.time : survey->last;
}

void vp_survey_make(const vp_stream_readers *streams, const struct vp_survey_needs *needs,
		    uint64_t until, struct vp_survey *ret)
{
	*ret = (struct vp_survey){.needs = *needs};
	ret->heads = vp_alloc((streams->count + 1) * sizeof(*ret->heads));
	for (uint32_t i = 0; i < streams->count; i++) {
		vp_vec_push(&ret->pcpus, (struct vp_survey_pcpu){0});
		survey_stream(ret, streams->at[i], i, until);
	}
}

void vp_survey_deinit(struct vp_survey *survey)
{
	free(survey->heads);
	survey_threads_deinit(&survey->skip.first);
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
