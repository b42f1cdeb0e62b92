/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf report: profile of a recording. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "analyze/common/health.h"
#include "analyze/common/naming.h"
#include "analyze/common/notes.h"
#include "analyze/profile/call_tree.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/view.h"
#include "analyze/report/export.h"
#include "analyze/report/report.h"
#include "analyze/report/report_joined.h"
#include "analyze/report/report_make.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/nearest.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/formats.h"
#include "cmd/common/naming_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "render/render_report.h"
#include "store/recording.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_report(void)
{
	return &verb;
}

/* Smaller rows are single samples of a long recording. */
#define LEAST_PERCENT 0.05

struct report {
	const char *view, *vm, *vcpu, *comm, *sort, *format, *input, *percent_limit, *cpus, *time;
	const char *call_graph;    /* NULL: not given */
	uint64_t pid, limit, jobs; /* jobs 0: number of pCPUs, if worthwhile */
	bool children, no_children, per_vcpu, per_process, json, csv, folded, stdio, verbose;
	struct vp_store_options store;
	struct vp_texts operands;
	struct vp_naming_words words;
	/* Parsed options. */
	const struct vp_report_format *chosen;
	double min_percent;
	enum vp_call_order order;
	double min_branch; /* percent */
	bool no_graph;
	struct vp_pcpus pcpus;
	struct vp_profile_options profile;
	struct vp_naming_options naming;
};

static struct vp_error *choose_view(struct report *report)
{
	static const char *const names[] = {"host", "guest", "unified"};
	size_t view;

	VP_TRY(vp_choose("view", report->view, names, VP_ARRAY_SIZE(names), &view));
	report->profile.view = vp_view_named(names[view]);
	return NULL;
}

static struct vp_error *choose_report_format(struct report *report)
{
	const char *name = report->json     ? "json"
			   : report->csv    ? "csv"
			   : report->folded ? "folded"
			   : report->format ? report->format
					    : "text";

	report->chosen = vp_report_format_named(name);
	if (!report->chosen) {
		VP_AUTO_FREE char *names = vp_report_format_names();
		struct vp_nearest nearest;
		vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
		vp_nearest_add_words(&nearest, names);
		VP_AUTO_FREE char *meant = vp_nearest_text(&nearest);
		return vp_error_usage("option --format: expected %s, not '%s'%s", names, name,
				      meant);
	}
	if (report->json + report->csv + report->folded + (report->format != NULL) > 1)
		return vp_error_usage("more than one output format given");
	return NULL;
}

static const struct {
	const char *key;
	unsigned column;
} sort_keys[] = {
    {"samples", 0},
    {"overhead", 0},
    {"function", VP_COLUMN_FUNCTION},
    {"sym", VP_COLUMN_FUNCTION},
    {"symbol", VP_COLUMN_FUNCTION},
    {"module", VP_COLUMN_MODULE},
    {"dso", VP_COLUMN_MODULE},
    {"process", VP_COLUMN_PROCESS},
    {"comm", VP_COLUMN_PROCESS},
    {"pid", VP_COLUMN_PID | VP_COLUMN_PROCESS},
    {"vm", VP_COLUMN_VM},
    {"vcpu", VP_COLUMN_VCPU},
};

static struct vp_error *unknown_sort_key(const char *key)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){key, strlen(key)});
	for (size_t i = 0; i < VP_ARRAY_SIZE(sort_keys); i++)
		vp_nearest_add(&nearest, sort_keys[i].key);
	VP_AUTO_FREE char *meant = vp_nearest_text(&nearest);
	return vp_error_usage("option --sort: expected samples, function (sym), module (dso), "
			      "process (comm), pid, vm or vcpu, not '%s'%s",
			      key, meant);
}

static struct vp_error *choose_columns(struct report *report)
{
	VP_AUTO_FREE char *keys = vp_strdup(report->sort ? report->sort : "");
	char *rest = NULL;

	for (char *key = strtok_r(keys, ",", &rest); key; key = strtok_r(NULL, ",", &rest)) {
		size_t i = 0;
		while (i < VP_ARRAY_SIZE(sort_keys) && strcmp(sort_keys[i].key, key) != 0)
			i++;
		if (i == VP_ARRAY_SIZE(sort_keys))
			return unknown_sort_key(key);
		report->profile.columns |= sort_keys[i].column;
	}
	return NULL;
}

static struct vp_error *choose_numbers(struct report *report)
{
	char *end;

	if (report->vcpu) {
		report->profile.vcpu = strtoull(report->vcpu, &end, 10);
		if (end == report->vcpu || *end || report->vcpu[0] == '-')
			return vp_error_usage("option --vcpu: expected a number, not '%s'",
					      report->vcpu);
		report->profile.has_vcpu = true;
	}
	if (report->percent_limit) {
		report->min_percent = strtod(report->percent_limit, &end);
		if (end == report->percent_limit || *end || !(report->min_percent >= 0))
			return vp_error_usage(
			    "option --percent-limit: expected a percentage, not '%s'",
			    report->percent_limit);
	}
	return NULL;
}

static struct vp_error *cmd_report_choose_cpus(struct report *report)
{
	if (!report->cpus)
		return NULL;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_pcpus_parse(report->cpus, "option --cpu", &report->pcpus);
	report->profile.pcpus = report->pcpus.at;
	report->profile.n_pcpus = report->pcpus.count;
	if (error || !report->pcpus.count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'", report->cpus);
	return NULL;
}

/* Parses one word of option -g. */
static struct vp_error *choose_graph_word(struct report *report, const char *word)
{
	char *end;
	double percent = strtod(word, &end);

	if (!strcmp(word, "graph"))
		return NULL;
	if (!strcmp(word, "none"))
		report->no_graph = true;
	else if (!strcmp(word, "caller"))
		report->order = VP_CALL_CALLER;
	else if (!strcmp(word, "callee"))
		report->order = VP_CALL_CALLEE;
	else if (end != word && !*end && percent >= 0)
		report->min_branch = percent;
	else
		return vp_error_usage(
		    "option --call-graph: expected graph, none, caller, callee or "
		    "a percentage, separated by commas, not '%s'",
		    word);
	return NULL;
}

static bool is_graph_word(const char *word)
{
	struct report report = {0};
	VP_AUTO_FREE char *first = vp_strndup(word, strcspn(word, ","));
	VP_AUTO_ERROR struct vp_error *error = choose_graph_word(&report, first);

	return !error;
}

/* Defaults as in perf: callers below functions; with --children, callees. */
static struct vp_error *choose_graph(struct report *report)
{
	VP_AUTO_FREE char *words = vp_strdup(report->call_graph ? report->call_graph : "");
	char *rest = NULL;
	unsigned columns = report->profile.columns;

	if (report->children && report->no_children)
		return vp_error_usage("--children and --no-children are mutually exclusive");
	report->profile.chains = !columns || columns & VP_COLUMN_FUNCTION;
	report->profile.by_callees = report->profile.chains && !report->no_children;
	report->order = report->profile.by_callees ? VP_CALL_CALLER : VP_CALL_CALLEE;
	report->min_branch = 0.5;
	report->profile.needs_chains = report->children || report->call_graph;
	if (!report->profile.chains && (report->children || report->call_graph))
		return vp_error_usage("call chains need the function in --sort");
	for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		VP_TRY(choose_graph_word(report, word));
	return NULL;
}

static uint32_t count_own_pcpus(void)
{
	cpu_set_t pcpus[8]; /* 1,024 bits each: the kernel refuses fewer bits than pCPUs */

	return sched_getaffinity(0, sizeof(pcpus), pcpus)
		   ? 1
		   : (uint32_t)CPU_COUNT_S(sizeof(pcpus), pcpus);
}

static struct vp_error *choose_jobs(struct report *report)
{
	if (report->jobs > UINT32_MAX)
		return vp_error_usage("option --jobs: expected a number of threads");
	report->profile.max_jobs = !report->jobs;
	report->profile.jobs = report->jobs ? (uint32_t)report->jobs : count_own_pcpus();
	return NULL;
}

/* Formats of single samples have one recording. */
static bool cmd_report_joins(const struct report *report)
{
	return !report->chosen->exporter || report->chosen->exporter()->totals;
}

static bool is_of_several(const struct report *report)
{
	return cmd_report_joins(report) && vp_store_options_has_several(&report->store);
}

static struct vp_error *choose_input(struct report *report)
{
	VP_TRY((cmd_report_joins(report) ? vp_store_options_choose_parts : vp_store_options_choose)(
	    &report->store, &report->operands, report->input, "vperf.data", &report->time,
	    &report->naming.directory));
	VP_TRY(vp_naming_words_check(&report->words, report->naming.directory, &report->naming));
	if (!is_of_several(report))
		VP_TRY(vp_time_option_parse(report->time, report->naming.directory,
					    &report->profile.from, &report->profile.to));
	report->profile.to = report->profile.to == UINT64_MAX ? 0 : report->profile.to;
	report->profile.vm = report->vm;
	report->profile.comm = report->comm;
	report->profile.pid = report->pid;
	report->profile.per_vcpu = report->per_vcpu;
	report->profile.per_process = report->per_process;
	return NULL;
}

static struct vp_error *cmd_report_choose_all(struct report *report)
{
	VP_TRY(choose_view(report));
	VP_TRY(choose_report_format(report));
	VP_TRY(choose_columns(report));
	VP_TRY(choose_numbers(report));
	VP_TRY(cmd_report_choose_cpus(report));
	VP_TRY(choose_graph(report));
	VP_TRY(choose_jobs(report));
	return choose_input(report);
}

static struct vp_error *cmd_report_write_piece(void *context, struct vp_buffer *out)
{
	struct vp_error *error = vp_verb_print(out);

	out->size = 0;
	return error;
}

static struct vp_error *print_result(const struct report *report, const struct vp_report *result)
{
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	struct vp_buffer out = {0};

	if (report->chosen->render)
		report->chosen->render(result, colour, &out);
	else
		vp_export_totals(result, report->chosen->exporter(), &out);
	struct vp_error *error = report->chosen->render == vp_render_report_text
				     ? vp_verb_print_text(&out, false)
				     : vp_verb_print(&out);
	vp_buffer_deinit(&out);
	return error;
}

/* Prints the notes to stderr, for formats without notes. */
static void cmd_report_say_notes(const struct report *report, const struct vp_report *result)
{
	vp_sentences folded = {0};

	if (report->chosen->has_notes)
		return;
	if (!report->verbose)
		vp_notes_fold(&result->notes, &folded);
	vp_vec_each (report->verbose ? &result->notes : &folded, note)
		vp_verb_say("report", *note);
	vp_vec_each (&folded, note)
		free(*note);
	vp_vec_deinit(&folded);
}

static struct vp_error *make_and_print(struct report *report, struct vp_report *result)
{
	static const struct vp_export_writer writer = {.write = cmd_report_write_piece};
	const struct vp_exporter *exporter =
	    report->chosen->exporter ? report->chosen->exporter() : NULL;

	if (exporter && !exporter->totals) {
		VP_TRY(
		    vp_export_stream(&report->naming, &report->profile, exporter, &writer, result));
		cmd_report_say_notes(report, result);
		return NULL;
	}
	if (is_of_several(report))
		VP_TRY(vp_report_joined_make(report->store.store, &report->store.parts,
					     &report->naming, &report->profile, result));
	else
		VP_TRY(vp_report_make(&report->naming, &report->profile, result));
	result->graph.shown = !report->no_graph;
	result->graph.order = report->order;
	result->graph.min_percent = report->min_branch;
	result->limit = report->limit;
	result->percent_limit = report->min_percent;
	if (report->chosen->render == vp_render_report_text && !report->percent_limit &&
	    !report->limit && !report->verbose)
		result->percent_limit = LEAST_PERCENT;
	result->verbose = report->verbose;
	result->width = report->verbose ? 0 : vp_terminal_width();
	cmd_report_say_notes(report, result);
	struct vp_error *error = print_result(report, result);
	if (error)
		vp_report_deinit(result);
	return error;
}

static struct vp_error *cmd_report_report_with(void *context)
{
	struct report *report = context;
	struct vp_report result;

	VP_TRY(cmd_report_choose_all(report));
	if (vp_recording_is_of_intervals(report->naming.directory))
		return vp_error_new("'%s' is an interval recording: use 'vperf stat report'",
				    report->naming.directory);
	VP_TRY(make_and_print(report, &result));
	vp_report_deinit(&result);
	return NULL;
}

static int run_report(int argc, char **argv)
{
	struct report report = {.view = "unified"};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &report.input, "DIR",
	     "recording directory (default: vperf.data)"},
	    VP_STORE_OPTION(&report.store),
	    {0, "view", VP_OPTION_TEXT, &report.view, "VIEW",
	     "host: what each pCPU did; guest: what each vCPU of one VM did, with steal; unified: "
	     "everything in one table (default: unified)"},
	    {0, "time", VP_OPTION_TEXT, &report.time, "FROM,TO", VP_TIME_HELP},
	    {0, "vm", VP_OPTION_NAMES, &report.vm, "NAME",
	     "only this VM (name, or pid of its VMM); can be repeated"},
	    {0, "vcpu", VP_OPTION_TEXT, &report.vcpu, "N", "only this vCPU"},
	    {'C', "cpu", VP_OPTION_TEXT, &report.cpus, "LIST", "only these pCPUs, such as 0-3,8"},
	    {'p', "pid", VP_OPTION_COUNT, &report.pid, "PID",
	     "only this process (guest pid for guest rows)"},
	    {'c', "comm", VP_OPTION_TEXT, &report.comm, "NAME", "only processes of this name"},
	    {'s', "sort", VP_OPTION_TEXT, &report.sort, "KEYS",
	     "sort keys, separated by commas: function (sym), module (dso), process (comm), pid, "
	     "vm, vcpu"},
	    {0, "children", VP_OPTION_FLAG, &report.children, NULL,
	     "add the samples of callees to their callers (default with call chains)"},
	    {0, "no-children", VP_OPTION_FLAG, &report.no_children, NULL,
	     "sort rows by their own samples only"},
	    {'g', "call-graph", VP_OPTION_MAYBE, &report.call_graph, "HOW",
	     "call graph below each row: graph or none, minimum percentage, caller or callee, "
	     "separated by commas (default: graph,0.5)",
	     is_graph_word},
	    {0, "per-vcpu", VP_OPTION_FLAG, &report.per_vcpu, NULL,
	     "separate rows or tables per vCPU"},
	    {0, "per-process", VP_OPTION_FLAG, &report.per_process, NULL,
	     "separate rows per process, with pid"},
	    {0, "format", VP_OPTION_TEXT, &report.format, "FORMAT",
	     "text, json, csv or folded; script or jsonl for single samples (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &report.json, NULL, "same as --format json"},
	    {0, "csv", VP_OPTION_FLAG, &report.csv, NULL, "same as --format csv"},
	    {0, "folded", VP_OPTION_FLAG, &report.folded, NULL, "same as --format folded"},
	    {0, "stdio", VP_OPTION_FLAG, &report.stdio, NULL,
	     "ignored, for compatibility with perf"},
	    VP_NAMING_OPTIONS(&report.words),
	    {0, "guest-kallsyms", VP_OPTION_TEXTS, &report.words.kallsyms, "NAME=FILE",
	     "same as --kallsyms"},
	    {0, "limit", VP_OPTION_COUNT, &report.limit, "N", "print only the first N rows"},
	    {'j', "jobs", VP_OPTION_COUNT, &report.jobs, "N",
	     "read the recording with N threads (default: one per pCPU if it is large)"},
	    {0, "percent-limit", VP_OPTION_TEXT, &report.percent_limit, "P",
	     "hide rows below P percent (default: 0.05 in text, 0 with -v, --limit)"},
	    {'v', "verbose", VP_OPTION_FLAG, &report.verbose, NULL,
	     "print all rows, and all notes in the header"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &report.operands, cmd_report_report_with, &report);

	vp_naming_words_deinit(&report.words, &report.naming);
	vp_store_options_deinit(&report.store);
	vp_vec_deinit(&report.pcpus);
	vp_vec_deinit(&report.naming.maps);
	vp_vec_deinit(&report.naming.kernels);
	return status;
}

static const struct vp_verb verb = {
    .name = "report",
    .usage = "[--view host|guest|unified] [--vm NAME] [OPTION]... [DIR]",
    .summary = "show where the time in a recording went",
    .run = run_report,
};
