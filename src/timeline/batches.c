/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/batches.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "store/trace_reader.h"
#include "timeline/merge.h"

/* Look ahead again after this many records per stream that affect no other stream. */
enum { QUIET = 64 };

/* The last time of the timeline, inclusive. */
static uint64_t end_of(const struct vp_batches *batches)
{
	return batches->timeline->until ? batches->timeline->until - 1 : UINT64_MAX;
}

void vp_batches_init(struct vp_batches *batches, struct vp_timeline *timeline, bool in_order)
{
	const struct vp_merge *merge = &timeline->merge;

	*batches =
	    (struct vp_batches){.timeline = timeline, .in_order = in_order, .merging = in_order};
	batches->ahead = vp_alloc((merge->count + 1) * sizeof(*batches->ahead));
	if (timeline->first || !merge->count || !merge->heads[merge->winner].record)
		return;
	if (merge->heads[merge->winner].time <= end_of(batches))
		timeline->first = merge->heads[merge->winner].time;
}

void vp_batches_deinit(struct vp_batches *batches)
{
	free(batches->ahead);
	*batches = (struct vp_batches){0};
}

static bool has_more(const struct vp_batches *batches, uint32_t stream)
{
	const struct vp_merge_head *head = &batches->timeline->merge.heads[stream];

	return head->record && head->time <= end_of(batches);
}

/* Threads whose last record in the packet affected only this stream: their next records do, too. */
struct quiet {
	uint64_t vcpu; /* thread of a known vCPU whose home is this stream */
	uint64_t host; /* thread with a sample outside of KVM */
};

static inline bool is_of_all(struct vp_timeline *timeline, uint32_t stream,
			     const struct vp_record_header *record, struct quiet *quiet)
{
	bool host = record->id == VP_ID_host_sample, sample = record->id <= VP_ID_guest_sample;
	uint64_t who; /* pid or VM, and thread: at the same offset in all samples */

	memcpy(&who, &((const struct vp_host_sample *)(const void *)record)->pid, sizeof(who));
	if (sample && (who == quiet->vcpu || (host && (who == quiet->host || timeline->no_homes))))
		return false;
	if (vp_timeline_is_of_all(timeline, stream, record))
		return true;
	if (sample)
		*(host ? &quiet->host : &quiet->vcpu) = who;
	return false;
}

/* Looks at the rest of the stream's packet up to the first record that affects other streams.
 * False: it has such a record. */
static bool look_through(struct vp_batches *batches, uint32_t stream)
{
	struct vp_timeline *timeline = batches->timeline;
	struct vp_ahead *ahead = &batches->ahead[stream];
	const char *end = vp_stream_packet_end(timeline->merge.streams->at[stream]);
	const char *at = (const char *)timeline->merge.heads[stream].record;
	struct quiet quiet = {UINT64_MAX, UINT64_MAX};
	uint64_t end_time = end_of(batches), last = 0;

	ahead->event = UINT64_MAX;
	while (at < end) {
		const struct vp_record_header *record = (const void *)at;
		size_t size = vp_record_size(record->id);
		if (!size || size > (size_t)(end - at) || record->time > end_time)
			break;
		at += size;
		last = record->time > last ? record->time : last;
		if (VP_RARELY(is_of_all(timeline, stream, record, &quiet))) {
			ahead->event = record->time;
			break;
		}
	}
	ahead->last = last;
	return at >= end && ahead->event == UINT64_MAX;
}

/* Whether the packet affects no other stream, because it continues one that did not. */
static bool is_known_clean(const struct vp_batches *batches, uint32_t stream,
			   const struct vp_packet_header *packet)
{
	const struct vp_ahead *ahead = &batches->ahead[stream];

	return ahead->is_clean && packet->flags & VP_PACKET_CONTINUES &&
	       packet->packet_seq_num == ahead->clean + 1 &&
	       ahead->changes == vp_timeline_changes(batches->timeline);
}

/* Notes that the packet affects no other stream, if it was seen from its first record on. */
static void note_clean(struct vp_batches *batches, uint32_t stream)
{
	const struct vp_timeline *timeline = batches->timeline;
	const struct vp_packet_header *packet =
	    vp_stream_packet(timeline->merge.streams->at[stream]);
	struct vp_ahead *ahead = &batches->ahead[stream];
	const void *first = timeline->merge.heads[stream].record;

	ahead->is_clean = packet && first == packet + 1;
	if (!ahead->is_clean)
		return;
	ahead->clean = packet->packet_seq_num;
	ahead->changes = vp_timeline_changes(timeline);
}

/* Finds the first record of the rest of the stream's packet that affects other streams. */
static void look_ahead(struct vp_batches *batches, uint32_t stream)
{
	const struct vp_packet_header *packet =
	    vp_stream_packet(batches->timeline->merge.streams->at[stream]);
	struct vp_ahead *ahead = &batches->ahead[stream];
	uint64_t end_time = end_of(batches);

	ahead->scanned = true;
	if (packet && is_known_clean(batches, stream, packet)) {
		ahead->event = UINT64_MAX;
		ahead->last = packet->timestamp_end < end_time ? packet->timestamp_end : end_time;
	} else if (!look_through(batches, stream)) {
		ahead->is_clean = false;
		return;
	}
	note_clean(batches, stream);
}

static struct vp_batch *batches_of_stream(struct vp_batches *batches, uint32_t stream,
					  uint64_t through)
{
	const struct vp_merge *merge = &batches->timeline->merge;
	uint64_t end_time = end_of(batches);

	batches->current =
	    (struct vp_batch){.stream = stream,
			      .at = (const char *)merge->heads[stream].record,
			      .end = vp_stream_packet_end(merge->streams->at[stream]),
			      .through = through < end_time ? through : end_time};
	return &batches->current;
}

/* A batch, as large as possible, of the stream whose packet ends first: up to that time the packets
 * of all other streams are known. NULL: the next records must be merged in order. */
static struct vp_batch *batches_longest(struct vp_batches *batches, bool *ended)
{
	const struct vp_merge *merge = &batches->timeline->merge;
	uint64_t event = UINT64_MAX;
	uint32_t first = VP_NONE;

	for (uint32_t i = 0; i < merge->count; i++) {
		if (!has_more(batches, i))
			continue;
		if (!batches->ahead[i].scanned)
			look_ahead(batches, i);
		if (batches->ahead[i].event < event)
			event = batches->ahead[i].event;
		if (first == VP_NONE || batches->ahead[i].last < batches->ahead[first].last)
			first = i;
	}
	*ended = first == VP_NONE;
	if (first == VP_NONE)
		return NULL;
	if (batches->ahead[first].last < event)
		return batches_of_stream(batches, first, UINT64_MAX);
	for (uint32_t i = 0; i < merge->count; i++)
		if (has_more(batches, i) && merge->heads[i].time < event)
			return batches_of_stream(batches, i, event - 1);
	return NULL;
}

static struct vp_batch *batches_single(struct vp_batches *batches)
{
	const struct vp_merge_head *head = vp_merge_next(&batches->timeline->merge);

	if (!head || head->time > end_of(batches))
		return NULL;
	batches->current =
	    (struct vp_batch){.stream = head->stream,
			      .at = (const char *)head->record,
			      .end = (const char *)head->record + vp_record_size(head->record->id),
			      .through = UINT64_MAX};
	return &batches->current;
}

/* Whether the next records affect no other stream, so that their order does not matter. */
static bool is_quiet(struct vp_batches *batches)
{
	uint32_t changes = vp_timeline_changes(batches->timeline);

	batches->quiet = changes == batches->changes ? batches->quiet + 1 : 0;
	batches->changes = changes;
	return batches->quiet > (uint64_t)QUIET * batches->timeline->merge.count;
}

static void merge_pause(struct vp_batches *batches)
{
	struct vp_merge *merge = &batches->timeline->merge;

	vp_merge_pause(merge);
	for (uint32_t i = 0; i < merge->count; i++)
		batches->ahead[i].scanned = false;
	batches->merging = false;
}

static void merge_resume(struct vp_batches *batches)
{
	vp_merge_resume(&batches->timeline->merge);
	batches->quiet = 0;
	batches->changes = vp_timeline_changes(batches->timeline);
	batches->merging = true;
}

struct vp_batch *vp_batches_next(struct vp_batches *batches)
{
	bool ended = false;

	if (batches->merging && !batches->in_order && is_quiet(batches))
		merge_pause(batches);
	if (!batches->merging) {
		struct vp_batch *batch = batches_longest(batches, &ended);
		if (batch || ended)
			return batch;
		merge_resume(batches);
	}
	return batches_single(batches);
}

void vp_batches_taken(struct vp_batches *batches, uint64_t records, uint64_t last)
{
	struct vp_timeline *timeline = batches->timeline;
	struct vp_merge_head *head = &timeline->merge.heads[batches->current.stream];
	struct vp_stream_reader *stream = timeline->merge.streams->at[batches->current.stream];
	const char *at = batches->current.at;
	const struct vp_record_header *next = (const void *)at;

	if (last > timeline->last)
		timeline->last = last;
	timeline->pcpus.at[batches->current.stream].records += records;
	if (batches->merging) /* continue the merge */
		return;
	/* The head was returned before the batch; its other records were not. */
	size_t size = at < batches->current.end ? vp_record_size(next->id) : 0;
	if (size && size <= (size_t)(batches->current.end - at)) {
		vp_stream_skip(stream, at + size, records);
		head->record = next;
		head->time = next->time;
		return;
	}
	vp_stream_skip(stream, at, records - 1);
	vp_merge_advance(&timeline->merge, batches->current.stream);
	batches->ahead[batches->current.stream].scanned = false;
}
