/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/account.h"

#include <inttypes.h>
#include <json-c/json.h>

void vp_render_book_head(const struct vp_account_book *book, const char *verb,
			 struct vp_buffer *out)
{
	vp_buffer_printf(out, "# vperf %s of '%s': host %s, kernel %s, %u pCPUs, %.3f s\n", verb,
			 book->path, book->recording.hostname, book->recording.kernel,
			 book->recording.pcpus, book->duration);
	vp_vec_each (&book->notes, note)
		vp_buffer_printf(out, "# %s\n", *note);
	vp_buffer_string(out, "\n");
}

void vp_render_checks(const struct vp_account_checks *checks, struct vp_buffer *out)
{
	vp_buffer_printf(out, "Check: states sum to wall time within %.4f%% (limit 0.1%%): %s",
			 checks->worst_gap, checks->closes ? "ok" : "NOT OK");
	if (checks->sampled)
		vp_buffer_printf(out,
				 "; sampled guest time is off by %.2f points (bound: %.2f): %s",
				 checks->worst_sample, checks->sample_error,
				 checks->samples_agree ? "ok" : "NOT OK");
	vp_buffer_printf(
	    out,
	    "; exits by reason are %" PRIu64 " of %" PRIu64
	    ": %s; parts of exits sum to their total: %s; events of vCPUs that have no "
	    "account are %" PRIu64 ": %s\n",
	    checks->exits_by_reason, checks->exits, checks->exits_agree ? "ok" : "NOT OK",
	    checks->parts_sum ? "ok" : "NOT OK", checks->lost_events,
	    checks->all_placed ? "ok" : "NOT OK");
}

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static struct json_object *cell_json(const struct vp_table_column *column,
				     const struct vp_cell *cell)
{
	switch (column->type) {
	case VP_CELL_TEXT:
		return cell->text ? json_object_new_string(cell->text) : NULL;
	case VP_CELL_COUNT:
		return cell->count == VP_CELL_NO_COUNT ? NULL : json_object_new_uint64(cell->count);
	case VP_CELL_PERCENT:
		return json_object_new_double(cell->percent);
	}
	return NULL;
}

static void put_json(struct json_object *object, struct vp_buffer *out)
{
	vp_buffer_string(out,
			 json_object_to_json_string_ext(
			     object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

void vp_render_table_json(const struct vp_table *table, struct vp_buffer *out)
{
	struct json_object *array = json_object_new_array();
	size_t columns = table->columns.count, rows = vp_table_rows(table);

	for (size_t row = 0; row < rows; row++) {
		struct json_object *object = json_object_new_object();
		for (size_t i = 0; i < columns; i++)
			add(object, table->columns.at[i].key,
			    cell_json(&table->columns.at[i], &table->cells.at[row * columns + i]));
		json_object_array_add(array, object);
	}
	put_json(array, out);
}

static struct json_object *checks_json(const struct vp_account_checks *checks)
{
	struct json_object *object = json_object_new_object();

	add(object, "states_off_percent", json_object_new_double(checks->worst_gap));
	add(object, "states_close", json_object_new_boolean(checks->closes));
	if (checks->sampled) {
		add(object, "samples_off_points", json_object_new_double(checks->worst_sample));
		add(object, "samples_error_points", json_object_new_double(checks->sample_error));
		add(object, "samples_agree", json_object_new_boolean(checks->samples_agree));
	}
	add(object, "exits", json_object_new_uint64(checks->exits));
	add(object, "exits_by_reason", json_object_new_uint64(checks->exits_by_reason));
	add(object, "exits_agree", json_object_new_boolean(checks->exits_agree));
	add(object, "parts_sum", json_object_new_boolean(checks->parts_sum));
	add(object, "events_without_account", json_object_new_uint64(checks->lost_events));
	add(object, "all_have_accounts", json_object_new_boolean(checks->all_placed));
	return object;
}

void vp_render_book_json(const struct vp_account_book *book, struct vp_buffer *out)
{
	struct json_object *notes = json_object_new_array();
	struct json_object *path = json_object_new_string(book->path);

	vp_buffer_string(out, "\"path\": ");
	put_json(path, out);
	vp_buffer_printf(out, ",\n\"duration_s\": %.9f,\n\"checks\": ", book->duration);
	put_json(checks_json(&book->checks), out);
	vp_vec_each (&book->notes, note)
		json_object_array_add(notes, json_object_new_string(*note));
	vp_buffer_string(out, ",\n\"notes\": ");
	put_json(notes, out);
	vp_buffer_string(out, ",\n");
}
