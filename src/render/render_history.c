/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/clock_text.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "render/render_table.h"
#include "schema/vm.h"
#include "store/retention.h"

/* Shorter gaps are not printed. */
#define LEAST_GAP_NS 1000000

typedef VP_VEC(char *) history_texts;

static const char *history_keep(history_texts *texts, char *text)
{
	vp_vec_push(texts, text);
	return text;
}

static char *rfc3339(uint64_t realtime)
{
	const struct vp_clock_text clock = {.form = VP_CLOCK_FORM_RFC3339};
	char text[VP_CLOCK_TEXT_SIZE];

	return vp_strdup(vp_clock_text(&clock, realtime, text));
}

static char *date_of(uint64_t realtime)
{
	char text[VP_TEXT_DATE_SIZE];

	return vp_strdup(vp_text_date(realtime, text));
}

static char *size_text(uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double size = (double)bytes;
	size_t unit = 0;

	for (; size >= 1024 && unit + 1 < VP_ARRAY_SIZE(units); unit++)
		size /= 1024;
	return vp_format("%.*f %s", unit && size < 100 ? 1 : 0, size, units[unit]);
}

/* Length of the gap before a recording, ns; 0: no gap, or the first recording. */
static uint64_t gap_before(const vp_history *history, size_t index)
{
	const struct vp_kept *kept = &history->at[index];
	const struct vp_kept *before = kept->kind == VP_KEPT_RECORDING && !kept->problem
					   ? vp_history_before(history, index)
					   : NULL;
	int64_t gap = before ? vp_kept_gap(before, kept) : 0;

	return gap > 0 ? (uint64_t)gap : 0;
}

/* How far the clock was set before a recording, ns; 0: not, or the first recording. */
static int64_t jump_before(const vp_history *history, size_t index)
{
	const struct vp_kept *kept = &history->at[index];
	const struct vp_kept *before = kept->kind == VP_KEPT_RECORDING && !kept->problem
					   ? vp_history_before(history, index)
					   : NULL;

	return before ? vp_kept_jump(before, kept) : 0;
}

static void add_note(struct vp_buffer *notes, const char *note)
{
	vp_buffer_printf(notes, "%s%s", notes->size ? ", " : "", note);
}

static char *note_of(const vp_history *history, size_t index)
{
	const struct vp_kept *kept = &history->at[index];
	uint64_t gap = gap_before(history, index);
	int64_t jump = jump_before(history, index);
	char text[VP_DURATION_SIZE];
	struct vp_buffer notes = {0};

	if (kept->problem)
		return vp_text_cleaned(kept->problem);
	if (kept->is_open || kept->is_interrupted)
		add_note(&notes, kept->is_open ? "open" : "interrupted");
	if (gap >= LEAST_GAP_NS) {
		VP_AUTO_FREE char *note = vp_format("nothing recorded in the %s before",
						    vp_text_long_duration(gap, text));
		add_note(&notes, note);
	}
	if (jump) {
		uint64_t ns = jump < 0 ? -(uint64_t)jump : (uint64_t)jump;
		VP_AUTO_FREE char *note =
		    vp_format("clock set %s by %s, or host asleep", jump < 0 ? "back" : "forward",
			      vp_text_long_duration(ns, text));
		add_note(&notes, note);
	}
	char *ret = vp_strdup(vp_buffer_text(&notes));
	vp_buffer_deinit(&notes);
	return ret;
}

static char *duration_of(const struct vp_kept *kept)
{
	char text[VP_DURATION_SIZE];

	return vp_strdup(kept->problem ? "-"
				       : vp_text_long_duration(kept->end - kept->start, text));
}

static void put_recordings(const struct vp_listed_store *store, size_t width, bool colour,
			   history_texts *kept_texts, struct vp_buffer *out)
{
	/* The name has the start in UTC. */
	static const char *const least[] = {"start", "kind", "size", "vms", NULL};
	struct vp_table table = {0};

	vp_table_column_add(&table, "name", "NAME", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "kind", "KIND", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "start", "START", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "duration", "DURATION", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "vms", "VMS", "", VP_CELL_COUNT);
	vp_table_column_add(&table, "size", "SIZE", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "note", "NOTE", "", VP_CELL_TEXT);
	for (size_t i = 0; i < store->history.count; i++) {
		const struct vp_kept *kept = &store->history.at[i];
		uint64_t start = vp_kept_start(kept);
		vp_table_text(&table, kept->name);
		vp_table_text(&table, vp_kept_kind_name(kept->kind));
		vp_table_text(&table, start ? history_keep(kept_texts, date_of(start)) : "");
		vp_table_text(&table, history_keep(kept_texts, duration_of(kept)));
		vp_table_count(&table, kept->problem ? VP_CELL_NO_COUNT : kept->vms.count);
		vp_table_text(&table, history_keep(kept_texts, size_text(kept->bytes)));
		vp_table_text(&table, history_keep(kept_texts, note_of(&store->history, i)));
	}
	table.least = least;
	table.whole = "--json has all";
	vp_render_table_fitted(&table, width, colour, out);
	vp_table_deinit(&table);
}

static void put_findings(const struct vp_listed_store *store, struct vp_buffer *out)
{
	vp_vec_each (&store->findings, finding) {
		VP_AUTO_FREE char *date = date_of(finding->time);
		const char *trace = finding->texts[VP_KEPT_TRACE],
			   *profile = finding->texts[VP_KEPT_PROFILE];
		vp_buffer_printf(out, "%s  %s: %s\n", date, finding->texts[VP_KEPT_RULE],
				 finding->texts[VP_KEPT_SENTENCE]);
		vp_buffer_printf(out, "   recording: %s\n", finding->texts[VP_KEPT_IN]);
		if (trace[0])
			vp_buffer_printf(out, "   snapshot:  %s\n", trace);
		if (profile[0])
			vp_buffer_printf(out, "   samples:   %s\n", profile);
	}
}

void vp_render_history_text(const struct vp_listed_store *store, size_t width, bool colour,
			    struct vp_buffer *out)
{
	history_texts kept_texts = {0};
	VP_AUTO_FREE char *size = size_text(vp_history_bytes(&store->history));
	VP_AUTO_FREE char *path = vp_text_cleaned(store->path);

	vp_buffer_printf(out, "store %s: %s\n\n", path, size);
	if (store->history.count)
		put_recordings(store, width, colour, &kept_texts, out);
	else
		vp_buffer_string(out, "no recordings\n");
	if (store->findings.count) {
		vp_buffer_string(out, "\nFindings\n");
		put_findings(store, out);
	}
	if (store->bad_findings)
		vp_buffer_printf(
		    out, "%" PRIu64 " lines of '%s/" VP_HISTORY_FINDINGS "' cannot be read\n",
		    store->bad_findings, path);
	vp_vec_each (&kept_texts, text)
		free(*text);
	vp_vec_deinit(&kept_texts);
}

static void put_time(struct vp_json *json, const char *key, uint64_t realtime)
{
	VP_AUTO_FREE char *text = rfc3339(realtime);

	vp_json_text(json, key, realtime ? text : NULL);
}

static void put_json_recording(const vp_history *history, size_t index, struct vp_json *json)
{
	const struct vp_kept *kept = &history->at[index];
	uint64_t gap = gap_before(history, index);

	vp_json_line(json);
	vp_json_object(json, NULL);
	vp_json_text(json, "name", kept->name);
	vp_json_text(json, "kind", vp_kept_kind_name(kept->kind));
	put_time(json, "start", vp_kept_start(kept));
	put_time(json, "end", kept->problem ? 0 : vp_kept_end(kept));
	vp_json_bool(json, "open", kept->is_open);
	vp_json_bool(json, "interrupted", kept->is_interrupted);
	vp_json_count(json, "bytes", kept->bytes);
	vp_json_count(json, "gap_ns", gap);
	VP_AUTO_FREE char *jump = vp_format("%" PRId64, jump_before(history, index));
	vp_json_raw(json, "clock_set_ns", jump);
	vp_json_text(json, "problem", kept->problem);
	vp_json_array(json, "vms");
	vp_vec_each (&kept->vms, vm)
		vp_json_text(json, NULL, vm->name);
	vp_json_array_end(json);
	vp_json_object_end(json);
}

static void put_json_finding(const struct vp_kept_finding *finding, struct vp_json *json)
{
	static const char *const keys[VP_KEPT_TEXTS] = {
	    [VP_KEPT_RULE] = "rule",       [VP_KEPT_VM] = "vm",        [VP_KEPT_UUID] = "uuid",
	    [VP_KEPT_WHO] = "top_cause",   [VP_KEPT_IN] = "recording", [VP_KEPT_TRACE] = "snapshot",
	    [VP_KEPT_PROFILE] = "samples", [VP_KEPT_SENTENCE] = "text"};

	vp_json_line(json);
	vp_json_object(json, NULL);
	put_time(json, "time", finding->time);
	vp_json_number(json, "percent", (double)finding->permyriad / 100);
	for (size_t i = 0; i < VP_KEPT_TEXTS; i++)
		vp_json_text(json, keys[i], finding->texts[i][0] ? finding->texts[i] : NULL);
	vp_json_object_end(json);
}

void vp_render_history_json(const struct vp_listed_store *store, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_text(&json, "store", store->path);
	vp_json_count(&json, "bytes", vp_history_bytes(&store->history));
	vp_json_line(&json);
	vp_json_array(&json, "recordings");
	for (size_t i = 0; i < store->history.count; i++)
		put_json_recording(&store->history, i, &json);
	vp_json_array_end(&json);
	vp_json_line(&json);
	vp_json_array(&json, "findings");
	vp_vec_each (&store->findings, finding)
		put_json_finding(finding, &json);
	vp_json_array_end(&json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}
