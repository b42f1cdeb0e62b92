/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf timeline: slices of pCPUs, vCPUs and guest threads with their states. */
#include <stdio.h>
#include <string.h>

#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/event_options.h"
#include "cmd/common/options.h"
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

	if (timeline->how->begin)
		timeline->how->begin(&timeline->out);
	while (more && !error) {
		more = vp_tracks_read(timeline->layout.tracks, EVENTS_AT_ONCE) &&
		       !cmd_timeline_is_full(timeline);
		if (timeline->out.size >= PIECE || !more)
			error = cmd_timeline_write_piece(timeline);
	}
	vp_buffer_deinit(&timeline->out);
	return error;
}

static void cmd_timeline_say_notes(const struct timeline *timeline)
{
	vp_vec_each (&vp_tracks_feed(timeline->layout.tracks)->notes, note)
		vp_verb_say(verb.name, *note);
	if (timeline->slices)
		return;
	VP_AUTO_FREE char *text =
	    vp_format("no slices of track '%s' match the options", timeline->track);
	vp_verb_say(verb.name, text);
}

static struct vp_error *timeline_with(void *context)
{
	struct timeline *timeline = context;

	VP_TRY(cmd_timeline_choose_all(timeline));
	const struct vp_tracks_options options = {.from = timeline->which.from,
						  .to = timeline->which.to,
						  .vm = timeline->which.vm,
						  .pcpus = timeline->which.pcpus.at,
						  .n_pcpus = timeline->which.pcpus.count,
						  .take = cmd_timeline_take,
						  .context = timeline};
	struct vp_tracks *tracks;
	VP_TRY(vp_tracks_open(timeline->which.directory, &options, &tracks));
	timeline->layout.tracks = tracks;
	timeline->layout.clock = timeline->which.clock;
	timeline->layout.is_first = true;
	struct vp_error *error = print_slices(timeline);
	if (!error)
		cmd_timeline_say_notes(timeline);
	vp_tracks_close(tracks);
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
