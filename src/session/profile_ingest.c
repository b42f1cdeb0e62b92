/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes records of the sampling programs to the trace. */
#include "base/vec.h"
#include "collect/guests/guest_watch.h"
#include "host/host_maps.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "session/admit.h"
#include "session/instrument.h"
#include "session/instrument_profile.h"
#include "session/instrument_profile_private.h"
#include "store/packet.h"
#include "store/sample_counts.h"
#include "store/trace_writer.h"

#include <string.h>

#include "base/macros.h"

/* A longer gap is not a late tick: the pCPU was offline, or the machine suspended. */
#define MAX_LATE_NS 5000000000ULL

struct vp_profile_stream *vp_profile_stream(struct vp_profile_instrument *profile, uint32_t pcpu)
{
	while (profile->streams.count <= pcpu)
		vp_vec_push(&profile->streams, ((struct vp_profile_stream){
						   .tid = UINT32_MAX, .late_from = UINT64_MAX}));
	return &profile->streams.at[pcpu];
}

/* A sample in guest user space may have hit code that will be replaced soon; one in a guest kernel
 * may be the first one in Linux. */
static void see_guest_sample(struct vp_profile_instrument *profile,
			     const struct vp_guest_sample *sample)
{
	struct vp_guest_watch *watch = vp_session_guest_watch(profile->base.session);

	if (!watch)
		return;
	if (sample->mode == VP_MODE_GUEST_KERNEL)
		vp_guest_watch_note_kernel(watch, sample);
	else if (sample->flags & VP_BY_MEMORY)
		vp_guest_watch_hit(watch, sample);
}

/* Types with the same first fields. */
static inline bool is_of_vcpu(uint32_t id)
{
	return id == VP_ID_guest_sample || id == VP_ID_vcpu_sample || id == VP_ID_vcpu_in ||
	       id == VP_ID_vcpu_out;
}

static void profile_ingest_admit(struct vp_profile_instrument *profile,
				 struct vp_profile_stream *stream, const uint64_t *revision,
				 union vp_any_record *record)
{
	bool of_vcpu = is_of_vcpu(record->header.id);
	struct vp_admission *admission =
	    &stream->admissions[of_vcpu ? record->vcpu_sample.tid % VP_PROFILE_ADMISSIONS : 0];

	if (!of_vcpu || !vp_admit_again(admission, *revision, &record->vcpu_sample))
		(void)vp_admit(profile->base.session, admission, record);
}

/* Completes the record; notes its threads and VMs. */
static void see_record(struct vp_profile_instrument *profile, struct vp_profile_stream *stream,
		       const uint64_t *revision, union vp_any_record *record)
{
	const struct vp_host_sample *sample = &record->host_sample;

	/* Names of threads come only from the memory of selected guests. */
	if (sample->id != VP_ID_host_sample)
		profile_ingest_admit(profile, stream, revision, record);
	switch (record->header.id) {
	case VP_ID_sample_period:
		stream->events = record->sample_period.events;
		break;
	case VP_ID_task:
		stream->tid = record->task.tid;
		memcpy(stream->comm, record->task.comm, sizeof(stream->comm));
		break;
	case VP_ID_host_sample:
		if (sample->mode == VP_MODE_USER)
			vp_host_maps_note_sample(
			    vp_session_host_maps(profile->base.session), sample->pid,
			    sample->tid == sample->pid ? stream->comm : NULL, sample->time);
		break;
	case VP_ID_guest_sample:
		see_guest_sample(profile, &record->guest_sample);
		break;
	case VP_ID_guest_task:
		if (vp_session_guest_watch(profile->base.session) &&
		    record->guest_task.flags & VP_IN_USER)
			vp_guest_watch_note_task(vp_session_guest_watch(profile->base.session),
						 &record->guest_task);
		break;
	}
}

/* Consecutive records for the trace. */
struct segment {
	struct vp_profile_instrument *profile;
	uint32_t pcpu;
	char *begin, *end;
	uint64_t n;
	const struct vp_record_header
	    *last;             /* the last record, or one before the segment; NULL: none */
	char *names;           /* first of the records about the next sample, or NULL */
	uint64_t n_names;      /* number of those records */
	uint64_t before_names; /* time of the record before them */
};

static void segment_put(struct segment *segment)
{
	if (!segment->n)
		return;
	struct vp_run run = {
	    .bytes = segment->begin,
	    .size = (size_t)(segment->end - segment->begin),
	    .n = segment->n,
	    .first = ((const struct vp_record_header *)(const void *)segment->begin)->time,
	    .last = segment->last->time,
	};
	vp_trace_append_run(vp_session_trace(segment->profile->base.session),
			    vp_stream_of_pcpu(segment->pcpu), &run);
	segment->begin = segment->end;
	segment->n = 0;
}

/* Whether the record is about the next sample: its process, or stack. */
static inline bool is_about_next(uint32_t id)
{
	return id == VP_ID_task || (id >= VP_ID_guest_task && id <= VP_ID_sample_period);
}

static inline void segment_add(struct segment *segment, const struct vp_record_header *record,
			       size_t size)
{
	if ((size_t)(segment->end - segment->begin) + size > VP_RUN_MAX)
		segment_put(segment);
	if (!is_about_next(record->id)) {
		segment->names = NULL;
	} else if (!segment->names) {
		segment->names = segment->end;
		segment->before_names = segment->last ? segment->last->time : 0;
		segment->n_names = 0;
	}
	segment->n_names++;
	segment->last = record;
	segment->end += size;
	segment->n++;
}

/* Skips a sample, and the records about it. */
static void segment_skip(struct segment *segment, size_t size)
{
	char *after = segment->end + size;

	if (segment->names && segment->names >= segment->begin) {
		segment->end = segment->names;
		segment->n -= segment->n_names;
	}
	segment_put(segment);
	segment->begin = segment->end = after;
	segment->names = NULL;
}

static bool has_id(const struct vp_profile_ids *ids, uint32_t id)
{
	vp_vec_each (ids, other)
		if (*other == id)
			return true;
	return false;
}

/* Whether the sample belongs to a process or thread of -p and -t. */
static bool is_target(const struct vp_profile_instrument *profile,
		      const union vp_any_record *record)
{
	const struct vp_profile_targets *targets = profile->options.targets;

	if (!targets || (!targets->pids.count && !targets->tids.count))
		return true;
	if (record->header.id == VP_ID_host_sample)
		return has_id(&targets->pids, record->host_sample.pid) ||
		       has_id(&targets->tids, record->host_sample.tid);
	const struct vp_vm *vm = vp_session_vm(profile->base.session, record->vcpu_sample.vm);
	return has_id(&targets->tids, record->vcpu_sample.tid) ||
	       (vm && has_id(&targets->pids, vm->pid));
}

/* Moves the records with a sample's thread before the ticks that it represents. */
static void segment_move_names(struct segment *segment, uint64_t time)
{
	if (time < segment->before_names)
		time = segment->before_names;
	for (char *at = segment->names; at && at < segment->end;) {
		struct vp_record_header *name = (void *)at;
		name->time = time;
		at += vp_record_size(name->id);
	}
}

/*
 * Number of ticks that a late sample represents in addition to its own. A timer that fires late
 * (interrupts were off, or this machine is itself a VM that waited) skips the ticks due meanwhile:
 * perf forgets them. Presumably the interrupted thread had the pCPU all that time.
 */
static uint64_t missed_ticks(const struct vp_profile_instrument *profile,
			     struct vp_profile_stream *stream, uint64_t time)
{
	uint64_t period = profile->trigger.period_ns;
	uint64_t missed = (time - stream->late_from) / period + 1;

	stream->late_from += missed * period;
	return stream->may_fill && missed * period < MAX_LATE_NS ? missed : 0;
}

/* Adds a record for each of the ticks, `missed` of them, before the sample. */
static void put_ticks_before(struct segment *segment, const union vp_any_record *sample,
			     uint64_t missed)
{
	struct vp_profile_instrument *profile = segment->profile;
	uint64_t period = profile->trigger.period_ns;
	uint64_t first = sample->header.time - missed * period;
	union vp_any_record late;

	segment_move_names(segment, first);
	segment_put(segment);
	profile->samples += missed;
	profile->late += missed;
	vp_sample_counts_add(vp_session_sample_counts(profile->base.session), sample, missed);
	for (uint64_t time = first; time < sample->header.time; time += period) {
		memcpy(&late, sample, vp_record_size(sample->header.id));
		late.header.time = time;
		late.host_sample.flags |= VP_LATE;
		vp_trace_append(vp_session_trace(profile->base.session),
				vp_stream_of_pcpu(segment->pcpu), &late);
	}
}

/* Adds the ticks that were missed before a late sample. */
static void put_late_ticks(struct segment *segment, const union vp_any_record *sample)
{
	struct vp_profile_stream *stream = vp_profile_stream(segment->profile, segment->pcpu);
	uint64_t missed = missed_ticks(segment->profile, stream, sample->header.time);

	if (missed)
		put_ticks_before(segment, sample, missed);
}

/* Adds ticks for `busy_ns` without samples on a busy pCPU, but none before the preceding record. */
static void put_busy_ticks(struct segment *segment, const union vp_any_record *sample,
			   uint64_t busy_ns)
{
	const struct vp_profile_stream *stream = vp_profile_stream(segment->profile, segment->pcpu);
	uint64_t known = sample->header.time - stream->last_time;
	uint64_t ns = busy_ns < known ? busy_ns : known;
	uint64_t missed = ns / segment->profile->trigger.period_ns;

	/* The first tick is a whole period after that record. */
	if (missed && missed * segment->profile->trigger.period_ns == known)
		missed--;
	if (missed && stream->may_fill && ns < MAX_LATE_NS)
		put_ticks_before(segment, sample, missed);
}

/* Computes the weight of the current sample. */
static void profile_ingest_weigh(struct vp_profile_instrument *profile,
				 struct vp_profile_stream *stream)
{
	uint64_t events = stream->events ? stream->events : profile->trigger.events;

	profile->events += events;
	if (events > profile->max_events)
		profile->max_events = events;
	stream->events = 0;
}

void vp_profile_ingest(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct vp_profile_instrument *profile = context;
	struct vp_profile_stream *stream = vp_profile_stream(profile, pcpu);
	if (profile->options.with_chains)
		size = vp_profile_unwind_stacks(profile, records, size);
	struct segment segment = {
	    .profile = profile, .pcpu = pcpu, .begin = records, .end = records};
	const uint64_t *revision = vp_session_vms_revision(profile->base.session);
	uint64_t tick = profile->trigger.by_time ? profile->trigger.period_ns : 0;

	for (char *end = records + size; segment.end < end;) {
		union vp_any_record *record = (void *)segment.end;
		see_record(profile, stream, revision, record);
		if (record->header.id <= VP_ID_guest_sample && !is_target(profile, record)) {
			if (record->header.time >= stream->late_from)
				missed_ticks(profile, stream, record->header.time);
			stream->late_from += tick;
			stream->events = 0;
			stream->last_time = record->header.time;
			segment_skip(&segment, vp_record_size(record->header.id));
			continue;
		}
		if (record->header.id <= VP_ID_guest_sample) { /* the first three are samples */
			profile->samples++;
			vp_sample_counts_add(vp_session_sample_counts(profile->base.session),
					     record, 1);
			if (profile->trigger.weighting == VP_WEIGHTING_TIME && stream->events)
				put_busy_ticks(&segment, record, stream->events);
			profile_ingest_weigh(profile, stream);
			if (record->header.time >= stream->late_from)
				put_late_ticks(&segment, record);
			stream->late_from += tick;
		}
		if (!is_about_next(record->header.id))
			stream->last_time = record->header.time;
		segment_add(&segment, &record->header, vp_record_size(record->header.id));
	}
	segment_put(&segment);
}
