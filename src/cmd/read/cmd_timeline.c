/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf timeline: who ran where and in which state, as periods. */
#include <stdio.h>
#include <string.h>

#include "analyze/trace/lanes.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/event_options.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "render/render_lanes.h"

static const struct vp_verb verb;

enum { PIECE = 64 * 1024, EVENTS_AT_ONCE = 256 };

enum lane { PCPU, VCPU, THREAD };

const struct vp_verb *vp_verb_timeline(void)
{
	return &verb;
}

struct timeline {
	struct vp_event_options which;
	const char *lane;
	struct vp_format_words format;
	/* Meaning of the words. */
	enum lane chosen;
	const struct vp_lanes_format *how;
	struct vp_lanes_layout layout;
	struct vp_buffer out;
	uint64_t periods; /* printed */
	uint64_t limit;   /* at most this many are; 0: all */
};

static bool cmd_timeline_is_full(const struct timeline *timeline)
{
	return timeline->limit && timeline->periods >= timeline->limit;
}

static void cmd_timeline_take(void *context, const struct vp_period *period)
{
	struct timeline *timeline = context;
	bool of_pcpu = period->lane == VP_LANE_PCPU;

	if (of_pcpu != (timeline->chosen == PCPU))
		return;
	if (timeline->chosen == THREAD && !period->has_guest)
		return;
	if (cmd_timeline_is_full(timeline))
		return;
	timeline->how->period(period, &timeline->layout, &timeline->out);
	timeline->layout.is_first = false;
	timeline->periods++;
}

static struct vp_error *cmd_timeline_choose_all(struct timeline *timeline)
{
	static const char *const lanes[] = {"pcpu", "vcpu", "thread"};
	static const char *const formats[] = {"text", "jsonl", "csv"};
	const char *format;
	size_t lane;

	VP_TRY(vp_choose_format(&timeline->format, formats, VP_ARRAY_SIZE(formats), &format));
	timeline->how = vp_lanes_format_named(format);
	VP_TRY(vp_choose("track", timeline->lane, lanes, VP_ARRAY_SIZE(lanes), &lane));
	timeline->chosen = (enum lane)lane;
	timeline->layout.of_threads = timeline->chosen == THREAD;
	return vp_event_options_check(&timeline->which);
}

static struct vp_error *cmd_timeline_write_piece(struct timeline *timeline)
{
	struct vp_error *error = vp_verb_print(&timeline->out);

	timeline->out.size = 0;
	return error;
}

static struct vp_error *print_periods(struct timeline *timeline)
{
	struct vp_error *error = NULL;
	bool more = true;

	if (timeline->how->begin)
		timeline->how->begin(&timeline->out);
	while (more && !error) {
		more = vp_lanes_read(timeline->layout.lanes, EVENTS_AT_ONCE) &&
		       !cmd_timeline_is_full(timeline);
		if (timeline->out.size >= PIECE || !more)
			error = cmd_timeline_write_piece(timeline);
	}
	vp_buffer_deinit(&timeline->out);
	return error;
}

static void cmd_timeline_say_notes(const struct timeline *timeline)
{
	vp_vec_each (&vp_lanes_feed(timeline->layout.lanes)->notes, note)
		vp_verb_say(verb.name, *note);
	if (timeline->periods)
		return;
	VP_AUTO_FREE char *text =
	    vp_format("no slices of lane '%s' match the options", timeline->lane);
	vp_verb_say(verb.name, text);
}

static struct vp_error *timeline_with(void *context)
{
	struct timeline *timeline = context;

	VP_TRY(cmd_timeline_choose_all(timeline));
	const struct vp_lanes_options options = {.from = timeline->which.from,
						 .to = timeline->which.to,
						 .vm = timeline->which.vm,
						 .pcpus = timeline->which.pcpus.at,
						 .n_pcpus = timeline->which.pcpus.count,
						 .take = cmd_timeline_take,
						 .context = timeline};
	struct vp_lanes *lanes;
	VP_TRY(vp_lanes_open(timeline->which.directory, &options, &lanes));
	timeline->layout.lanes = lanes;
	timeline->layout.clock = timeline->which.clock;
	timeline->layout.is_first = true;
	struct vp_error *error = print_periods(timeline);
	if (!error)
		cmd_timeline_say_notes(timeline);
	vp_lanes_close(lanes);
	return error;
}

static int run_timeline(int argc, char **argv)
{
	struct timeline timeline = {.lane = "vcpu"};
	const struct vp_option options[] = {
	    {0, "track", VP_OPTION_TEXT, &timeline.lane, "TRACK",
	     "slices of each pcpu, vcpu or guest thread (default: vcpu)"},
	    {0, "lane", VP_OPTION_TEXT, &timeline.lane, "TRACK", "old name of --track"},
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
