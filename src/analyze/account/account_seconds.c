/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_seconds.h"

#include "analyze/common/window.h"
#include "base/alloc.h"
#include "base/vec.h"
#include "schema/records.h"
#include "store/packet.h"
#include "store/trace_reader.h"

struct reading {
	const struct vp_account *whole;
	vp_account_second_take take;
	void *context;
	struct vp_account second;
	uint64_t now;        /* time of the current write */
	uint64_t begin, end; /* interval of the vCPUs' records in it; equal: none yet */
};

static void seconds_begin(struct reading *reading)
{
	uint64_t before = reading->second.window.now;

	vp_account_deinit(&reading->second);
	vp_account_init(&reading->second, reading->whole->vms);
	reading->second.window.window = reading->whole->window.window;
	reading->second.window.by_steps = reading->whole->window.by_steps;
	reading->second.window.cuts = reading->whole->window.cuts;
	/* Exits and thieves without a record of their vCPU cover the time since the previous
	 * write. */
	reading->second.window.now = before;
	reading->second.overcommit.pcpus = reading->whole->overcommit.pcpus;
	reading->begin = reading->end = 0;
}

static void seconds_end(struct reading *reading)
{
	const struct vp_window *window = &reading->whole->window.window;

	if (reading->begin == reading->end)
		return;
	vp_account_settle(&reading->second);
	if (!vp_window_is_all(window)) {
		if (reading->begin < window->from)
			reading->begin = window->from;
		if (reading->end > window->to)
			reading->end = window->to;
	}
	if (reading->begin < reading->end)
		reading->take(reading->context, &reading->second, reading->begin, reading->end);
}

static void seconds_take(struct reading *reading, const struct vp_record_header *record)
{
	const struct vp_vcpu_account *times = (const void *)record;

	if (record->id != VP_ID_vcpu_account && record->id != VP_ID_exit_account &&
	    record->id != VP_ID_thief)
		return;
	if (record->time != reading->now) {
		seconds_end(reading);
		seconds_begin(reading);
		reading->now = record->time;
	}
	if (record->id == VP_ID_vcpu_account && times->end > times->begin) {
		bool first = reading->begin == reading->end;
		if (first || times->begin < reading->begin)
			reading->begin = times->begin;
		if (first || times->end > reading->end)
			reading->end = times->end;
	}
	vp_account_take(&reading->second, record);
}

struct vp_error *vp_account_seconds_read(const char *directory, const struct vp_account *whole,
					 vp_account_second_take take, void *context)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	struct reading reading = {.whole = whole, .take = take, .context = context};
	const struct vp_record_header *record;
	vp_stream_readers streams = {0};

	VP_TRY(vp_trace_open(host, VP_STREAMS(VP_STREAM_ACCOUNT), &streams));
	vp_account_init(&reading.second, whole->vms);
	vp_vec_each (&streams, stream)
		while ((record = vp_stream_next(*stream)))
			seconds_take(&reading, record);
	seconds_end(&reading);
	vp_account_deinit(&reading.second);
	vp_trace_close(&streams);
	return NULL;
}
