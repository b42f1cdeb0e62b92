/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "schema/guest_sampling.h"
#include "schema/snapshot_cause.h"

#define SAY(sentences, ...) vp_vec_push(sentences, vp_format(__VA_ARGS__))

void vp_health_add(const vp_stream_readers *streams, struct vp_health *health)
{
	vp_vec_each (streams, reader) {
		const struct vp_stream_health one = vp_stream_health(*reader);
		vp_vec_push(&health->streams,
			    ((struct vp_health_stream){.path = vp_strdup(vp_stream_path(*reader)),
						       .cpu = vp_stream_cpu(*reader),
						       .class = vp_stream_class(*reader),
						       .health = one}));
		health->records += one.records;
		health->lost += one.lost;
		health->damaged += one.damaged;
		health->cut_off += one.cut_off;
	}
}

void vp_health_deinit(struct vp_health *health)
{
	vp_vec_each (&health->streams, stream)
		free(stream->path);
	vp_vec_deinit(&health->streams);
}

/* Sum of the recorder's counts over these stream classes. */
static uint64_t health_sum_of(const uint64_t counts[VP_STREAM_CLASSES], unsigned classes)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		sum += classes & VP_STREAMS(kind) ? counts[kind] : 0;
	return sum;
}

uint64_t vp_health_lost(const struct vp_health *health, const struct vp_recording *recording)
{
	uint64_t lost = health_sum_of(recording->lost, health->classes);

	return health->lost > lost ? health->lost : lost;
}

void vp_health_losses(const struct vp_health *health, const struct vp_recording *recording,
		      struct vp_losses *ret)
{
	struct vp_losses read = {0};

	ret->period_ns = recording->period_ns;
	vp_vec_each (&health->streams, stream) {
		read.records[stream->class] += stream->health.records;
		read.lost[stream->class] += stream->health.lost;
	}
	for (int i = 0; i < VP_STREAM_CLASSES; i++) {
		uint64_t lost = recording->lost[i], records = recording->records[i];
		ret->lost[i] = read.lost[i] > lost ? read.lost[i] : lost;
		ret->records[i] = read.records[i] ? read.records[i] : records;
	}
}

void vp_health_sentences(const struct vp_health *health, const struct vp_recording *recording,
			 vp_sentences *sentences)
{
	uint64_t lost = vp_health_lost(health, recording);
	uint64_t records = health_sum_of(recording->records, health->classes);

	if (!recording->end)
		SAY(sentences, "the recording was interrupted: it has no end marker, and data "
			       "after the last record is missing");
	if (lost)
		SAY(sentences, "%" PRIu64 " %s were lost while recording", lost,
		    health->classes == VP_STREAMS(VP_STREAM_INTERVALS) ? "intervals" : "records");
	vp_vec_each (&health->streams, stream) {
		if (stream->health.damaged && !stream->health.cut_off)
			SAY(sentences,
			    "'%s' is damaged: %" PRIu64 " bytes from offset %" PRIu64
			    " on are not a valid packet and were skipped",
			    stream->path, stream->health.damaged, stream->health.damaged_at);
		else if (stream->health.damaged)
			SAY(sentences,
			    "'%s' is truncated or damaged at its end: %" PRIu64
			    " bytes, the first at offset %" PRIu64 ", were skipped",
			    stream->path, stream->health.damaged, stream->health.damaged_at);
	}
	if (recording->end && health->records < records)
		SAY(sentences, "%" PRIu64 " of %" PRIu64 " records are missing from the streams",
		    records - health->records, records);
	if (recording->note[0])
		SAY(sentences, "%s", recording->note);
}

/* Cleans untrusted text before it is printed. */
static void health_clean(char **text)
{
	char *before = *text;

	*text = vp_text_cleaned(before);
	free(before);
}

static struct vp_error *expect_recording(const char *directory)
{
	VP_AUTO_FREE char *file = vp_format("%s/recording", directory);
	struct stat status;

	if (stat(directory, &status) && errno == ENOENT)
		return vp_error_new("there is no recording '%s': run 'vperf record' or 'vperf "
				    "stat' first, or name a recording",
				    directory);
	if (stat(directory, &status))
		return vp_error_errno(errno, "cannot open recording '%s'", directory);
	if (!S_ISDIR(status.st_mode) || (access(file, F_OK) && errno == ENOENT))
		return vp_error_new(
		    "'%s' is not a recording: expected a directory written by 'vperf record'",
		    directory);
	return NULL;
}

static void health_set(char **text, char *sentence)
{
	free(*text);
	*text = sentence;
}

/* Makes sentences from the numbers in the recording. */
static void put_sentences(struct vp_recording *recording, const vp_vms *vms)
{
	if (recording->guests.method)
		health_set(&recording->guest_sampling, vp_guest_sampling_text(&recording->guests));
	if (recording->snapshot_cause.kind)
		health_set(&recording->cause,
			   vp_snapshot_cause_text(&recording->snapshot_cause, vms));
	if (recording->events_counted)
		health_set(&recording->note,
			   vp_format("samples stand for %.1f%% of %" PRIu64
				     " '%s' events: the kernel throttled sampling, or samples were "
				     "lost; a longer period or a lower frequency avoids that",
				     100.0 * (double)recording->events_sampled /
					 (double)recording->events_counted,
				     recording->events_counted, recording->trigger));
	else if (recording->selected)
		health_set(&recording->note,
			   vp_strdup("only the processes, threads or pCPUs of -p, -t or -C were "
				     "sampled: shares are relative to these"));
}

struct vp_error *vp_recording_open(const char *directory, struct vp_recording *recording,
				   vp_vms *vms, vp_sentences *sentences)
{
	VP_TRY(expect_recording(directory));
	VP_TRY(vp_recording_read(directory, recording));
	struct vp_error *error = vp_vms_read(directory, vms);
	if (error)
		SAY(sentences, "%s; VMs are named by pid", vp_error_message(error));
	vp_error_free(error);
	put_sentences(recording, vms);
	char **texts[] = {&recording->instruments, &recording->tool,           &recording->hostname,
			  &recording->kernel,      &recording->trigger,        &recording->note,
			  &recording->command,     &recording->guest_sampling, &recording->mode,
			  &recording->cause};
	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		health_clean(texts[i]);
	if (recording->imported)
		health_clean(&recording->imported);
	vp_vec_each (vms, vm) {
		health_clean(&vm->name);
		health_clean(&vm->uuid);
		if (vm->cgroup)
			health_clean(&vm->cgroup);
		health_clean(&vm->agent);
		health_clean(&vm->memory);
	}
	return NULL;
}
