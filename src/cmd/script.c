/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf script: the events of a recording, a line each. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "cmd/verb.h"
#include "collect/pcpus.h"
#include "render/script.h"

static const struct vp_verb verb;

enum { PIECE = 64 * 1024, SECOND_DIGITS = 9 };
#define SECOND 1000000000ULL

const struct vp_verb *vp_verb_script(void)
{
	return &verb;
}

struct script {
	const char *input, *time, *vm, *cpus, *tid, *event, *format, *fields;
	struct vp_texts operands;
	/* What the words mean. */
	const char *directory;
	const struct vp_script_format *chosen;
	unsigned shown;
	struct vp_script_options options;
	struct vp_pcpus pcpus;
	VP_VEC(const char *) events;
	char *event_words;
};

/* "12.5", the seconds that the events' lines have; false: it is none. */
static bool read_time(const char *text, const char *end, uint64_t *ret)
{
	uint64_t ns = 0, whole = 0;
	int digits = -1;

	if (text == end)
		return false;
	for (; text < end; text++) {
		if (*text == '.' && digits < 0) {
			digits = 0;
			whole = ns;
			ns = 0;
			continue;
		}
		if (!isdigit((unsigned char)*text) || digits == SECOND_DIGITS ||
		    ns > UINT64_MAX / SECOND / 10)
			return false;
		ns = 10 * ns + (uint64_t)(*text - '0');
		digits += digits >= 0;
	}
	if (digits < 0) {
		whole = ns;
		ns = 0;
	}
	for (; digits >= 0 && digits < SECOND_DIGITS; digits++)
		ns *= 10;
	*ret = whole * SECOND + ns;
	return true;
}

static struct vp_error *choose_time(struct script *script)
{
	struct vp_script_options *options = &script->options;
	const char *text = script->time;

	options->from = 0;
	options->to = UINT64_MAX;
	if (!text)
		return NULL;
	const char *comma = strchr(text, ','), *end = text + strlen(text);
	if (!comma || (comma != text && !read_time(text, comma, &options->from)) ||
	    (comma + 1 != end && !read_time(comma + 1, end, &options->to)))
		return vp_error_usage("option --time: expected FROM,TO in seconds, such as "
				      "12.5,13 or 12.5,, not '%s'",
				      text);
	return NULL;
}

static struct vp_error *choose_cpus(struct script *script)
{
	if (!script->cpus)
		return NULL;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_pcpus_parse(script->cpus, "option --cpu", &script->pcpus);
	script->options.pcpus = script->pcpus.at;
	script->options.n_pcpus = script->pcpus.count;
	if (error || !script->pcpus.count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'", script->cpus);
	return NULL;
}

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

static void choose_events(struct script *script)
{
	char *rest = NULL;

	script->event_words = vp_strdup(script->event ? script->event : "");
	for (char *word = strtok_r(script->event_words, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest))
		vp_vec_push(&script->events, word);
	script->options.events = script->events.at;
	script->options.n_events = script->events.count;
}

static struct vp_error *choose_all(struct script *script)
{
	script->chosen = vp_script_format_named(script->format);
	if (!script->chosen)
		return vp_error_usage("option --format: expected text, jsonl or csv, not '%s'",
				      script->format);
	script->shown = VP_SHOW_ALL;
	if (script->fields)
		VP_TRY(vp_script_shown_parse(script->fields, &script->shown));
	VP_TRY(choose_time(script));
	VP_TRY(choose_cpus(script));
	VP_TRY(choose_tid(script));
	choose_events(script);
	script->options.vm = script->vm;
	return vp_verb_recording(&script->operands, script->input, "vperf.data",
				 &script->directory);
}

static struct vp_error *write_piece(struct vp_buffer *out)
{
	struct vp_error *error = vp_verb_print(out);

	out->size = 0;
	return error;
}

static struct vp_error *print_events(const struct script *script, struct vp_script *events)
{
	const struct vp_script_layout layout = {vp_script_columns(events), script->shown};
	const struct vp_script_event *event;
	struct vp_error *error = NULL;
	struct vp_buffer out = {0};

	if (script->chosen->begin)
		script->chosen->begin(&layout, &out);
	while (!error && (event = vp_script_next(events))) {
		script->chosen->event(event, &layout, &out);
		if (out.size >= PIECE)
			error = write_piece(&out);
	}
	if (!error)
		error = write_piece(&out);
	vp_buffer_deinit(&out);
	return error;
}

static struct vp_error *print_recording(const struct script *script)
{
	struct vp_script *events;

	VP_TRY(vp_script_open(script->directory, &script->options, &events));
	struct vp_error *error = print_events(script, events);
	if (!error)
		vp_vec_each (vp_script_notes(events), note)
			vp_verb_say(verb.name, *note);
	vp_script_close(events);
	return error;
}

static struct vp_error *script_with(void *context)
{
	struct script *script = context;
	struct vp_error *error = choose_all(script);

	return error ? error : print_recording(script);
}

static int run_script(int argc, char **argv)
{
	struct script script = {.format = "text"};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &script.input, "DIR",
	     "recording directory (default: vperf.data)"},
	    {0, "time", VP_OPTION_TEXT, &script.time, "FROM,TO",
	     "only events from FROM to TO, in seconds as printed; either may be left out"},
	    {0, "vm", VP_OPTION_TEXT, &script.vm, "NAME",
	     "only events of this VM and its vCPUs' threads (name, or pid of its VMM)"},
	    {'C', "cpu", VP_OPTION_TEXT, &script.cpus, "LIST", "only these pCPUs, such as 0-3,8"},
	    {0, "tid", VP_OPTION_TEXT, &script.tid, "TID",
	     "only events that this host thread was running at, or is named in"},
	    {'e', "event", VP_OPTION_TEXT, &script.event, "NAMES",
	     "only these events, separated by commas, such as kvm_exit,sched:sched_switch"},
	    {'F', "fields", VP_OPTION_TEXT, &script.fields, "NAMES",
	     "print only these: comm, tid, cpu, time, vm, vcpu, event, fields, separated by "
	     "commas"},
	    {0, "format", VP_OPTION_TEXT, &script.format, "FORMAT",
	     "text, jsonl or csv (default: text)"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &script.operands, script_with, &script);

	vp_vec_deinit(&script.pcpus);
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
