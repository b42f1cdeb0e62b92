/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf html: writes a recording as one HTML page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/health.h"
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/common/window.h"
#include "analyze/model/intervals.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/view.h"
#include "analyze/report/account_trace.h"
#include "analyze/report/diagnose.h"
#include "analyze/report/report.h"
#include "analyze/report/report_joined.h"
#include "analyze/report/report_make.h"
#include "analyze/trace/sched.h"
#include "analyze/trace/trace_feed.h"
#include "analyze/trace/track_store.h"
#include "analyze/trace/tracks.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/naming_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "render/page.h"
#include "render/page_frame.h"
#include "store/recording.h"

static const struct vp_verb verb;

enum { MAX_SLICES = 500000, EVENTS_AT_ONCE = 1 << 16, MAX_ROWS = 2000, WORST_WAITS = 100 };

enum table {
	STATES,
	VCPUS,
	STEAL,
	EXITS,
	EXITS_BY_FUNCTION,
	EXITS_BY_PROCESS,
	EXITS_BY_ADDRESS,
	SCHED_VCPUS,
	SCHED_THREADS,
	SCHED_WAITS,
	SCHED_WORST,
	TABLES
};

const struct vp_verb *vp_verb_html(void)
{
	return &verb;
}

struct html {
	const char *input, *output, *before, *vm, *time;
	struct vp_store_options from;
	struct vp_texts operands;
	struct vp_naming_words words;
	/* Parsed options. */
	struct vp_naming_options naming, naming_before;
	struct vp_window window;
	/* Results, by part of the page. */
	struct vp_report report, report_before;
	struct vp_account_recording account;
	char *arguments; /* of the account; or NULL */
	struct vp_account_view view;
	struct vp_diagnosis diagnosis;
	struct vp_tracks *tracks;
	struct vp_track_store store;
	struct vp_sched sched;
	struct vp_interval_recording intervals;
	bool has_report, has_before, has_account, has_diagnosis, has_tracks, has_intervals;
	struct vp_page_table tables[TABLES];
	vp_sentences notes; /* owned by the parts */
};

/* Whether the page is of several recordings of a store. */
static bool html_is_joined(const struct html *html)
{
	return vp_store_options_has_several(&html->from);
}

static struct vp_error *cmd_html_choose_all(struct html *html)
{
	if (!vp_page_frame())
		return vp_error_new(
		    "this vperf was built without it: install esbuild and build again "
		    "(README.md)");
	if (!html->output)
		return vp_error_usage("expected -o FILE.html");
	VP_TRY(vp_store_options_choose_parts(&html->from, &html->operands, html->input,
					     "vperf.data", &html->time, &html->naming.directory));
	VP_TRY(vp_naming_words_check(&html->words, html->naming.directory, &html->naming));
	if (!html_is_joined(html))
		VP_TRY(vp_time_option_window(html->time, html->naming.directory, &html->window));
	html->naming_before = html->naming;
	html->naming_before.directory = html->before;
	return NULL;
}

static struct vp_error *make_report(const struct html *html, const struct vp_naming_options *naming,
				    struct vp_report *ret)
{
	const struct vp_profile_options options = {
	    .view = VP_VIEW_UNIFIED,
	    .vm = html->vm,
	    .columns = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS | VP_COLUMN_VM,
	    .chains = true,
	    .from = naming == &html->naming ? html->window.from : 0,
	    .to = naming == &html->naming ? html->window.to : 0,
	    .jobs = 2,
	    .max_jobs = true};

	return html_is_joined(html) && naming == &html->naming
		   ? vp_report_joined_make(html->from.store, &html->from.parts, naming, &options,
					   ret)
		   : vp_report_make(naming, &options, ret);
}

static struct vp_error *make_profiles(struct html *html)
{
	VP_TRY(make_report(html, &html->naming, &html->report));
	html->has_report = true;
	if (!html->before)
		return NULL;
	VP_TRY(make_report(html, &html->naming_before, &html->report_before));
	html->has_before = true;
	return NULL;
}

/* Tables are sorted by cost: keeps only the first rows of a long one. */
static void shorten(struct vp_page_table *table)
{
	size_t rows = vp_table_rows(&table->table);

	if (rows <= MAX_ROWS)
		return;
	table->left_out = rows - MAX_ROWS;
	table->table.cells.count = MAX_ROWS * table->table.columns.count;
}

/* Findings, and exits by site: totals of a whole recording. */
static struct vp_error *make_details(struct html *html)
{
	struct vp_page_table *tables = html->tables;
	struct vp_interval_recording intervals = {0};

	vp_account_sites_table(&html->view, &html->report.naming, VP_EXITS_BY_FUNCTION,
			       &tables[EXITS_BY_FUNCTION].table);
	vp_account_sites_table(&html->view, &html->report.naming, VP_EXITS_BY_PROCESS,
			       &tables[EXITS_BY_PROCESS].table);
	vp_account_addresses_table(&html->view, &tables[EXITS_BY_ADDRESS].table);
	bool has_intervals = vp_recording_has_intervals(html->naming.directory);
	if (has_intervals)
		VP_TRY(vp_interval_recording_open(html->naming.directory, &intervals));
	vp_diagnose(&html->view, &tables[EXITS_BY_FUNCTION].table, &tables[EXITS_BY_ADDRESS].table,
		    &html->account.losses, has_intervals ? &intervals : NULL, &html->diagnosis);
	vp_interval_recording_close(&intervals);
	html->has_diagnosis = true;
	VP_TRY(vp_diagnose_seconds(html->naming.directory, &html->view,
				   &tables[EXITS_BY_FUNCTION].table, &html->diagnosis));
	for (int i = EXITS_BY_FUNCTION; html->window.to && i <= EXITS_BY_ADDRESS; i++) {
		vp_table_deinit(&tables[i].table);
		tables[i].table = (struct vp_table){0};
	}
	return NULL;
}

static struct vp_error *open_account(struct html *html)
{
	if (!html_is_joined(html))
		return vp_account_trace_open(html->naming.directory, &html->window, &html->account);
	VP_TRY(vp_account_trace_open_joined(html->from.store, &html->from.parts, &html->account));
	html->account.arguments = html->arguments =
	    vp_store_options_arguments(&html->from, html->time);
	return NULL;
}

static struct vp_error *make_account(struct html *html)
{
	struct vp_page_table *tables = html->tables;

	/* Without VMs, the page shows only the host's profile. */
	if (!html->report.vms.count)
		return NULL;
	struct vp_error *error = open_account(html);
	if (error && !vp_recording_has_instrument(&html->report.recording, "account")) {
		vp_error_free(error); /* nor are there events of VMs */
		return NULL;
	}
	if (error)
		return error;
	html->has_account = true;
	VP_TRY(vp_account_view_init(&html->view, &html->account.account, html->vm));
	html->view.cgroups = &html->account.cgroups;
	html->view.seconds = html->account.duration;
	vp_account_states_table(&html->view, &tables[STATES].table);
	vp_account_vcpus_table(&html->view, &tables[VCPUS].table);
	vp_account_steal_table(&html->view, &tables[STEAL].table);
	vp_account_exits_table(&html->view, &tables[EXITS].table);
	if (!html_is_joined(html))
		return make_details(html);
	vp_diagnose_joined(&html->view, &html->account.losses, &html->account.notes,
			   &html->diagnosis);
	html->has_diagnosis = true;
	return NULL;
}

static void cmd_html_take(void *context, const struct vp_track_slice *slice)
{
	struct html *html = context;

	vp_track_store_take(&html->store, slice);
	vp_sched_take(&html->sched, slice);
}

static struct vp_error *make_tracks(struct html *html)
{
	const struct vp_tracks_options options = {.from = html->window.from,
						  .to = html->window.to ? html->window.to
									: UINT64_MAX,
						  .vm = html->vm,
						  .take = cmd_html_take,
						  .context = html};
	struct vp_page_table *tables = html->tables;

	if (!vp_feed_is_recorded(html->naming.directory, &html->report.recording,
				 &html->report.vms))
		return NULL;
	VP_TRY(vp_tracks_open(html->naming.directory, &options, &html->tracks));
	html->has_tracks = true;
	while (vp_tracks_read(html->tracks, EVENTS_AT_ONCE))
		;
	vp_track_store_close(&html->store);
	vp_sched_vcpu_table(&html->sched, html->tracks, &tables[SCHED_VCPUS].table);
	vp_sched_thread_table(&html->sched, html->tracks, &tables[SCHED_THREADS].table);
	vp_sched_wait_table(&html->sched, &tables[SCHED_WAITS].table);
	vp_sched_worst_table(&html->sched, html->tracks, &tables[SCHED_WORST].table);
	return NULL;
}

static struct vp_error *make_intervals(struct html *html)
{
	if (!vp_recording_has_intervals(html->naming.directory))
		return NULL;
	VP_TRY(vp_interval_recording_open(html->naming.directory, &html->intervals));
	html->has_intervals = true;
	vp_interval_recording_cut(&html->intervals, &html->window);
	return NULL;
}

/* Adds notes that are not in the list yet. */
static void cmd_html_add_notes(struct html *html, const vp_sentences *notes)
{
	vp_vec_each (notes, note) {
		bool known = false;
		vp_vec_each (&html->notes, other)
			known |= !strcmp(*other, *note);
		if (!known)
			vp_vec_push(&html->notes, *note);
	}
}

static void gather_notes(struct html *html)
{
	cmd_html_add_notes(html, &html->report.notes);
	if (html->has_account)
		cmd_html_add_notes(html, &html->account.notes);
	if (html->has_tracks)
		cmd_html_add_notes(html, &vp_tracks_feed(html->tracks)->notes);
	if (html->has_intervals)
		cmd_html_add_notes(html, &html->intervals.notes);
}

static struct vp_error *write_page(struct html *html)
{
	struct vp_page_table shown[TABLES];
	struct vp_page page = {.report = &html->report,
			       .before = html->has_before ? &html->report_before : NULL,
			       .tables = shown,
			       .diagnosis = html->has_diagnosis ? &html->diagnosis : NULL,
			       .account = &html->account,
			       .tracks = html->has_tracks ? &html->store : NULL,
			       .intervals = html->has_intervals ? &html->intervals : NULL,
			       .notes = &html->notes};
	struct vp_buffer out = {0};

	for (int i = 0; i < TABLES; i++) {
		if (!html->tables[i].table.columns.count)
			continue;
		shorten(&html->tables[i]);
		shown[page.n_tables++] = html->tables[i];
	}
	vp_render_page(&page, &out);
	struct vp_error *error = vp_verb_write(html->output, &out);
	vp_buffer_deinit(&out);
	if (!error && strcmp(html->output, "-") != 0)
		vp_verb_say_written(verb.name, html->output);
	return error;
}

static struct vp_error *make_all(struct html *html)
{
	VP_TRY(make_profiles(html));
	VP_TRY(make_account(html));
	if (!html_is_joined(html)) { /* events and intervals have the clock of their recording */
		VP_TRY(make_tracks(html));
		VP_TRY(make_intervals(html));
	}
	gather_notes(html);
	return write_page(html);
}

static void name_tables(struct html *html)
{
	static const struct {
		const char *key, *title;
	} names[TABLES] = {
	    [STATES] = {"states", "vCPU states"},
	    [VCPUS] = {"vcpus", "vCPUs"},
	    [STEAL] = {"steal", "Steal of each vCPU, by thief"},
	    [EXITS] = {"exits", "VM exits by reason"},
	    [EXITS_BY_FUNCTION] = {"exitsByFunction", "VM exits by guest function"},
	    [EXITS_BY_PROCESS] = {"exitsByProcess", "VM exits by guest process"},
	    [EXITS_BY_ADDRESS] = {"exitsByAddress", "VM exits by guest physical address"},
	    [SCHED_VCPUS] = {"schedVcpus", "vCPUs (from events)"},
	    [SCHED_THREADS] = {"schedThreads", "Guest threads"},
	    [SCHED_WAITS] = {"schedWaits", "vCPU waits by length"},
	    [SCHED_WORST] = {"schedWorst", "Longest vCPU waits"}};

	for (int i = 0; i < TABLES; i++) {
		html->tables[i].key = names[i].key;
		html->tables[i].title = names[i].title;
	}
}

static void close_all(struct html *html)
{
	for (int i = 0; i < TABLES; i++)
		vp_table_deinit(&html->tables[i].table);
	vp_vec_deinit(&html->notes);
	if (html->has_intervals)
		vp_interval_recording_close(&html->intervals);
	if (html->has_tracks)
		vp_tracks_close(html->tracks);
	vp_track_store_deinit(&html->store);
	vp_sched_deinit(&html->sched);
	if (html->has_diagnosis)
		vp_diagnosis_deinit(&html->diagnosis);
	if (html->has_account) {
		vp_account_view_deinit(&html->view);
		vp_account_recording_close(&html->account);
	}
	if (html->has_before)
		vp_report_deinit(&html->report_before);
	if (html->has_report)
		vp_report_deinit(&html->report);
}

static struct vp_error *html_with(void *context)
{
	struct html *html = context;

	VP_TRY(cmd_html_choose_all(html));
	vp_track_store_init(&html->store, MAX_SLICES);
	html->sched.max_waits = WORST_WAITS;
	name_tables(html);
	struct vp_error *error = make_all(html);
	close_all(html);
	return error;
}

static int run_html(int argc, char **argv)
{
	struct html html = {0};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &html.input, "DIR",
	     "recording directory (default: vperf.data)"},
	    VP_STORE_OPTION(&html.from),
	    {'o', "output", VP_OPTION_TEXT, &html.output, "FILE",
	     "write the page to FILE; -: to standard output"},
	    {0, "diff", VP_OPTION_TEXT, &html.before, "DIR",
	     "differential flame graph against the baseline recording in DIR"},
	    {0, "vm", VP_OPTION_NAMES, &html.vm, "NAME",
	     "only this VM (name, or pid of its VMM); can be repeated"},
	    {0, "time", VP_OPTION_TEXT, &html.time, "FROM,TO", VP_TIME_HELP},
	    VP_NAMING_OPTIONS(&html.words),
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &html.operands,
				 html_with, &html);

	vp_naming_words_deinit(&html.words, &html.naming);
	vp_store_options_deinit(&html.from);
	free(html.arguments);
	return status;
}

static const struct vp_verb verb = {
    .name = "html",
    .usage = "[--diff DIR] [--time FROM,TO] [OPTION]... [DIR] -o FILE.html",
    .summary = "write an HTML report: states, timeline, flame graph, tables",
    .run = run_html,
};
