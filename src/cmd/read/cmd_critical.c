/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf critical: the critical path of a guest thread through all layers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/common/health.h"
#include "analyze/common/table.h"
#include "analyze/common/table_join.h"
#include "analyze/trace/critical.h"
#include "analyze/trace/threads.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/event_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_account.h"
#include "render/render_table.h"

static const struct vp_verb verb;

enum table { BLAME, CHAIN, TABLES };
static const char *const table_names[TABLES] = {"blame", "chain"};
static const char *const titles[TABLES] = {"Causes", "Critical path"};

const struct vp_verb *vp_verb_critical(void)
{
	return &verb;
}

struct critical {
	struct vp_event_options which;
	struct vp_format_words words;
	uint64_t limit; /* rows of each table; 0: all */
	const char *thread, *format, *table;
	bool verbose, shown[TABLES];
	/* Sums of all recordings that are read; the thread is that of the first one. */
	struct vp_table_join tables[TABLES];
	uint32_t tid;
	char *comm;
	uint64_t from, to;
};

/* How the tables of several recordings are joined. */
static const struct vp_table_join_rules rules[TABLES] = {
    [BLAME] = {.keys = VP_TABLE_KEYS("cause", "machine", "thread", "detail"),
	       .percent = "percent",
	       .part = "ns",
	       .order = VP_TABLE_KEYS("ns")},
};

static struct vp_error *cmd_critical_choose_all(struct critical *critical)
{
	size_t table = 0;

	VP_TRY(vp_choose_table_format(&critical->words, &critical->format));
	if (critical->table)
		VP_TRY(vp_choose("table", critical->table, table_names, TABLES, &table));
	for (size_t i = 0; i < TABLES; i++)
		critical->shown[i] = !critical->table || i == table;
	if (!critical->table && !strcmp(critical->format, "csv"))
		critical->shown[CHAIN] = false;
	critical->which.joins = true;
	critical->which.store.reads = VP_STORE_EVENTS;
	VP_TRY(vp_event_options_check(&critical->which));
	if (!critical->which.vm || !critical->thread)
		return vp_error_usage("expected --vm NAME and --thread TID or NAME");
	return strchr(critical->which.vm, '\n')
		   ? vp_error_usage("option --vm: expected one VM: a thread belongs to one")
		   : NULL;
}

static void cmd_critical_put_json(const struct critical *critical, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_line(&json);
	vp_json_text(&json, "vm", critical->which.vm);
	vp_json_count(&json, "tid", critical->tid);
	vp_json_text(&json, "comm", critical->comm);
	vp_json_count(&json, "from_ns", critical->from);
	vp_json_count(&json, "to_ns", critical->to);
	for (int i = 0; i < TABLES; i++)
		if (critical->shown[i])
			vp_render_table_json(&critical->tables[i].table, table_names[i], &json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static void cmd_critical_put_text(const struct critical *critical, struct vp_buffer *out)
{
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	for (int i = 0; i < TABLES; i++) {
		if (!critical->shown[i])
			continue;
		vp_buffer_printf(out, "%s# %s\n", out->size ? "\n" : "", titles[i]);
		vp_render_table_fitted(&critical->tables[i].table,
				       critical->verbose ? 0 : vp_terminal_width(), colour, out);
	}
}

static struct vp_error *cmd_critical_print(struct critical *critical)
{
	struct vp_buffer out = {0};

	for (int i = 0; i < TABLES; i++) {
		vp_table_join_finish(&critical->tables[i], &rules[i]);
		vp_table_limit(&critical->tables[i].table, critical->limit);
	}
	if (!strcmp(critical->format, "json"))
		cmd_critical_put_json(critical, &out);
	else if (!strcmp(critical->format, "text"))
		cmd_critical_put_text(critical, &out);
	for (int i = 0; !strcmp(critical->format, "csv") && i < TABLES; i++)
		if (critical->shown[i])
			vp_render_table_csv(&critical->tables[i].table, true, &out);
	struct vp_error *error = vp_verb_print(&out);
	vp_buffer_deinit(&out);
	return error;
}

static void take_tables(struct critical *critical, struct vp_critical *path)
{
	struct vp_table tables[TABLES] = {0};

	path->clock = critical->which.clock;
	vp_critical_blame_table(path, &tables[BLAME]);
	vp_critical_chain_table(path, &tables[CHAIN]);
	for (int i = 0; i < TABLES; i++) {
		vp_table_join_add(&critical->tables[i], &rules[i], &tables[i]);
		vp_table_deinit(&tables[i]);
	}
	if (!critical->to) {
		critical->tid = path->thread->tid;
		critical->comm = path->thread->comm ? vp_strdup(path->thread->comm) : NULL;
		critical->from = path->from;
	}
	critical->to = path->to;
}

static struct vp_error *take_path(struct critical *critical, struct vp_threads *threads)
{
	const struct vp_thread *thread;
	struct vp_critical path;

	VP_TRY(vp_critical_choose(threads, critical->which.vm, critical->thread, &thread));
	struct vp_error *error = vp_critical_find(threads, thread, &path);
	if (!error)
		take_tables(critical, &path);
	vp_critical_deinit(&path);
	return error;
}

static struct vp_error *read_part(void *context, vp_sentences *notes)
{
	struct critical *critical = context;
	const struct vp_threads_options options = {.from = critical->which.from,
						   .to = critical->which.to,
						   .vm = critical->which.vm,
						   .others = true};
	struct vp_threads threads;

	VP_TRY(vp_threads_open(critical->which.directory, &options, &threads));
	struct vp_error *error = take_path(critical, &threads);
	if (!error) {
		vp_event_notes_add(notes, &threads.notes);
		vp_event_notes_add(notes, &vp_tracks_feed(threads.tracks)->notes);
	}
	vp_threads_deinit(&threads);
	return error;
}

static struct vp_error *critical_with(void *context)
{
	struct critical *critical = context;
	vp_sentences notes = {0};

	VP_TRY(cmd_critical_choose_all(critical));
	struct vp_error *error =
	    vp_event_options_each(&critical->which, read_part, critical, &notes);
	if (!error)
		error = cmd_critical_print(critical);
	if (!error)
		vp_event_notes_say(verb.name, &notes);
	vp_event_notes_deinit(&notes);
	return error;
}

static int run_critical(int argc, char **argv)
{
	struct critical critical = {0};
	const struct vp_option options[] = {
	    VP_EVENT_OPTIONS_OF_ALL_PCPUS(&critical.which),
	    VP_CLOCK_OPTION(&critical.which),
	    {0, "thread", VP_OPTION_TEXT, &critical.thread, "TID|NAME",
	     "guest thread: TID in the guest, or name"},
	    {0, "table", VP_OPTION_TEXT, &critical.table, "TABLE",
	     "only blame or chain (default: both; blame for csv)"},
	    VP_FORMAT_OPTIONS(&critical.words, "json", "csv", "text, json or csv"),
	    {'v', "verbose", VP_OPTION_FLAG, &critical.verbose, NULL,
	     "show all columns, whatever the width of the terminal"},
	    {0, "limit", VP_OPTION_COUNT, &critical.limit, "N",
	     "print only the first N rows of a table"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &critical.which.operands, critical_with, &critical);

	vp_event_options_deinit(&critical.which);
	free(critical.comm);
	for (int i = 0; i < TABLES; i++)
		vp_table_join_deinit(&critical.tables[i]);
	return status;
}

static const struct vp_verb verb = {
    .name = "critical",
    .usage = "--vm NAME --thread TID|NAME [--time FROM,TO] [OPTION]... [DIR]",
    .summary = "critical path of a guest thread through guest, hypervisor and host",
    .run = run_critical,
};
