/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/page.h"

#include "base/json.h"
#include "base/vec.h"
#include "render/page_frame.h"
#include "render/page_parts.h"
#include "render/render_diagnose.h"
#include "store/recording.h"

#define VP_SECOND 1000000000ULL

static const char *cell_type(enum vp_cell_type type)
{
	static const char *const names[] = {[VP_CELL_TEXT] = "text",
					    [VP_CELL_COUNT] = "count",
					    [VP_CELL_DURATION] = "duration",
					    [VP_CELL_TIME] = "time",
					    [VP_CELL_PERCENT] = "percent"};

	return names[type];
}

static void put_columns(const struct vp_table *table, struct vp_json *json)
{
	vp_json_array(json, "columns");
	vp_vec_each (&table->columns, column) {
		vp_json_object(json, NULL);
		vp_json_text(json, "key", column->key);
		vp_json_text(json, "header", column->header);
		vp_json_text(json, "type", cell_type(column->type));
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

static void page_put_cell(const struct vp_table_column *column, const union vp_cell *cell,
			  struct vp_json *json)
{
	if (column->type == VP_CELL_TEXT)
		vp_json_text(json, NULL, cell->text);
	else if (column->type == VP_CELL_PERCENT)
		vp_json_number(json, NULL, cell->percent);
	else if (cell->count == VP_CELL_NO_COUNT)
		vp_json_null(json, NULL);
	else
		vp_json_count(json, NULL, cell->count);
}

static void page_put_table(const struct vp_page_table *table, struct vp_json *json)
{
	struct vp_table shown;

	vp_table_without_old(&table->table, &shown);
	size_t columns = shown.columns.count;
	vp_json_line(json);
	vp_json_object(json, table->key);
	vp_json_text(json, "title", table->title);
	vp_json_count(json, "leftOut", table->left_out);
	put_columns(&shown, json);
	vp_json_array(json, "rows");
	for (size_t row = 0; row < vp_table_rows(&shown); row++) {
		vp_json_array(json, NULL);
		for (size_t i = 0; i < columns; i++)
			page_put_cell(&shown.columns.at[i], &shown.cells.at[row * columns + i],
				      json);
		vp_json_array_end(json);
	}
	vp_json_array_end(json);
	vp_json_object_end(json);
	vp_table_deinit(&shown);
}

static void page_put_about(const struct vp_page *page, struct vp_json *json)
{
	const struct vp_report *report = page->report;
	const struct vp_recording *recording = &report->recording;

	vp_json_text(json, "vperf", VPERF_VERSION);
	vp_json_text(json, "path", report->path);
	vp_json_text(json, "hostname", recording->hostname);
	vp_json_text(json, "kernel", recording->kernel);
	vp_json_text(json, "instruments", recording->instruments);
	vp_json_text(json, "command", recording->command);
	vp_json_text(json, "note", recording->note);
	vp_json_text(json, "trigger", recording->trigger);
	vp_json_count(json, "periodNs", recording->period_ns);
	vp_json_count(json, "pcpus", recording->pcpus);
	vp_json_count(json, "startNs", recording->start);
	vp_json_number(json, "durationS", report->duration);
	if (recording->realtime_offset) {
		/* As two numbers, because JavaScript numbers have only 53 bits. */
		uint64_t begin = recording->start + (uint64_t)recording->realtime_offset;
		vp_json_count(json, "startRealtimeS", begin / VP_SECOND);
		vp_json_count(json, "startRealtimeNs", begin % VP_SECOND);
	} else {
		vp_json_null(json, "startRealtimeS");
		vp_json_count(json, "startRealtimeNs", 0);
	}
	vp_json_array(json, "vms");
	vp_vec_each (&report->vms, vm)
		vp_json_text(json, NULL, vm->name);
	vp_json_array_end(json);
	vp_json_array(json, "notes");
	vp_vec_each (page->notes, note)
		vp_json_text(json, NULL, *note);
	vp_json_array_end(json);
}

static void page_put_data(const struct vp_page *page, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_object(&json, NULL);
	page_put_about(page, &json);
	vp_json_object(&json, "tables");
	for (size_t i = 0; i < page->n_tables; i++)
		page_put_table(&page->tables[i], &json);
	vp_json_object_end(&json);
	if (page->diagnosis)
		vp_render_diagnosis_json(page->diagnosis, page->account, &json);
	if (page->report->profile.counts.ticks)
		vp_page_put_profile(page->report, "profile", &json);
	if (page->before)
		vp_page_put_profile(page->before, "before", &json);
	if (page->tracks)
		vp_page_put_tracks(page->tracks, page->report, &json);
	if (page->intervals)
		vp_page_put_intervals(page->intervals, &json);
	vp_json_object_end(&json);
}

/* In a script element, only '<' can start other markup; in JSON it occurs only in strings. */
static void page_put_escaped(const struct vp_buffer *data, struct vp_buffer *out)
{
	const char *at = data->bytes, *end = data->bytes + data->size;

	while (at < end) {
		const char *less = memchr(at, '<', (size_t)(end - at));
		vp_buffer_append(out, at, (size_t)((less ? less : end) - at));
		if (less)
			vp_buffer_string(out, "\\u003c");
		at = less ? less + 1 : end;
	}
}

void vp_render_page(const struct vp_page *page, struct vp_buffer *out)
{
	const struct vp_page_frame *frame = vp_page_frame();
	struct vp_buffer data = {0};

	page_put_data(page, &data);
	vp_buffer_append(out, frame->head, frame->head_size);
	page_put_escaped(&data, out);
	vp_buffer_append(out, frame->tail, frame->tail_size);
	vp_buffer_deinit(&data);
}
