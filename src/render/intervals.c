/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/intervals.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "render/decimal.h"

char *vp_render_intervals_plan(const struct vp_interval_book *book)
{
	static const char *const pers[] = {"vCPU", "task", "pCPU"};
	const struct vp_recipe *recipe = &book->recipe;
	bool is_time = recipe->unit == VP_UNIT_TIME ||
		       (recipe->unit == VP_UNIT_EVENT && recipe->trigger.unit[0]);

	return vp_format("%zu intervals of %" PRIu64 "%s %s per %s; %" PRIu64
			 " ended before their trigger",
			 book->rows.count, recipe->width, is_time ? " ns of" : "",
			 recipe->unit_name, pers[recipe->per], vp_interval_partial(book));
}

static void put_head(const struct vp_interval_book *book, struct vp_buffer *out)
{
	const struct vp_recording *about = &book->recording;
	VP_AUTO_FREE char *plan = vp_render_intervals_plan(book);

	vp_buffer_printf(out, "# vperf stat of '%s': host %s, kernel %s\n# %s\n", book->path,
			 about->hostname, about->kernel, plan);
	vp_vec_each (&book->notes, note)
		vp_buffer_printf(out, "# %s\n", *note);
	vp_buffer_string(out, "\n");
}

/* Six digits, as many as fit before the point. */
static void put_ratio(double value, struct vp_buffer *out)
{
	if (isfinite(value))
		vp_buffer_printf(out, "  %14.6g", value);
	else
		vp_buffer_printf(out, "  %14s", "-");
}

static void put_event(const struct vp_interval_book *book, size_t event, double base,
		      struct vp_buffer *out)
{
	const struct vp_recipe_event *about = &book->recipe.events.at[event];
	struct vp_interval_total total = vp_interval_total(book, event);

	if (total.live > 0)
		vp_buffer_printf(out, "%-26s %-2s  %20.0f", about->name, about->event.unit,
				 total.estimate);
	else
		vp_buffer_printf(out, "%-26s %-2s  %20s", about->name, about->event.unit, "-");
	put_ratio(total.live > 0 && book->rows.count ? total.estimate / (double)book->rows.count
						     : (double)NAN,
		  out);
	if (base > 0)
		put_ratio(total.live > 0 ? total.estimate / base : (double)NAN, out);
	vp_buffer_printf(out, "  %6.2f%%  %6.2f%%\n", 100 * total.live, 100 * total.least_live);
}

void vp_render_intervals_text(const struct vp_interval_book *book, const char *base, double per,
			      struct vp_buffer *out)
{
	uint32_t number = base ? vp_recipe_find(&book->recipe, base) : VP_EVENTS_MAX;
	double divisor =
	    number < VP_EVENTS_MAX ? vp_interval_total(book, number).estimate / per : 0;
	VP_AUTO_FREE char *heading = divisor > 0 ? vp_format("  %14.14s", base) : vp_strdup("");

	put_head(book, out);
	if (divisor > 0)
		vp_buffer_printf(out, "%-26s %-2s  %20s  %14s  by %11.6g  %7s  %7s\n", "", "", "",
				 "", per, "", "");
	vp_buffer_printf(out, "%-26s %-2s  %20s  %14s%s  %7s  %7s\n", "event", "", "sum",
			 "per interval", heading, "live", "least");
	for (size_t i = 0; i < book->recipe.events.count; i++)
		put_event(book, i, divisor, out);
}

/* Counts are whole, what is scaled may not be. */
static void put_count(double value, struct vp_buffer *out)
{
	if (value >= 0 && value < 1e15 && floor(value) == value)
		vp_buffer_printf(out, "%.0f", value);
	else
		vp_render_json_number(value, out);
}

static void put_row(const struct vp_interval_book *book, const struct vp_interval_row *row,
		    struct vp_buffer *out)
{
	VP_AUTO_FREE char *subject = vp_interval_subject(book, row);
	const struct vp_interval *head = &row->head;

	vp_buffer_string(out, "{\"subject\": ");
	vp_render_json_text(subject, out);
	vp_buffer_printf(
	    out,
	    ", \"pid\": %u, \"tid\": %u, \"vcpu\": %u, \"pcpu\": %u, \"number\": %u, "
	    "\"begin\": %" PRIu64 ", \"end\": %" PRIu64 ", \"partial\": %s, \"events\": {",
	    head->pid, head->tid, head->vcpu, row->pcpu, head->number, (uint64_t)head->begin,
	    (uint64_t)head->time, head->flags & VP_INTERVAL_PARTIAL ? "true" : "false");
	for (size_t i = 0; i < book->recipe.events.count; i++) {
		const struct vp_interval_cell *cell = &book->cells.at[row->cells + i];
		vp_buffer_string(out, i ? ", " : "");
		vp_render_json_text(book->recipe.events.at[i].name, out);
		vp_buffer_string(out, ": {\"counted\": ");
		put_count(cell->value, out);
		vp_buffer_string(out, ", \"live\": ");
		vp_render_json_number(cell->live, out);
		vp_buffer_string(out, "}");
	}
	vp_buffer_string(out, "}}");
}

static void put_total(const struct vp_interval_book *book, size_t event, struct vp_buffer *out)
{
	struct vp_interval_total total = vp_interval_total(book, event);

	vp_render_json_text(book->recipe.events.at[event].name, out);
	vp_buffer_string(out, ": {\"sum\": ");
	put_count(total.live > 0 ? total.estimate : (double)NAN, out);
	vp_buffer_string(out, ", \"counted\": ");
	put_count(total.counted, out);
	vp_buffer_string(out, ", \"live\": ");
	vp_render_json_number(total.live, out);
	vp_buffer_string(out, ", \"least_live\": ");
	vp_render_json_number(total.least_live, out);
	vp_buffer_string(out, "}");
}

void vp_render_intervals_json(const struct vp_interval_book *book, struct vp_buffer *out)
{
	vp_buffer_string(out, "{\"path\": ");
	vp_render_json_text(book->path, out);
	vp_buffer_string(out, ", \"unit\": ");
	vp_render_json_text(book->recipe.unit_name, out);
	vp_buffer_printf(out,
			 ", \"width\": %" PRIu64 ", \"start\": %" PRIu64 ", \"end\": %" PRIu64
			 ", \"lost\": %" PRIu64 ",\n\"totals\": {",
			 book->recipe.width, book->recording.start, book->recording.end,
			 book->lost);
	for (size_t i = 0; i < book->recipe.events.count; i++) {
		vp_buffer_string(out, i ? ",\n" : "\n");
		put_total(book, i, out);
	}
	vp_buffer_string(out, "},\n\"intervals\": [");
	vp_vec_each (&book->rows, row) {
		vp_buffer_string(out, row == book->rows.at ? "\n" : ",\n");
		put_row(book, row, out);
	}
	vp_buffer_string(out, "]}\n");
}
