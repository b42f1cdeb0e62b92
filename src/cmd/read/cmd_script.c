/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf script: prints the events of a recording, one per line. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analyze/common/health.h"
#include "analyze/trace/script.h"
#include "analyze/trace/script_joined.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/event_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/verb.h"
#include "render/render_script.h"

static const struct vp_verb verb;

enum { PIECE = 64 * 1024 };

const struct vp_verb *vp_verb_script(void)
{
	return &verb;
}

struct script {
	struct vp_event_options which;
	const char *tid, *event, *fields;
	struct vp_format_words format;
	/* Parsed options. */
	const struct vp_script_format *chosen;
	unsigned shown;
	uint64_t limit; /* maximum number of events; 0: all */
	struct vp_script_options options;
	VP_VEC(const char *) events;
	char *event_words;
};

static struct vp_error *choose_tid(struct script *script)
{
	char *end;

	if (!script->tid)
		return NULL;
	unsigned long long tid = strtoull(script->tid, &end, 10);
	if (!isdigit((unsigned char)script->tid[0]) || *end || tid > UINT32_MAX)
		return vp_error_usage("option --tid: expected the number of a thread, not '%s'",
				      script->tid);
	script->options.has_tid = true;
	script->options.tid = (uint32_t)tid;
	return NULL;
}

static void cmd_script_choose_events(struct script *script)
{
	char *rest = NULL;

	script->event_words = vp_strdup(script->event ? script->event : "");
	for (char *word = strtok_r(script->event_words, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest))
		vp_vec_push(&script->events, word);
	script->options.events = script->events.at;
	script->options.n_events = script->events.count;
}

static struct vp_error *cmd_script_choose_all(struct script *script)
{
	static const char *const formats[] = {"text", "jsonl", "csv"};
	const char *format;

	VP_TRY(vp_choose_format(&script->format, formats, VP_ARRAY_SIZE(formats), &format));
	script->chosen = vp_script_format_named(format);
	script->shown = VP_SHOW_ALL;
	if (script->fields)
		VP_TRY(vp_script_shown_parse(script->fields, &script->shown));
	VP_TRY(choose_tid(script));
	cmd_script_choose_events(script);
	script->which.joins = true;
	script->which.store.reads = VP_STORE_WITH_SNAPSHOTS;
	VP_TRY(vp_event_options_check(&script->which));
	script->options.from = script->which.from;
	script->options.to = script->which.to;
	script->options.vm = script->which.vm;
	script->options.pcpus = script->which.pcpus.at;
	script->options.n_pcpus = script->which.pcpus.count;
	return NULL;
}

static struct vp_error *cmd_script_write_piece(struct vp_buffer *out)
{
	struct vp_error *error = vp_verb_print(out);

	out->size = 0;
	return error;
}

/* Where the events come from: one recording, whose plain lines may be prepared, or several, each
 * with the clock of its own. */
struct source {
	const struct script *script;
	struct vp_script *events;
	struct vp_script_lines *lines;
	struct vp_script_joined *joined;
	const struct vp_clock_text *clocks; /* by recording */
	struct vp_script_layout layout;
};

/* Adds at most `left` events; returns how many, 0 at the end. */
static uint64_t source_put(struct source *source, uint64_t left, struct vp_buffer *out)
{
	const struct vp_script_event *event;
	size_t part;

	if (source->lines)
		return vp_script_lines_put(source->lines, left, PIECE, out);
	if (!source->joined)
		event = vp_script_next(source->events);
	else if ((event = vp_script_joined_next(source->joined, &part)))
		source->layout.clock = source->clocks[part];
	if (event)
		source->script->chosen->event(event, &source->layout, out);
	return event != NULL;
}

static struct vp_error *source_print(struct source *source)
{
	const struct script *script = source->script;
	uint64_t left = script->limit ? script->limit : UINT64_MAX, count;
	struct vp_error *error = NULL;
	struct vp_buffer out = {0};

	if (script->chosen->begin)
		script->chosen->begin(&source->layout, &out);
	while (!error && left && (count = source_put(source, left, &out))) {
		left -= count;
		source->layout.is_first = false;
		if (out.size >= PIECE)
			error = cmd_script_write_piece(&out);
	}
	if (!error)
		error = cmd_script_write_piece(&out);
	vp_buffer_deinit(&out);
	return error;
}

static struct vp_error *cmd_script_print_events(const struct script *script,
						struct vp_script *events)
{
	struct source source = {
	    .script = script,
	    .events = events,
	    .layout = {vp_script_columns(events), script->shown, script->which.clock, true}};

	if (script->chosen == vp_script_format_named("text") &&
	    vp_script_lines_fit(&source.layout, &script->options))
		source.lines = vp_script_lines_new(events);
	struct vp_error *error = source_print(&source);
	if (source.lines)
		vp_script_lines_free(source.lines);
	return error;
}

static struct vp_error *print_recording(const struct script *script)
{
	struct vp_script *events;

	VP_TRY(vp_script_open(script->which.directory, &script->options, &events));
	struct vp_error *error = cmd_script_print_events(script, events);
	if (!error)
		vp_vec_each (vp_script_notes(events), note)
			vp_verb_say(verb.name, *note);
	vp_script_close(events);
	return error;
}

static struct vp_error *print_joined(struct script *script)
{
	size_t count = vp_event_options_count(&script->which);
	VP_AUTO_FREE struct vp_clock_text *clocks = vp_alloc(count * sizeof(*clocks));
	struct vp_script_joined *events;
	vp_sentences notes = {0};

	for (size_t i = 0; i < count; i++) {
		VP_TRY(vp_event_options_part(&script->which, i));
		clocks[i] = script->which.clock;
	}
	VP_TRY(vp_script_joined_open(&script->which.store.parts, &script->options, &events));
	struct source source = {
	    .script = script,
	    .joined = events,
	    .clocks = clocks,
	    .layout = {vp_script_joined_columns(events), script->shown, clocks[0], true}};
	struct vp_error *error = source_print(&source);
	vp_script_joined_notes(events, &notes);
	vp_event_options_note_boots(&script->which, &notes);
	if (!error)
		vp_event_notes_say(verb.name, &notes);
	vp_event_notes_deinit(&notes);
	vp_script_joined_close(events);
	return error;
}

static struct vp_error *script_with(void *context)
{
	struct script *script = context;

	VP_TRY(cmd_script_choose_all(script));
	return vp_event_options_count(&script->which) > 1 ? print_joined(script)
							  : print_recording(script);
}

static int run_script(int argc, char **argv)
{
	struct script script = {0};
	const struct vp_option options[] = {
	    VP_EVENT_OPTIONS(&script.which),
	    VP_CLOCK_OPTION(&script.which),
	    {0, "tid", VP_OPTION_TEXT, &script.tid, "TID",
	     "only events during which this host thread ran, or that name it"},
	    {'e', "event", VP_OPTION_TEXT, &script.event, "NAMES",
	     "only these events, separated by commas, such as kvm_exit,sched:sched_switch; may "
	     "have wildcards"},
	    {0, "limit", VP_OPTION_COUNT, &script.limit, "N", "print only the first N events"},
	    {'F', "fields", VP_OPTION_TEXT, &script.fields, "NAMES",
	     "print only these: comm, tid, cpu, time, vm, vcpu, event, fields, separated by "
	     "commas"},
	    VP_FORMAT_OPTIONS(&script.format, "jsonl", "csv", "text, jsonl or csv"),
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &script.which.operands, script_with, &script);

	vp_event_options_deinit(&script.which);
	vp_vec_deinit(&script.events);
	free(script.event_words);
	return status;
}

static const struct vp_verb verb = {
    .name = "script",
    .usage = "[--vm NAME] [--event NAME[,NAME]...] [OPTION]... [DIR]",
    .summary = "print the events of a recording",
    .run = run_script,
};
