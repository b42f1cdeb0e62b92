/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/model/intervals.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/common/filter.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "schema/interval.h"
#include "store/packet.h"
#include "store/trace_reader.h"

static struct vp_interval_cell *intervals_cells_of(const struct vp_interval_recording *rec,
						   const struct vp_interval_row *row)
{
	return &rec->cells.at[row->cells];
}

static void add_interval_row(struct vp_interval_recording *rec, const struct vp_interval *head,
			     uint32_t pcpu)
{
	vp_vec_push(&rec->rows, ((struct vp_interval_row){
				    .head = *head, .pcpu = pcpu, .cells = rec->cells.count}));
	for (size_t i = 0; i < rec->recipe.events.count; i++)
		vp_vec_push(&rec->cells, ((struct vp_interval_cell){0}));
}

/* A value record belongs to the preceding interval record of its stream. */
static void intervals_take_record(struct vp_interval_recording *rec,
				  const struct vp_record_header *record, uint32_t pcpu,
				  bool *has_row)
{
	const struct vp_interval_value *value = (const void *)record;

	if (record->id == VP_ID_interval) {
		add_interval_row(rec, (const void *)record, pcpu);
		*has_row = true;
	} else if (record->id == VP_ID_interval_value && *has_row &&
		   value->place < rec->recipe.events.count) {
		intervals_cells_of(rec, &rec->rows.at[rec->rows.count - 1])[value->place] =
		    (struct vp_interval_cell){(double)value->value,
					      (double)value->live / VP_LIVE_ALL};
	}
}

static int by_end(const void *a, const void *b)
{
	const struct vp_interval_row *one = a, *other = b;

	return one->head.time < other->head.time ? -1 : one->head.time > other->head.time;
}

static struct vp_error *read_trace(struct vp_interval_recording *rec)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", rec->path);
	const struct vp_record_header *record;
	vp_stream_readers streams = {0};
	struct vp_health health = {.classes = VP_STREAMS(VP_STREAM_INTERVALS)};

	VP_TRY(vp_trace_open(host, health.classes, &streams));
	vp_vec_each (&streams, stream) {
		bool has_row = false;
		while ((record = vp_stream_next(*stream)))
			intervals_take_record(rec, record, vp_stream_cpu(*stream), &has_row);
	}
	vp_health_add(&streams, &health);
	vp_health_sentences(&health, &rec->recording, &rec->notes);
	rec->lost = vp_health_lost(&health, &rec->recording);
	vp_health_deinit(&health);
	vp_trace_close(&streams);
	if (rec->rows.count)
		qsort(rec->rows.at, rec->rows.count, sizeof(*rec->rows.at), by_end);
	return NULL;
}

static struct vp_error *open_interval_streams(struct vp_interval_recording *rec)
{
	VP_AUTO_FREE char *recipe = vp_recording_recipe_path(rec->path);

	VP_TRY(vp_recording_open(rec->path, &rec->recording, &rec->vms, &rec->notes));
	if (!vp_recording_has_intervals(rec->path))
		return vp_error_new("'%s' is not an interval recording: it has no file 'recipe', "
				    "which 'vperf stat' writes",
				    rec->path);
	VP_TRY(vp_recipe_read(recipe, &rec->recipe));
	return read_trace(rec);
}

struct vp_error *vp_interval_recording_open(const char *path, struct vp_interval_recording *ret)
{
	*ret = (struct vp_interval_recording){.path = vp_strdup(path)};
	struct vp_error *error = open_interval_streams(ret);
	if (error)
		vp_interval_recording_close(ret);
	return error;
}

/* Limits a row to the window; `part`: ns of it in the window. */
static void cut_row(struct vp_interval_recording *rec, struct vp_interval_row *row,
		    const struct vp_window *window, uint64_t part)
{
	double share = (double)part / (double)(row->head.time - row->head.begin);

	for (size_t i = 0; i < rec->recipe.events.count; i++)
		rec->cells.at[row->cells + i].value *= share;
	row->head.flags |= VP_INTERVAL_PARTIAL;
	if (row->head.begin < window->from)
		row->head.begin = window->from;
	if (row->head.time > window->to)
		row->head.time = window->to;
}

void vp_interval_recording_cut(struct vp_interval_recording *rec, const struct vp_window *window)
{
	uint64_t all = 0, divided = 0, count = 0;
	size_t kept = 0;

	if (vp_window_is_all(window))
		return;
	vp_vec_each (&rec->rows, row) {
		const struct vp_interval *head = &row->head;
		uint64_t part = vp_window_overlap(window, head->begin, head->time);
		if (!part)
			continue;
		all += part;
		if (part < head->time - head->begin) {
			divided += part;
			count++;
			cut_row(rec, row, window, part);
		}
		rec->rows.at[kept++] = *row;
	}
	rec->rows.count = kept;
	if (count)
		vp_vec_push(&rec->notes,
			    vp_format("%" PRIu64 " intervals were cut by --time and divided in "
				      "proportion: %.2f%% of the time shown",
				      count, 100 * (double)divided / (double)all));
}

void vp_interval_recording_close(struct vp_interval_recording *rec)
{
	vp_recording_deinit(&rec->recording);
	vp_recipe_deinit(&rec->recipe);
	vp_vms_deinit(&rec->vms);
	vp_vec_deinit(&rec->rows);
	vp_vec_deinit(&rec->cells);
	vp_vec_each (&rec->notes, note)
		free(*note);
	vp_vec_deinit(&rec->notes);
	free(rec->path);
	*rec = (struct vp_interval_recording){0};
}

double vp_interval_estimate(const struct vp_interval_cell *cell)
{
	return cell->live > 0 ? cell->value / cell->live : (double)NAN;
}

/* Thread names are untrusted, so they are cleaned. */
static char *task_subject(const struct vp_interval *head)
{
	struct vp_buffer text = {0};

	vp_text_clean(head->comm, strnlen(head->comm, VP_COMM_SIZE), &text);
	char *subject = vp_format("%s/%u", vp_buffer_text(&text), head->tid);
	vp_buffer_deinit(&text);
	return subject;
}

char *vp_interval_subject(const struct vp_interval_recording *rec,
			  const struct vp_interval_row *row)
{
	const struct vp_interval *head = &row->head;
	const struct vp_vm *vm = vp_vms_find(&rec->vms, head->owner);

	if (rec->recipe.per == VP_PER_PCPU)
		return vp_format("pCPU %u", head->vcpu);
	if (rec->recipe.per == VP_PER_TASK)
		return task_subject(head);
	return vm ? vp_format("%s/%u", vm->name, head->vcpu)
		  : vp_format("vm-%u/%u", head->owner, head->vcpu);
}

uint64_t vp_interval_partial(const struct vp_interval_recording *rec)
{
	uint64_t partial = 0;

	vp_vec_each (&rec->rows, row)
		partial += (row->head.flags & VP_INTERVAL_PARTIAL) != 0;
	return partial;
}

struct vp_interval_total vp_interval_total(const struct vp_interval_recording *rec, size_t event)
{
	struct vp_interval_total total = {.min_live = rec->rows.count ? 1 : 0};
	double live_time = 0, time = 0;

	vp_vec_each (&rec->rows, row) {
		const struct vp_interval_cell *cell = &intervals_cells_of(rec, row)[event];
		double length = (double)(row->head.time - row->head.begin);
		total.counted += cell->value;
		if (cell->live > 0)
			total.estimate += vp_interval_estimate(cell);
		if (cell->live < total.min_live)
			total.min_live = cell->live;
		live_time += cell->live * length;
		time += length;
	}
	total.live = time > 0 ? live_time / time : 0;
	return total;
}

/* Whether the event's name without modifiers equals `bare`. */
static bool intervals_is_called(const char *name, const char *bare)
{
	size_t size = strlen(bare);

	return !strncmp(name, bare, size) && (!name[size] || name[size] == ':');
}

const char *vp_interval_usual_base(const struct vp_interval_recording *rec)
{
	vp_vec_each (&rec->recipe.events, event)
		if (intervals_is_called(event->name, "instructions") &&
		    vp_interval_total(rec, (size_t)(event - rec->recipe.events.at)).live > 0)
			return event->name;
	return NULL;
}

static bool intervals_is_of_vm(const struct vp_interval_recording *rec,
			       const struct vp_interval_row *row, const bool *chosen)
{
	const struct vp_vm *vm = chosen ? vp_vms_find(&rec->vms, row->head.owner) : NULL;

	return !chosen || (vm && chosen[vm - rec->vms.at]);
}

/* The divisor of the row's values; 0: the row is excluded. */
static double divisor(const struct vp_interval_recording *rec, const struct vp_interval_row *row,
		      const struct vp_interval_choice *choice, uint32_t base)
{
	if (row->head.flags & VP_INTERVAL_PARTIAL && !choice->partial)
		return 0;
	if (!intervals_is_of_vm(rec, row, choice->chosen))
		return 0;
	if (base == VP_EVENTS_MAX)
		return 1;
	double value = vp_interval_estimate(&intervals_cells_of(rec, row)[base]);
	return value > 0 ? value / choice->per : 0;
}

typedef VP_VEC(double) divisors;

/* Adds the column of an event: each row's value divided by its divisor in `by`, times `times`. */
static void intervals_add_event(struct vp_data *data, const struct vp_interval_recording *rec,
				size_t event, const char *name, const divisors *by, double times)
{
	struct vp_column *column = vp_data_column_add(data, vp_strdup(name), VP_DATA_NUMERIC);
	size_t n = 0;

	column->values = vp_alloc((data->rows + 1) * sizeof(double));
	vp_vec_each (&rec->rows, row) {
		const struct vp_interval_cell *cell = &intervals_cells_of(rec, row)[event];
		double divide = by->at[row - rec->rows.at];
		if (divide > 0)
			column->values[n++] = vp_interval_estimate(cell) / divide * times;
	}
}

/* Adds the column with the share of time in which the event was counted. */
static void add_live(struct vp_data *data, const struct vp_interval_recording *rec, size_t event,
		     const divisors *by)
{
	struct vp_column *column = vp_data_column_add(
	    data, vp_format("%s.live", rec->recipe.events.at[event].name), VP_DATA_NUMERIC);
	size_t n = 0;

	column->values = vp_alloc((data->rows + 1) * sizeof(double));
	vp_vec_each (&rec->rows, row)
		if (by->at[row - rec->rows.at] > 0)
			column->values[n++] = intervals_cells_of(rec, row)[event].live;
}

static void add_subjects(struct vp_data *data, const struct vp_interval_recording *rec,
			 const divisors *by)
{
	struct vp_column *column = vp_data_column_add(data, vp_strdup("subject"), VP_DATA_NOMINAL);
	size_t n = 0;

	column->values = vp_alloc((data->rows + 1) * sizeof(double));
	vp_vec_each (&rec->rows, row) {
		if (!(by->at[row - rec->rows.at] > 0))
			continue;
		char *name = vp_interval_subject(rec, row);
		size_t label = vp_column_find_label(column, name);
		if (label == VP_DATA_NONE) {
			label = column->labels.count;
			vp_vec_push(&column->labels, name);
		} else {
			free(name);
		}
		column->values[n++] = (double)label;
	}
}

static void intervals_add_events(struct vp_data *data, const struct vp_interval_recording *rec,
				 const struct vp_interval_choice *choice, uint32_t base,
				 const divisors *by)
{
	bool by_instructions =
	    base < VP_EVENTS_MAX &&
	    intervals_is_called(rec->recipe.events.at[base].name, "instructions");
	size_t cpi = VP_EVENTS_MAX;

	vp_vec_each (&rec->recipe.events, event) {
		size_t number = (size_t)(event - rec->recipe.events.at);
		bool cycles = intervals_is_called(event->name, "cycles") ||
			      intervals_is_called(event->name, "cpu-cycles");
		if (number == base)
			continue;
		if (by_instructions && cycles && cpi == VP_EVENTS_MAX) {
			cpi = number;
			continue;
		}
		intervals_add_event(data, rec, number, event->name, by, 1);
		if (choice->live)
			add_live(data, rec, number, by);
	}
	if (cpi < VP_EVENTS_MAX)
		intervals_add_event(data, rec, cpi, "cpi", by, 1 / choice->per);
}

struct vp_error *vp_interval_data(const struct vp_interval_recording *rec,
				  const struct vp_interval_choice *choice, struct vp_data *ret)
{
	uint32_t base = choice->base ? vp_recipe_find(&rec->recipe, choice->base) : VP_EVENTS_MAX;
	struct vp_interval_choice resolved = *choice;
	VP_AUTO_FREE bool *chosen = NULL;
	divisors by = {0};

	*ret = (struct vp_data){0};
	if (choice->base && base == VP_EVENTS_MAX)
		return vp_error_new("'%s' has no counts of '%s'", rec->path, choice->base);
	if (choice->vm) {
		VP_TRY(vp_filter_choose_vms(&rec->vms, choice->vm, &chosen));
		resolved.chosen = chosen;
	}
	vp_vec_each (&rec->rows, row) {
		double divide = divisor(rec, row, &resolved, base);
		ret->rows += divide > 0;
		vp_vec_push(&by, divide);
	}
	ret->name = vp_strdup("intervals");
	if (choice->subjects)
		add_subjects(ret, rec, &by);
	intervals_add_events(ret, rec, choice, base, &by);
	vp_vec_deinit(&by);
	ret->target = ret->columns.count - 1;
	if (ret->rows && ret->columns.count)
		return NULL;
	struct vp_error *error =
	    ret->rows
		? vp_error_new("'%s' counted only '%s'", rec->path, choice->base)
		: vp_error_new("'%s' has no complete interval%s%s%s%s", rec->path,
			       choice->vm ? " of VM " : "", choice->vm ? choice->vm : "",
			       choice->base ? " with " : "", choice->base ? choice->base : "");
	vp_data_deinit(ret);
	return error;
}
