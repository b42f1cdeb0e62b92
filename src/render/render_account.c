/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_account.h"

#include <inttypes.h>

#include "analyze/account/account.h"
#include "analyze/account/account_window.h"
#include "analyze/common/window.h"
#include "base/buffer.h"
#include "base/text.h"
#include "base/vec.h"

void vp_render_account_head(const struct vp_account_recording *rec, const char *verb,
			    struct vp_buffer *out)
{
	char date[VP_TEXT_DATE_SIZE];

	vp_buffer_printf(out, "# vperf %s of '%s'\n# host %s, kernel %s, %u pCPU%s, %.3f s", verb,
			 rec->path, rec->recording.hostname, rec->recording.kernel,
			 rec->recording.pcpus, rec->recording.pcpus == 1 ? "" : "s", rec->duration);
	uint64_t start = rec->recording.start;
	if (!vp_window_is_all(&rec->window)) {
		vp_buffer_printf(out, " (--time, %s)",
				 rec->exact ? "exact"
				 : vp_account_window_has_events(&rec->account.window)
				     ? "cut by events"
				     : "divided at its borders");
		start = rec->window.from;
	}
	if (rec->recording.realtime_offset)
		vp_buffer_printf(
		    out, " from %s",
		    vp_text_date(start + (uint64_t)rec->recording.realtime_offset, date));
	vp_buffer_string(out, "\n");
	vp_vec_each (&rec->notes, note)
		vp_buffer_printf(out, "# %s\n", *note);
	vp_buffer_string(out, "\n");
}

void vp_render_checks(const struct vp_account_checks *checks, struct vp_buffer *out)
{
	vp_buffer_printf(out, "Check: states sum to wall time within %.4f%% (limit 0.1%%): %s",
			 checks->worst_gap, checks->closes ? "ok" : "NOT OK");
	if (checks->sampled)
		vp_buffer_printf(
		    out, "; sampled guest time differs by %.2f percentage points (bound: %.2f): %s",
		    checks->worst_sample, checks->sample_error,
		    checks->samples_agree ? "ok" : "NOT OK");
	vp_buffer_printf(out,
			 "; exits with a reason: %" PRIu64 " of %" PRIu64
			 ": %s; parts of exit times sum to the total: %s; events of vCPUs without "
			 "an account: %" PRIu64 ": %s\n",
			 checks->exits_by_reason, checks->exits,
			 checks->exits_agree ? "ok" : "NOT OK", checks->parts_sum ? "ok" : "NOT OK",
			 checks->lost_events, checks->all_counted ? "ok" : "NOT OK");
}

static void put_json_cell(const struct vp_table_column *column, const union vp_cell *cell,
			  struct vp_json *json)
{
	if (column->type == VP_CELL_TEXT)
		vp_json_text(json, column->key, cell->text);
	else if (column->type == VP_CELL_PERCENT)
		vp_json_double(json, column->key, cell->percent);
	else if (cell->count == VP_CELL_NO_COUNT)
		vp_json_null(json, column->key);
	else
		vp_json_count(json, column->key, cell->count);
}

void vp_render_table_json(const struct vp_table *table, const char *key, struct vp_json *json)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table);

	if (key)
		vp_json_line(json);
	vp_json_pretty(json, true);
	vp_json_array(json, key);
	for (size_t row = 0; row < rows; row++) {
		vp_json_object(json, NULL);
		for (size_t i = 0; i < columns; i++)
			put_json_cell(&table->columns.at[i], &table->cells.at[row * columns + i],
				      json);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
	vp_json_pretty(json, false);
}

static void put_checks(const struct vp_account_checks *checks, struct vp_json *json)
{
	vp_json_double(json, "states_off_percent", checks->worst_gap);
	vp_json_bool(json, "states_close", checks->closes);
	if (checks->sampled) {
		vp_json_double(json, "samples_off_points", checks->worst_sample);
		vp_json_double(json, "samples_error_points", checks->sample_error);
		vp_json_bool(json, "samples_agree", checks->samples_agree);
	}
	vp_json_count(json, "exits", checks->exits);
	vp_json_count(json, "exits_by_reason", checks->exits_by_reason);
	vp_json_bool(json, "exits_agree", checks->exits_agree);
	vp_json_bool(json, "parts_sum", checks->parts_sum);
	vp_json_count(json, "events_without_account", checks->lost_events);
	vp_json_bool(json, "all_have_accounts", checks->all_counted);
}

static void account_put_window(const struct vp_account_recording *rec, struct vp_json *json)
{
	const struct vp_account_window *window = &rec->account.window;

	vp_json_line(json);
	vp_json_object(json, "window");
	vp_json_count(json, "start_ns", rec->window.from);
	vp_json_count(json, "end_ns", rec->window.to);
	vp_json_bool(json, "exact", rec->exact);
	vp_json_count(json, "state_error_ns", window->state_error);
	vp_json_count(json, "thief_error_ns", window->theft_error);
	vp_json_count(json, "exit_error_ns", window->exit_error);
	vp_json_count(json, "count_error", window->count_error);
	vp_json_object_end(json);
}

void vp_render_account_json(const struct vp_account_recording *rec, struct vp_json *json)
{
	vp_json_line(json);
	vp_json_text(json, "path", rec->path);
	vp_json_line(json);
	vp_json_fixed(json, "duration_s", rec->duration, 9);
	if (!vp_window_is_all(&rec->window))
		account_put_window(rec, json);
	vp_json_line(json);
	vp_json_pretty(json, true);
	vp_json_object(json, "checks");
	put_checks(&rec->checks, json);
	vp_json_object_end(json);
	vp_json_pretty(json, false);
	vp_json_line(json);
	vp_json_pretty(json, true);
	vp_json_array(json, "notes");
	vp_vec_each (&rec->notes, note)
		vp_json_text(json, NULL, *note);
	vp_json_array_end(json);
	vp_json_pretty(json, false);
}
