/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/top_functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "analyze/report/report.h"
#include "analyze/report/report_make.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_account.h"
#include "render/render_report.h"
#include "render/render_table.h"
#include "schema/snapshot_cause.h"
#include "session/instrument.h"
#include "session/instrument_profile.h"
#include "session/session.h"

/* The session keeps samples in memory. Each update dumps them, with symbol maps, as a snapshot,
 * which is then read like a recording by 'vperf report'. */

/* Memory for samples, per pCPU and second; a sample takes less than 200 bytes. */
enum { BYTES_OF_SECOND = 1 << 18, MIN_BYTES = 1 << 24, STEP_MS = 200, HEAD_LINES = 4 };
enum { BUFFER_PAGES = 512 };

struct functions {
	const struct vp_top_functions_options *options;
	struct vp_session *session;
	char *folder, *place; /* of snapshots */
	uint64_t begin, now;  /* of the interval, CLOCK_MONOTONIC, ns */
	uint64_t lines;       /* number of CSV updates */
	bool on_terminal, quit;
	VP_VEC(char *) notices;
};

static void top_functions_put_json(const struct functions *functions,
				   const struct vp_report *result, const struct vp_table *table,
				   struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_fixed(&json, "seconds", (double)(functions->now - functions->begin) / 1e9, 9);
	vp_json_count(&json, "samples", result->profile.counts.ticks);
	vp_json_count(&json, "lost", result->lost);
	vp_render_table_json(table, functions->options->by_process ? "processes" : "functions",
			     &json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

/* Prints rows, each with the end time of the interval. */
static void top_functions_put_csv(struct functions *functions, const struct vp_table *table,
				  struct vp_buffer *out)
{
	size_t columns = table->columns.count;
	uint64_t now = vp_clock_read().realtime;
	struct vp_table timed = {0};

	vp_table_column_add(&timed, "time_ns", "Time", "ns", VP_CELL_TIME);
	vp_vec_each (&table->columns, column)
		vp_vec_push(&timed.columns, *column);
	for (size_t i = 0; i < table->cells.count; i++) {
		if (i % columns == 0)
			vp_table_count(&timed, now);
		vp_vec_push(&timed.cells, table->cells.at[i]);
	}
	vp_render_table_csv(&timed, !functions->lines++, out);
	vp_table_deinit(&timed);
}

static void top_functions_put_text(const struct functions *functions,
				   const struct vp_report *result,
				   const struct vp_profile_part *part, const struct vp_table *table,
				   struct vp_buffer *out)
{
	bool colour = functions->on_terminal && !getenv("NO_COLOR");

	vp_buffer_printf(out, "vperf top: %" PRIu64 " samples of %s, %.3f s, %" PRIu64 " lost%s\n",
			 result->profile.counts.ticks, result->recording.trigger,
			 (double)(functions->now - functions->begin) / 1e9, result->lost,
			 vp_terminal_has_keys() && functions->on_terminal ? " (q: quit)" : "");
	vp_render_report_shares(result, part, out);
	vp_render_table_text(table, colour, out);
	vp_buffer_string(out, "\n");
}

/* The number of rows given by the user, or as many as fit on the screen. */
static uint64_t rows_to_show(const struct functions *functions)
{
	uint32_t height = vp_terminal_size().height;

	if (functions->options->limit || !functions->on_terminal)
		return functions->options->limit;
	return height > HEAD_LINES + 1 ? height - HEAD_LINES - 1 : 1;
}

/* Truncates rows instead of wrapping them. */
static void show_cut(const struct vp_buffer *lines, struct vp_buffer *out)
{
	vp_buffer_string(out, "\033[?7l");
	vp_terminal_show(lines, out);
	vp_buffer_string(out, "\033[?7h");
}

static struct vp_error *top_functions_print(struct functions *functions, struct vp_report *result)
{
	const struct vp_profile_part *part = &result->profile.parts.at[0];
	struct vp_buffer text = {0}, out = {0};
	struct vp_table table = {0};

	result->limit = rows_to_show(functions);
	vp_report_table(result, part, &table);
	if (functions->options->json)
		top_functions_put_json(functions, result, &table, &text);
	else if (functions->options->csv)
		top_functions_put_csv(functions, &table, &text);
	else
		top_functions_put_text(functions, result, part, &table, &text);
	if (functions->on_terminal)
		show_cut(&text, &out);
	struct vp_error *error = vp_verb_print(functions->on_terminal ? &out : &text);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
	return error;
}

static struct vp_error *report_on(struct functions *functions, const char *directory)
{
	const struct vp_top_functions_options *options = functions->options;
	const struct vp_naming_options naming = {.directory = directory};
	const struct vp_profile_options profile = {
	    .view = VP_VIEW_UNIFIED,
	    .vm = options->vm,
	    .from = functions->begin,
	    .to = functions->now,
	    .columns = options->by_process ? VP_COLUMN_VM | VP_COLUMN_PROCESS : 0,
	    .jobs = 1};
	struct vp_report result;

	VP_TRY(vp_report_make(&naming, &profile, &result));
	struct vp_error *error = top_functions_print(functions, &result);
	vp_report_deinit(&result);
	return error;
}

static void take_notices(struct functions *functions)
{
	for (char *notice; (notice = vp_session_take_notice(functions->session));)
		vp_vec_push(&functions->notices, notice);
}

static struct vp_error *top_functions_update(struct functions *functions)
{
	const struct vp_snapshot_cause cause = {.kind = VP_CAUSE_SIGNAL};
	VP_AUTO_FREE char *directory = NULL;

	functions->now = vp_clock_monotonic();
	VP_TRY(vp_session_snapshot(functions->session, &cause, &directory));
	struct vp_error *error = report_on(functions, directory);
	vp_file_remove_all(directory);
	functions->begin = functions->now;
	take_notices(functions);
	return error;
}

static void top_functions_take_keys(struct functions *functions)
{
	char bytes[64];
	size_t count = vp_terminal_has_keys() ? vp_terminal_read(0, bytes, sizeof(bytes)) : 0;

	for (size_t i = 0; i < count; i++)
		functions->quit |= bytes[i] == 'q' || bytes[i] == 'Q' || bytes[i] == 3;
}

static bool top_functions_ends(const struct functions *functions)
{
	return functions->quit || vp_command_stop_wanted();
}

static struct vp_error *sample_until(struct functions *functions, uint64_t end)
{
	for (uint64_t now; !top_functions_ends(functions) && (now = vp_clock_monotonic()) < end;) {
		uint64_t ms = (end - now) / 1000000 + 1;
		VP_TRY(vp_session_step(functions->session, ms > STEP_MS ? STEP_MS : (int)ms));
		top_functions_take_keys(functions);
	}
	return NULL;
}

static struct vp_error *top_functions_run(struct functions *functions)
{
	const struct vp_top_functions_options *options = functions->options;

	VP_TRY(vp_session_start(functions->session));
	functions->begin = vp_clock_monotonic();
	for (uint64_t i = 0; !options->count || i < options->count; i++) {
		VP_TRY(sample_until(functions, functions->begin + options->delay_ns));
		if (top_functions_ends(functions))
			break;
		VP_TRY(top_functions_update(functions));
	}
	return NULL;
}

static size_t memory_for(uint64_t delay_ns)
{
	size_t seconds = (size_t)(delay_ns / 1000000000) + 2;
	long pcpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t bytes = (size_t)(pcpus > 0 ? pcpus : 1) * seconds * BYTES_OF_SECOND;

	return bytes < MIN_BYTES ? MIN_BYTES : bytes;
}

static struct vp_error *top_functions_with_session(struct functions *functions)
{
	const struct vp_top_functions_options *options = functions->options;
	const struct vp_flight_options flight = {.bytes = memory_for(options->delay_ns)};
	const struct vp_session_options session = {
	    .flight = &flight,
	    .directory = functions->place,
	    .with_symbols = true}; /* files of guests are not on this machine */
	const struct vp_instrument_profile_options profile = {.buffer_pages = BUFFER_PAGES,
							      .read_memory = true};

	functions->session = vp_session_new(&session);
	vp_session_add(functions->session, vp_instrument_profile(&profile));
	struct vp_error *error = vp_session_open(functions->session);
	vp_command_catch_signals();
	functions->on_terminal = !error && !options->json && !options->csv && vp_terminal_begin();
	if (!error && functions->on_terminal && vp_terminal_has_keys())
		vp_session_wake_on(functions->session, STDIN_FILENO);
	if (!error)
		error = top_functions_run(functions);
	vp_terminal_end();
	take_notices(functions);
	vp_session_free(functions->session);
	return error;
}

struct vp_error *vp_top_functions(const struct vp_top_functions_options *options)
{
	const char *where = getenv("TMPDIR");
	struct functions functions = {.options = options};

	functions.folder = vp_format("%s/vperf-top.XXXXXX", where && *where ? where : "/tmp");
	VP_AUTO_FREE char *folder = functions.folder;
	if (!mkdtemp(folder))
		return vp_error_errno(errno, "cannot create '%s'", folder);
	VP_AUTO_FREE char *place = vp_format("%s/top", folder);
	functions.place = place;
	struct vp_error *error = top_functions_with_session(&functions);
	vp_vec_each (&functions.notices, notice) {
		vp_verb_say("top", *notice);
		free(*notice);
	}
	vp_vec_deinit(&functions.notices);
	vp_file_remove_all(folder);
	return error;
}
