/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf stat report: a recording of intervals as a table, or as data for models. */
#include "cmd/read/stat_report.h"

#include <stdio.h>
#include <string.h>

#include "analyze/common/window.h"
#include "analyze/model/intervals.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "render/render_intervals.h"
#include "schema/interval.h"
#include "schema/recipe.h"
#include "stats/data.h"
#include "table/reader.h"

static const struct vp_verb verb;

struct report {
	const char *input, *base, *vm, *time;
	struct vp_format_words words;
	const char *format; /* the chosen one */
	uint64_t per;
	bool raw, partial, subjects, live;
	struct vp_texts operands;
};

static struct vp_error *stat_report_put_data(const struct report *report,
					     const struct vp_interval_recording *rec,
					     const char *base, double per, bool arff,
					     struct vp_buffer *out)
{
	struct vp_interval_choice choice = {
	    .base = base,
	    .per = per,
	    .vm = report->vm,
	    .partial = report->partial,
	    .subjects = report->subjects,
	    .live = report->live,
	};
	struct vp_data data;

	VP_TRY(vp_interval_data(rec, &choice, &data));
	if (arff)
		vp_dataset_write_arff(&data, out);
	else
		vp_dataset_write_csv(&data, out);
	vp_data_deinit(&data);
	return NULL;
}

static struct vp_error *put_recording(const struct report *report,
				      const struct vp_interval_recording *rec,
				      struct vp_buffer *out)
{
	const char *format = report->format;
	const char *base = report->base  ? report->base
			   : report->raw ? NULL
					 : vp_interval_usual_base(rec);

	double per = report->per ? (double)report->per : 1000;

	if (base && vp_recipe_find(&rec->recipe, base) == VP_EVENTS_MAX)
		return vp_error_new("'%s' has no counts of '%s'", rec->path, base);
	if (!strcmp(format, "csv") || !strcmp(format, "arff"))
		return stat_report_put_data(report, rec, base, per, !strcmp(format, "arff"), out);
	if (!strcmp(format, "json"))
		vp_render_intervals_json(rec, out);
	else
		vp_render_intervals_text(rec, base, per, vp_terminal_width(), out);
	return NULL;
}

static struct vp_error *stat_report_report_with(void *context)
{
	static const char *const formats[] = {"text", "json", "csv", "arff"};
	struct report *report = context;
	struct vp_interval_recording rec;
	struct vp_buffer out = {0};
	const char *directory;
	struct vp_window window;

	VP_TRY(vp_choose_format(&report->words, formats, VP_ARRAY_SIZE(formats), &report->format));
	if (report->raw && report->base)
		return vp_error_usage("--raw and --base are mutually exclusive");
	VP_TRY(vp_verb_recording(&report->operands, report->input, "vperf.stat", &directory));
	VP_TRY(vp_time_option_window(report->time, directory, &window));
	VP_TRY(vp_interval_recording_open(directory, &rec));
	vp_interval_recording_cut(&rec, &window);
	struct vp_error *error = put_recording(report, &rec, &out);
	if (!error)
		error = out.size && out.bytes[0] == '#' ? vp_verb_print_text(&out, false)
							: vp_verb_print(&out);
	vp_buffer_deinit(&out);
	vp_interval_recording_close(&rec);
	return error;
}

int vp_stat_report(int argc, char **argv)
{
	struct report report = {0};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &report.input, "DIR",
	     "recording directory (default: vperf.stat)"},
	    {0, "time", VP_OPTION_TEXT, &report.time, "FROM,TO", VP_TIME_HELP},
	    {0, "format", VP_OPTION_TEXT, &report.words.format, "FORMAT",
	     "text: sums; csv, arff: one row per interval; json: both (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &report.words.json, NULL, "same as --format json"},
	    {0, "csv", VP_OPTION_FLAG, &report.words.csv, NULL, "same as --format csv"},
	    {0, "base", VP_OPTION_TEXT, &report.base, "EVENT",
	     "normalize by this event (default: instructions, if counted)"},
	    {0, "per", VP_OPTION_COUNT, &report.per, "N",
	     "with --base: values per N of that event (default: 1000)"},
	    {0, "raw", VP_OPTION_FLAG, &report.raw, NULL, "do not normalize"},
	    {0, "vm", VP_OPTION_NAMES, &report.vm, "NAME",
	     "csv, arff: only this VM's intervals; can be repeated"},
	    {0, "subjects", VP_OPTION_FLAG, &report.subjects, NULL,
	     "csv, arff: add a column with the vCPU, task or pCPU"},
	    {0, "live", VP_OPTION_FLAG, &report.live, NULL,
	     "csv, arff: add running time columns per event, from 0 to 1"},
	    {0, "partial", VP_OPTION_FLAG, &report.partial, NULL,
	     "csv, arff: include intervals that ended early"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &report.operands,
			   stat_report_report_with, &report);
}

static const struct vp_verb verb = {
    .name = "stat report",
    .usage = "[--format FORMAT] [--base EVENT] [--time FROM,TO] [DIR]",
    .summary = "show the counts of an interval recording",
};

static int stat_report_run(int argc, char **argv)
{
	bool is_report = argc > 1 && !strcmp(argv[1], "report");
	bool is_help = argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));

	if (is_report)
		return vp_stat_report(argc - 1, argv + 1);
	if (!is_help)
		vp_verb_say("stat",
			    "this program has 'stat report' only; 'vperf stat' counts, on a host");
	return is_help ? vp_stat_report(argc, argv) : VP_ERROR_USAGE;
}

const struct vp_verb *vp_verb_stat_report(void)
{
	static const struct vp_verb stat = {
	    .name = "stat",
	    .summary = "stat report: show the counts of an interval recording",
	    .run = stat_report_run};

	return &stat;
}
