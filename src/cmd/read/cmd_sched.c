/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf sched: run and wait times of guest threads and vCPUs, with thieves. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/common/guest_trace.h"
#include "analyze/common/health.h"
#include "analyze/common/table.h"
#include "analyze/common/table_join.h"
#include "analyze/trace/guest_sched.h"
#include "analyze/trace/sched.h"
#include "analyze/trace/threads.h"
#include "analyze/trace/trace_feed.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/event_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_account.h"
#include "render/render_table.h"
#include "store/recording.h"

static const struct vp_verb verb;

enum { EVENTS_AT_ONCE = 1 << 16, WORST = 10, MAX_WORST = 100000 };

/* Tables from guest events are the last ones. */
enum table { VCPUS, THREADS, WAITS, WORST_WAITS, GUESTS, WAKEUPS, WORST_WAKEUPS, TABLES };
static const char *const table_names[TABLES] = {"vcpus",  "threads", "waits",        "worst",
						"guests", "wakeups", "worst-wakeups"};
static const char *const titles[TABLES] = {"vCPUs",
					   "Guest threads, by vCPU",
					   "Waits of vCPUs for a pCPU, by length",
					   "Longest waits of vCPUs for a pCPU",
					   "Guest threads, by guest events",
					   "Wakeups of guest threads, by latency",
					   "Longest wakeup latencies of guest threads"};

const struct vp_verb *vp_verb_sched(void)
{
	return &verb;
}

/* The longest wait. */
struct longest {
	uint64_t begin, ns; /* 0: none */
	char *directory;
	struct vp_clock_text clock;
};

struct sched {
	struct vp_event_options which;
	struct vp_format_words words;
	uint64_t limit; /* rows of each table; 0: all */
	const char *format, *table;
	uint64_t worst;
	/* Parsed options. */
	bool shown[TABLES], verbose;
	/* Sums of all recordings that are read. */
	bool of_guests; /* tables from guest events are shown */
	struct vp_table_join tables[TABLES];
	struct longest longest;
	uint64_t left_out, duration;
	struct vp_buffer about; /* host and date of the first one */
	vp_sentences guest_notes;
};

static void cmd_sched_take(void *context, const struct vp_track_slice *slice)
{
	vp_sched_take(context, slice);
}

static struct vp_error *choose_tables(struct sched *sched)
{
	bool all = !sched->table && strcmp(sched->format, "csv") != 0;
	size_t table = THREADS;

	if (sched->table)
		VP_TRY(vp_choose("table", sched->table, table_names, TABLES, &table));
	for (size_t i = 0; i < TABLES; i++)
		sched->shown[i] = all || i == table;
	return NULL;
}

static struct vp_error *cmd_sched_choose_all(struct sched *sched)
{
	VP_TRY(vp_choose_table_format(&sched->words, &sched->format));
	if (sched->worst > MAX_WORST)
		return vp_error_usage("option --worst: expected at most %d", MAX_WORST);
	VP_TRY(choose_tables(sched));
	sched->which.joins = true;
	sched->which.store.reads = VP_STORE_EVENTS;
	return vp_event_options_check(&sched->which);
}

/* How the tables of several recordings are joined. */
static const struct vp_table_join_rules rules[TABLES] = {
    [VCPUS] = {.keys = VP_TABLE_KEYS("vm", "vcpu"),
	       .last = VP_TABLE_KEYS("tid"),
	       .percent = "exact_percent",
	       .part = "exact_ns",
	       .whole = "guest_ns"},
    [THREADS] = {.keys = VP_TABLE_KEYS("vm", "vcpu", "tid"),
		 .last = VP_TABLE_KEYS("pid"),
		 .most = "thief_ns",
		 .most_text = "thief",
		 .order = VP_TABLE_KEYS("exact_ns", "uncertain_ns", "work_ns", "steal_ns")},
    [WAITS] = {.keys = VP_TABLE_KEYS("from_ns"), .buckets = "from_ns"},
    [WORST_WAITS] = {.order = VP_TABLE_KEYS("ns")},
    [GUESTS] = {.keys = VP_TABLE_KEYS("vm", "tid"),
		.most = "theft_ns",
		.most_text = "thief",
		.order = VP_TABLE_KEYS("on_cpu_ns", "work_ns", "runnable_ns", "off_ns")},
    [WAKEUPS] = {.keys = VP_TABLE_KEYS("from_ns"), .buckets = "from_ns"},
    [WORST_WAKEUPS] = {.order = VP_TABLE_KEYS("ns")},
};

static void take_table(struct sched *sched, enum table which, struct vp_table *table)
{
	vp_table_join_add(&sched->tables[which], &rules[which], table);
	vp_table_deinit(table);
}

static void keep_longest(struct sched *sched, const struct vp_sched *sums)
{
	const struct vp_sched_wait *wait = sums->waits.at;

	if (!sums->waits.count || wait->ns <= sched->longest.ns)
		return;
	free(sched->longest.directory);
	sched->longest = (struct longest){wait->begin, wait->ns, vp_strdup(sched->which.directory),
					  sched->which.clock};
}

static void take_tables(struct sched *sched, struct vp_sched *sums, struct vp_tracks *tracks)
{
	struct vp_table table = {0};

	vp_sched_vcpu_table(sums, tracks, &table);
	take_table(sched, VCPUS, &table);
	table = (struct vp_table){0};
	vp_sched_thread_table(sums, tracks, &table);
	take_table(sched, THREADS, &table);
	table = (struct vp_table){0};
	vp_sched_wait_table(sums, &table);
	take_table(sched, WAITS, &table);
	sums->clock = sched->which.clock;
	table = (struct vp_table){0};
	vp_sched_worst_table(sums, tracks, &table);
	take_table(sched, WORST_WAITS, &table);
	keep_longest(sched, sums);
	sched->left_out += sums->left_out;
}

static bool is_shown(const struct sched *sched, int table)
{
	return sched->shown[table] && (table < GUESTS || sched->of_guests);
}

static void cmd_sched_put_json(const struct sched *sched, const vp_sentences *notes,
			       struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_line(&json);
	vp_json_pretty(&json, true);
	vp_json_array(&json, "notes");
	vp_vec_each (notes, note)
		vp_json_text(&json, NULL, *note);
	vp_json_array_end(&json);
	vp_json_pretty(&json, false);
	for (int i = 0; i < TABLES; i++)
		if (is_shown(sched, i))
			vp_render_table_json(&sched->tables[i].table, table_names[i], &json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

/* Appends a command that shows the longest wait. */
static void put_command(const struct sched *sched, struct vp_buffer *out)
{
	char from[VP_CLOCK_TEXT_SIZE], to[VP_CLOCK_TEXT_SIZE];

	const struct longest *longest = &sched->longest;

	if (!longest->ns)
		return;
	vp_buffer_printf(out, "# the first one: vperf timeline --time %s,%s %s\n",
			 vp_clock_text(&longest->clock, longest->begin, from),
			 vp_clock_text(&longest->clock, longest->begin + longest->ns, to),
			 longest->directory);
}

/* 0: all columns. */
static size_t sched_width(const struct sched *sched)
{
	return sched->verbose ? 0 : vp_terminal_width();
}

/* From this column on, the vCPU table is about the accuracy of the threads' times. */
#define FIRST_OF_ACCURACY "exact_ns"

/* The identifying columns of the vCPU table, and either its accuracy columns or its other ones. */
static void put_vcpus(const struct sched *sched, bool accuracy, bool colour, struct vp_buffer *out)
{
	const struct vp_table *table = &sched->tables[VCPUS].table;
	enum { KEYS = 3 };
	size_t first = vp_table_column_of(table, FIRST_OF_ACCURACY);
	VP_AUTO_FREE bool *shown = vp_alloc(table->columns.count + 1);
	struct vp_table part;

	for (size_t i = 0; i < table->columns.count; i++)
		shown[i] = i < KEYS || (i >= first) == accuracy;
	vp_table_choose(table, shown, &part);
	vp_render_table_fitted(&part, sched_width(sched), colour, out);
	vp_table_deinit(&part);
}

static void put_title(const char *title, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%s# %s\n", out->size ? "\n" : "", title);
}

/* Keeps the contents of the head: host and date of the first recording, and the time of all. */
static struct vp_error *take_about(struct sched *sched)
{
	struct vp_buffer *out = &sched->about;
	struct vp_recording about;
	char date[VP_TEXT_DATE_SIZE];

	VP_TRY(vp_recording_read(sched->which.directory, &about));
	uint64_t from = about.start, to = about.end;
	from = sched->which.from > from ? sched->which.from : from;
	to = sched->which.to < to ? sched->which.to : to;
	sched->duration += to > from ? to - from : 0;
	if (!out->size) {
		vp_buffer_printf(out, "# host %s, kernel %s, %u pCPU%s", about.hostname,
				 about.kernel, about.pcpus, about.pcpus == 1 ? "" : "s");
		vp_buffer_string(out, "\n");
		if (about.realtime_offset)
			vp_buffer_printf(
			    out, " from %s",
			    vp_text_date(from + (uint64_t)about.realtime_offset, date));
	}
	vp_recording_deinit(&about);
	return NULL;
}

/* The recording, its date, and how its times relate to those of 'vperf account'. */
static void put_head(const struct sched *sched, struct vp_buffer *out)
{
	const char *about = vp_buffer_text(&((struct sched *)sched)->about);
	const char *date = strchr(about, '\n');

	vp_buffer_printf(out, "# vperf sched of '%s'\n",
			 vp_event_options_count(&sched->which) > 1 ? sched->which.store.store
								   : sched->which.directory);
	vp_buffer_append(out, about, (size_t)(date - about));
	if (sched->duration)
		vp_buffer_printf(out, ", %.3f s", (double)sched->duration / 1e9);
	vp_buffer_printf(out,
			 "%s\n# Guest lasts up to KVM's exit event and includes host "
			 "interrupts; 'vperf account' has them apart\n",
			 date + 1);
}

static void cmd_sched_put_text(const struct sched *sched, struct vp_buffer *out)
{
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	for (int i = 0; i < TABLES; i++) {
		if (!is_shown(sched, i))
			continue;
		put_title(titles[i], out);
		if (i == VCPUS)
			put_vcpus(sched, false, colour, out);
		else if (i == WAITS || i == WAKEUPS)
			vp_render_histogram_text(&sched->tables[i].table, sched_width(sched),
						 colour, out);
		else
			vp_render_table_fitted(&sched->tables[i].table, sched_width(sched), colour,
					       out);
		if (i == WORST_WAITS)
			put_command(sched, out);
	}
	if (!sched->shown[VCPUS])
		return;
	put_title("Accuracy: guest time whose thread is known exactly, switches observed", out);
	put_vcpus(sched, true, colour, out);
}

static void cmd_sched_put_csv(const struct sched *sched, struct vp_buffer *out)
{
	for (int i = 0; i < TABLES; i++)
		if (is_shown(sched, i))
			vp_render_table_csv(&sched->tables[i].table, true, out);
}

/* Without --table, only if the recording has guest events. */
static struct vp_error *take_guest_tables(struct sched *sched, const struct vp_feed *feed)
{
	const struct vp_threads_options options = {
	    .from = sched->which.from, .to = sched->which.to, .vm = sched->which.vm};
	const char *directory = sched->which.directory;
	bool wanted = sched->shown[GUESTS] || sched->shown[WAKEUPS] || sched->shown[WORST_WAKEUPS];
	struct vp_table tables[TABLES - GUESTS] = {0};
	struct vp_threads threads;

	if (!wanted || (!sched->table && !vp_guest_traces_any(directory, &feed->vms, options.vm)))
		return NULL;
	VP_TRY(vp_threads_open(directory, &options, &threads));
	struct vp_guest_sched sums = {
	    .threads = &threads, .max_worst = sched->worst, .clock = sched->which.clock};
	vp_guest_sched_sum(&sums);
	vp_guest_sched_thread_table(&sums, &tables[0]);
	vp_guest_sched_wakeup_table(&sums, &tables[WAKEUPS - GUESTS]);
	vp_guest_sched_worst_table(&sums, &tables[WORST_WAKEUPS - GUESTS]);
	for (int i = GUESTS; i < TABLES; i++)
		take_table(sched, (enum table)i, &tables[i - GUESTS]);
	vp_event_notes_add(&sched->guest_notes, &threads.notes);
	sched->of_guests = true;
	vp_guest_sched_deinit(&sums);
	vp_threads_deinit(&threads);
	return NULL;
}

static struct vp_error *read_tracks(struct sched *sched, struct vp_sched *sums,
				    struct vp_tracks *tracks)
{
	while (vp_tracks_read(tracks, EVENTS_AT_ONCE))
		;
	VP_TRY(take_guest_tables(sched, vp_tracks_feed(tracks)));
	VP_TRY(take_about(sched));
	take_tables(sched, sums, tracks);
	return NULL;
}

static struct vp_error *read_part(void *context, vp_sentences *notes)
{
	struct sched *sched = context;
	struct vp_sched sums = {.max_waits = sched->worst};
	const struct vp_tracks_options options = {.from = sched->which.from,
						  .to = sched->which.to,
						  .vm = sched->which.vm,
						  .pcpus = sched->which.pcpus.at,
						  .n_pcpus = sched->which.pcpus.count,
						  .take = cmd_sched_take,
						  .context = &sums};
	struct vp_tracks *tracks;

	VP_TRY(vp_tracks_open(sched->which.directory, &options, &tracks));
	struct vp_error *error = read_tracks(sched, &sums, tracks);
	if (!error)
		vp_event_notes_add(notes, &vp_tracks_feed(tracks)->notes);
	vp_sched_deinit(&sums);
	vp_tracks_close(tracks);
	return error;
}

/* Each recording has its own longest waits. */
static void finish_tables(struct sched *sched)
{
	for (int i = 0; i < TABLES; i++) {
		struct vp_table_join *join = &sched->tables[i];
		if (!join->table.columns.count)
			continue;
		vp_table_join_finish(join, &rules[i]);
		if (i == WORST_WAITS || i == WORST_WAKEUPS)
			vp_table_limit(&join->table, sched->worst);
		vp_table_limit(&join->table, sched->limit);
	}
}

static struct vp_error *cmd_sched_print(struct sched *sched, const vp_sentences *notes)
{
	bool is_text = !strcmp(sched->format, "text"), is_json = !strcmp(sched->format, "json");
	struct vp_buffer out = {0};

	if (is_json)
		cmd_sched_put_json(sched, notes, &out);
	else if (!is_text)
		cmd_sched_put_csv(sched, &out);
	else if (!sched->table)
		put_head(sched, &out);
	if (is_text)
		cmd_sched_put_text(sched, &out);
	struct vp_error *error = is_text ? vp_verb_print_text(&out, false) : vp_verb_print(&out);
	vp_buffer_deinit(&out);
	if (!error && !is_json)
		vp_event_notes_say(verb.name, notes);
	if (!error && sched->left_out)
		vp_verb_say(verb.name, "too many threads: some are left out");
	return error;
}

static struct vp_error *sched_with(void *context)
{
	struct sched *sched = context;
	vp_sentences notes = {0};

	VP_TRY(cmd_sched_choose_all(sched));
	struct vp_error *error = vp_event_options_each(&sched->which, read_part, sched, &notes);
	vp_event_notes_say(verb.name, &sched->guest_notes);
	finish_tables(sched);
	if (!error)
		error = cmd_sched_print(sched, &notes);
	vp_event_notes_deinit(&notes);
	return error;
}

static int run_sched(int argc, char **argv)
{
	struct sched sched = {.worst = WORST};
	const struct vp_option options[] = {
	    VP_EVENT_OPTIONS(&sched.which),
	    VP_CLOCK_OPTION(&sched.which),
	    {0, "table", VP_OPTION_TEXT, &sched.table, "TABLE",
	     "only vcpus, threads, waits, worst, or with guest events guests, wakeups, "
	     "worst-wakeups (default: all; threads for csv)"},
	    {0, "worst", VP_OPTION_COUNT, &sched.worst, "N",
	     "how many of the longest waits and wakeups to list (default: 10)"},
	    VP_FORMAT_OPTIONS(&sched.words, "json", "csv", "text, json or csv"),
	    {'v', "verbose", VP_OPTION_FLAG, &sched.verbose, NULL,
	     "show all columns, whatever the width of the terminal"},
	    {0, "limit", VP_OPTION_COUNT, &sched.limit, "N",
	     "print only the first N rows of a table"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &sched.which.operands, sched_with, &sched);

	vp_event_options_deinit(&sched.which);
	vp_event_notes_deinit(&sched.guest_notes);
	vp_buffer_deinit(&sched.about);
	free(sched.longest.directory);
	for (int i = 0; i < TABLES; i++)
		vp_table_join_deinit(&sched.tables[i]);
	return status;
}

static const struct vp_verb verb = {
    .name = "sched",
    .usage = "[--vm NAME] [--table TABLE] [OPTION]... [DIR]",
    .summary = "guest thread scheduling: run time, wait time, and who caused the waits",
    .run = run_sched,
};
