/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_intervals.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/interval.h"
#include "schema/recipe.h"
#include "schema/records.h"
#include "store/recording.h"

/* "60000000 instructions", "10.0 ms", "10.0 ms of cpu-clock"; to be freed. */
static char *width_text(const struct vp_recipe *recipe)
{
	char text[VP_DURATION_SIZE];

	if (recipe->unit == VP_UNIT_TIME)
		return vp_strdup(vp_text_duration(recipe->width, text));
	if (recipe->unit == VP_UNIT_EVENT && recipe->trigger.unit[0])
		return vp_format("%s of %s", vp_text_duration(recipe->width, text),
				 recipe->unit_name);
	return vp_format("%" PRIu64 " %s", recipe->width, recipe->unit_name);
}

char *vp_render_intervals_plan(const struct vp_interval_recording *rec)
{
	static const char *const pers[] = {"vCPU", "task", "pCPU"};
	const struct vp_recipe *recipe = &rec->recipe;
	VP_AUTO_FREE char *width = width_text(recipe);

	return vp_format("%zu interval%s of %s per %s; %" PRIu64 " ended early", rec->rows.count,
			 rec->rows.count == 1 ? "" : "s", width, pers[recipe->per],
			 vp_interval_partial(rec));
}

static void render_intervals_put_head(const struct vp_interval_recording *rec,
				      struct vp_buffer *out)
{
	const struct vp_recording *about = &rec->recording;
	VP_AUTO_FREE char *plan = vp_render_intervals_plan(rec);

	vp_buffer_printf(out, "# vperf stat of '%s': host %s, kernel %s\n# %s\n", rec->path,
			 about->hostname, about->kernel, plan);
	vp_vec_each (&rec->notes, note)
		vp_buffer_printf(out, "# %s\n", *note);
	vp_buffer_string(out, "\n");
}

/* Six significant digits, as many as fit before the point. */
static void put_ratio(double value, struct vp_buffer *out)
{
	if (isfinite(value))
		vp_buffer_printf(out, "  %14.6g", value);
	else
		vp_buffer_printf(out, "  %14s", "-");
}

/* A time with its unit; below a nanosecond, with as many digits as necessary. */
static void render_intervals_put_time(double ns, int width, struct vp_buffer *out)
{
	char text[VP_DURATION_SIZE];

	if (!(ns >= 0 && ns < 1e18))
		vp_buffer_printf(out, "  %*s", width, "-");
	else if (ns >= 1000 || ns == 0)
		vp_buffer_printf(out, "  %*s", width, vp_text_duration((uint64_t)ns, text));
	else
		vp_buffer_printf(out, "  %*.3g ns", width - 3, ns);
}

/* A missing value is printed as NaN. */
static void render_intervals_put_value(bool is_time, double value, struct vp_buffer *out)
{
	if (is_time)
		render_intervals_put_time(value, 14, out);
	else
		put_ratio(value, out);
}

/* Columns of the table, as far as they fit. */
struct intervals_layout {
	double base; /* 0: no column of it */
	bool with_mean, with_live, with_least;
};

/* Omits the last columns first; `width` 0: no limit. */
static struct intervals_layout intervals_layout_of(size_t width, double base)
{
	enum { NAME_AND_SUM = 26 + 2 + 20, VALUE = 2 + 14, PERCENT = 2 + 9 };
	struct intervals_layout ret = {.base = base};
	size_t used = NAME_AND_SUM + (base > 0 ? VALUE : 0);

	ret.with_mean = !width || (used += VALUE) <= width;
	ret.with_live = !width || (used += PERCENT) <= width;
	ret.with_least = !width || (used += PERCENT) <= width;
	return ret;
}

static void render_intervals_put_event(const struct vp_interval_recording *rec, size_t event,
				       const struct intervals_layout *layout, struct vp_buffer *out)
{
	const struct vp_recipe_event *about = &rec->recipe.events.at[event];
	struct vp_interval_total total = vp_interval_total(rec, event);
	bool is_time = !strcmp(about->event.unit, "ns");
	double sum = total.live > 0 ? total.estimate : (double)NAN;

	vp_buffer_printf(out, "%-26s", about->name);
	if (is_time)
		render_intervals_put_time(sum, 20, out);
	else if (total.live > 0)
		vp_buffer_printf(out, "  %20.0f", sum);
	else
		vp_buffer_printf(out, "  %20s", "-");
	if (layout->with_mean)
		render_intervals_put_value(
		    is_time, rec->rows.count ? sum / (double)rec->rows.count : (double)NAN, out);
	if (layout->base > 0)
		render_intervals_put_value(is_time, sum / layout->base, out);
	if (layout->with_live)
		vp_buffer_printf(out, "  %8.2f%%", 100 * total.live);
	if (layout->with_least)
		vp_buffer_printf(out, "  %8.2f%%", 100 * total.min_live);
	vp_buffer_string(out, "\n");
}

static void intervals_put_headings(const struct intervals_layout *layout, const char *base,
				   double per, struct vp_buffer *out)
{
	if (layout->base > 0)
		vp_buffer_printf(out, "%-26s  %20s%*s  per %10.6g\n", "", "",
				 layout->with_mean ? 16 : 0, "", per);
	vp_buffer_printf(out, "%-26s  %20s%s", "event", "sum",
			 layout->with_mean ? "    per interval" : "");
	if (layout->base > 0)
		vp_buffer_printf(out, "  %14.14s", base);
	vp_buffer_printf(out, "%s%s\n", layout->with_live ? "  running %" : "",
			 layout->with_least ? "      min %" : "");
}

void vp_render_intervals_text(const struct vp_interval_recording *rec, const char *base, double per,
			      size_t width, struct vp_buffer *out)
{
	uint32_t number = base ? vp_recipe_find(&rec->recipe, base) : VP_EVENTS_MAX;
	double divisor = number < VP_EVENTS_MAX ? vp_interval_total(rec, number).estimate / per : 0;
	const struct intervals_layout layout = intervals_layout_of(width, divisor);

	render_intervals_put_head(rec, out);
	intervals_put_headings(&layout, base, per, out);
	for (size_t i = 0; i < rec->recipe.events.count; i++)
		render_intervals_put_event(rec, i, &layout, out);
	if (!layout.with_least)
		vp_buffer_printf(out, "(narrow terminal: without %s%smin %%)\n",
				 layout.with_mean ? "" : "per interval, ",
				 layout.with_live ? "" : "running %, ");
}

static void render_intervals_put_json_row(const struct vp_interval_recording *rec,
					  const struct vp_interval_row *row, struct vp_json *json)
{
	VP_AUTO_FREE char *subject = vp_interval_subject(rec, row);
	const struct vp_interval *head = &row->head;

	vp_json_line(json);
	vp_json_object(json, NULL);
	vp_json_text(json, "subject", subject);
	vp_json_count(json, "pid", head->owner);
	vp_json_count(json, "tid", head->tid);
	vp_json_count(json, "vcpu", head->vcpu);
	vp_json_count(json, "pcpu", row->pcpu);
	vp_json_count(json, "number", head->number);
	vp_json_count(json, "begin", head->begin);
	vp_json_count(json, "end", head->time);
	vp_json_bool(json, "partial", head->flags & VP_INTERVAL_PARTIAL);
	vp_json_object(json, "events");
	for (size_t i = 0; i < rec->recipe.events.count; i++) {
		const struct vp_interval_cell *cell = &rec->cells.at[row->cells + i];
		vp_json_object(json, rec->recipe.events.at[i].name);
		vp_json_amount(json, "counted", cell->value);
		vp_json_number(json, "live", cell->live);
		vp_json_object_end(json);
	}
	vp_json_object_end(json);
	vp_json_object_end(json);
}

static void put_json_total(const struct vp_interval_recording *rec, size_t event,
			   struct vp_json *json)
{
	struct vp_interval_total total = vp_interval_total(rec, event);

	vp_json_line(json);
	vp_json_object(json, rec->recipe.events.at[event].name);
	vp_json_amount(json, "sum", total.live > 0 ? total.estimate : (double)NAN);
	vp_json_amount(json, "counted", total.counted);
	vp_json_number(json, "live", total.live);
	vp_json_number(json, "least_live", total.min_live);
	vp_json_object_end(json);
}

void vp_render_intervals_json(const struct vp_interval_recording *rec, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_text(&json, "path", rec->path);
	vp_json_text(&json, "unit", rec->recipe.unit_name);
	vp_json_count(&json, "width", rec->recipe.width);
	vp_json_count(&json, "start", rec->recording.start);
	vp_json_count(&json, "end", rec->recording.end);
	vp_json_count(&json, "lost", rec->lost);
	vp_json_line(&json);
	vp_json_object(&json, "totals");
	for (size_t i = 0; i < rec->recipe.events.count; i++)
		put_json_total(rec, i, &json);
	vp_json_object_end(&json);
	vp_json_line(&json);
	vp_json_array(&json, "intervals");
	vp_vec_each (&rec->rows, row)
		render_intervals_put_json_row(rec, row, &json);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}
