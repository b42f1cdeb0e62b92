/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf timeline: slices of pCPUs, vCPUs and guest threads with their states. */
#include <stdio.h>
#include <string.h>

#include "analyze/common/health.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/event_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/verb.h"
#include "render/render_tracks.h"

static const struct vp_verb verb;

enum { PIECE = 64 * 1024, EVENTS_AT_ONCE = 256 };

enum track { PCPU, VCPU, THREAD };

const struct vp_verb *vp_verb_timeline(void)
{
	return &verb;
}

struct timeline {
	struct vp_event_options which;
	const char *track;
	struct vp_format_words format;
	/* Parsed options. */
	enum track chosen;
	const struct vp_tracks_format *how;
	struct vp_tracks_layout layout;
	struct vp_buffer out;
	uint64_t slices; /* number of printed slices */
	uint64_t limit;  /* maximum; 0: all */
	bool has_begun;
	struct vp_error *written_error; /* of the output: nothing more is printed */
};

static bool cmd_timeline_is_full(const struct timeline *timeline)
{
	return timeline->limit && timeline->slices >= timeline->limit;
}

static void cmd_timeline_take(void *context, const struct vp_track_slice *slice)
{
	struct timeline *timeline = context;
	bool of_pcpu = slice->track == VP_TRACK_PCPU;

	if (of_pcpu != (timeline->chosen == PCPU))
		return;
	if (timeline->chosen == THREAD && !slice->has_guest)
		return;
	if (cmd_timeline_is_full(timeline))
		return;
	timeline->how->slice(slice, &timeline->layout, &timeline->out);
	timeline->layout.is_first = false;
	timeline->slices++;
}

static struct vp_error *cmd_timeline_choose_all(struct timeline *timeline)
{
	static const char *const tracks[] = {"pcpu", "vcpu", "thread"};
	static const char *const formats[] = {"text", "jsonl", "csv"};
	const char *format;
	size_t track;

	VP_TRY(vp_choose_format(&timeline->format, formats, VP_ARRAY_SIZE(formats), &format));
	timeline->how = vp_tracks_format_named(format);
	VP_TRY(vp_choose("track", timeline->track, tracks, VP_ARRAY_SIZE(tracks), &track));
	timeline->chosen = (enum track)track;
	timeline->layout.of_threads = timeline->chosen == THREAD;
	timeline->which.joins = true;
	timeline->which.store.reads = VP_STORE_EVENTS;
	return vp_event_options_check(&timeline->which);
}

static struct vp_error *cmd_timeline_write_piece(struct timeline *timeline)
{
	struct vp_error *error = vp_verb_print(&timeline->out);

	timeline->out.size = 0;
	return error;
}

static struct vp_error *print_slices(struct timeline *timeline)
{
	struct vp_error *error = NULL;
	bool more = true;

	while (more && !error) {
		more = vp_tracks_read(timeline->layout.tracks, EVENTS_AT_ONCE) &&
		       !cmd_timeline_is_full(timeline);
		if (timeline->out.size >= PIECE || !more)
			error = cmd_timeline_write_piece(timeline);
	}
	return error;
}

static void say_nothing_found(const struct timeline *timeline)
{
	VP_AUTO_FREE char *text =
	    vp_format("no slices of track '%s' match the options", timeline->track);

	vp_verb_say(verb.name, text);
}

static struct vp_error *print_part(void *context, vp_sentences *notes)
{
	struct timeline *timeline = context;
	const struct vp_tracks_options options = {.from = timeline->which.from,
						  .to = timeline->which.to,
						  .vm = timeline->which.vm,
						  .pcpus = timeline->which.pcpus.at,
						  .n_pcpus = timeline->which.pcpus.count,
						  .take = cmd_timeline_take,
						  .context = timeline};
	struct vp_tracks *tracks;

	if (timeline->written_error || cmd_timeline_is_full(timeline))
		return NULL;
	VP_TRY(vp_tracks_open(timeline->which.directory, &options, &tracks));
	timeline->layout.tracks = tracks;
	timeline->layout.clock = timeline->which.clock;
	if (timeline->how->begin && !timeline->has_begun)
		timeline->how->begin(&timeline->out);
	timeline->has_begun = true;
	timeline->written_error = print_slices(timeline);
	vp_event_notes_add(notes, &vp_tracks_feed(tracks)->notes);
	vp_tracks_close(tracks);
	return NULL;
}

static struct vp_error *timeline_with(void *context)
{
	struct timeline *timeline = context;
	vp_sentences notes = {0};

	VP_TRY(cmd_timeline_choose_all(timeline));
	timeline->layout.is_first = true;
	struct vp_error *error =
	    vp_event_options_each(&timeline->which, print_part, timeline, &notes);
	if (!error)
		error = VP_TAKE(timeline->written_error);
	if (!error)
		vp_event_notes_say(verb.name, &notes);
	if (!error && !timeline->slices)
		say_nothing_found(timeline);
	vp_event_notes_deinit(&notes);
	vp_buffer_deinit(&timeline->out);
	return error;
}

static int run_timeline(int argc, char **argv)
{
	struct timeline timeline = {.track = "vcpu"};
	const struct vp_option options[] = {
	    {0, "track", VP_OPTION_TEXT, &timeline.track, "TRACK",
	     "slices of each pcpu, vcpu or guest thread (default: vcpu)"},
	    {0, "lane", VP_OPTION_TEXT, &timeline.track, "TRACK", "old name of --track"},
	    VP_EVENT_OPTIONS(&timeline.which),
	    VP_CLOCK_OPTION(&timeline.which),
	    VP_FORMAT_OPTIONS(&timeline.format, "jsonl", "csv", "text, jsonl or csv"),
	    {0, "limit", VP_OPTION_COUNT, &timeline.limit, "N", "print only the first N slices"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &timeline.which.operands, timeline_with, &timeline);

	vp_event_options_deinit(&timeline.which);
	return status;
}

static const struct vp_verb verb = {
    .name = "timeline",
    .usage = "[--track pcpu|vcpu|thread] [--vm NAME] [OPTION]... [DIR]",
    .summary = "print the states of each pCPU, vCPU or guest thread as they change",
    .run = run_timeline,
};
