/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/table.h"
#include "analyze/report/live.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/top.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

enum {
	USUAL_WIDTH = 80,
	NAME = 16,
	MAX_NAME = 40,
	VALUES = 48, /* the columns between the name and the sparkline */
	REASON = 22,
	BOTTOM_ROWS = 5,
	MIN_ROWS = 3,
	EIGHTHS = 8
};

/* Percent of a vCPU's time from which steal is coloured. */
#define MUCH_STEAL 5.0F

struct canvas {
	const struct vp_top *top;
	const struct vp_top_screen *screen;
	struct vp_buffer *out;
	struct vp_buffer line;
	uint32_t lines, name;
};

/* One character as the terminal displays it: empty if its width is 0, '?' if it is invalid. Returns
 * its size in bytes. */
static size_t next_character(const char *text, size_t size, const char **ret, int *width)
{
	mbstate_t state = {0};
	wchar_t character;
	size_t taken = mbrtowc(&character, text, size, &state);

	*ret = text;
	*width = taken <= size && taken ? wcwidth(character) : -1;
	if (*width >= 0)
		return taken;
	*ret = "?";
	*width = 1;
	return taken <= size && taken ? taken : 1;
}

/* Appends the text, truncated to the width; returns its width. */
static size_t put_clipped(const char *text, size_t room, struct vp_buffer *out)
{
	size_t left = strlen(text), used = 0;

	while (left) {
		const char *shown;
		int width;
		size_t taken = next_character(text, left, &shown, &width);
		if (used + (size_t)width > room)
			break;
		if (width)
			vp_buffer_append(out, shown, *shown == '?' ? 1 : taken);
		used += (size_t)width;
		text += taken;
		left -= taken;
	}
	return used;
}

/* Moves the canvas's line to the screen, in one colour. */
static void put_line(struct canvas *canvas, const char *colour)
{
	bool painted = canvas->screen->colour && colour;

	if (canvas->lines < canvas->screen->height) {
		vp_buffer_string(canvas->out, painted ? colour : "");
		put_clipped(vp_buffer_text(&canvas->line), canvas->screen->width, canvas->out);
		vp_buffer_string(canvas->out, painted ? "\033[m\n" : "\n");
		canvas->lines++;
	}
	canvas->line.size = 0;
}

static void top_screen_put_field(struct canvas *canvas, const char *text, size_t room)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(text ? text : "-");

	vp_buffer_fill(&canvas->line, ' ', room - put_clipped(clean, room, &canvas->line));
}

static const char *value_name(unsigned value)
{
	static const char *const names[] = {
	    [VP_LIVE_GUEST] = "guest", [VP_LIVE_HOST] = "work",   [VP_LIVE_IDLE] = "asleep",
	    [VP_LIVE_STEAL] = "steal", [VP_LIVE_EXITS] = "exits", [VP_LIVE_VALUES] = "name"};

	return names[value];
}

static void put_state(struct canvas *canvas, size_t rows)
{
	const struct vp_top *top = canvas->top;
	const struct vp_top_screen *screen = canvas->screen;
	const char *vm = top->order.has_vm ? screen->vms->at[top->order.vm].name : NULL;

	vp_buffer_printf(&canvas->line, "vperf top  %.3f s  %s%zu %s by %s  ", screen->seconds,
			 top->frozen ? "FROZEN  " : "", rows, top->order.by_vm ? "VMs" : "vCPUs",
			 value_name(top->order.sort));
	if (vm) {
		vp_buffer_string(&canvas->line, "VM ");
		top_screen_put_field(canvas, vm, NAME);
	}
	vp_buffer_string(&canvas->line, screen->keys ? "  h: help  q: quit" : "");
	put_line(canvas, "\033[1m");
}

/* The value that the sparklines show. */
static enum vp_live_value history_value(const struct canvas *canvas)
{
	unsigned sort = canvas->top->order.sort;

	return sort < VP_LIVE_VALUES ? sort : VP_LIVE_GUEST;
}

static uint32_t history_width(const struct canvas *canvas)
{
	uint32_t used = canvas->name + VALUES, width = canvas->screen->width;
	uint32_t left = width > used ? width - used : 0;

	return left < VP_LIVE_HISTORY ? left : VP_LIVE_HISTORY;
}

/* Oldest value first. Percentages are absolute; other numbers are relative to the maximum. */
static void put_history(struct canvas *canvas, const struct vp_live_row *row)
{
	static const char *const utf8[EIGHTHS] = {"\u2581", "\u2582", "\u2583", "\u2584",
						  "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const ascii[EIGHTHS] = {"_", ".", "-", "=", "+", "*", "%", "#"};
	const struct vp_live *live = canvas->screen->live;
	enum vp_live_value value = history_value(canvas);
	uint32_t width = history_width(canvas);
	float most = value == VP_LIVE_EXITS ? 1 : 100;

	for (uint32_t ago = 0; value == VP_LIVE_EXITS && ago < width; ago++)
		most = fmaxf(most, vp_live_value(live, row, value, ago));
	for (uint32_t ago = width; ago-- > 0;) {
		float now = vp_live_value(live, row, value, ago);
		int level = isnan(now) ? -1 : (int)(now / most * EIGHTHS);
		level = level < EIGHTHS ? level : EIGHTHS - 1;
		vp_buffer_string(&canvas->line, level < 0              ? " "
						: canvas->screen->utf8 ? utf8[level]
								       : ascii[level]);
	}
}

static void top_screen_put_row(struct canvas *canvas, const struct vp_live_row *row)
{
	const struct vp_live *live = canvas->screen->live;
	float values[VP_LIVE_VALUES];

	for (unsigned value = 0; value < VP_LIVE_VALUES; value++)
		values[value] = vp_live_value(live, row, value, 0);
	top_screen_put_field(canvas, canvas->screen->vms->at[row->vm].name, canvas->name);
	vp_buffer_printf(&canvas->line, " %5" PRIu32,
			 canvas->top->order.by_vm ? row->vcpus : row->vcpu);
	for (unsigned value = VP_LIVE_GUEST; value <= VP_LIVE_STEAL; value++)
		vp_buffer_printf(&canvas->line, " %*.2f", value == VP_LIVE_IDLE ? 7 : 6,
				 (double)values[value]);
	vp_buffer_printf(&canvas->line, " %10.0f  ", (double)values[VP_LIVE_EXITS]);
	put_history(canvas, row);
	put_line(canvas, values[VP_LIVE_STEAL] >= MUCH_STEAL ? "\033[31m" : NULL);
}

static void put_heading(struct canvas *canvas)
{
	top_screen_put_field(canvas, "VM", canvas->name);
	vp_buffer_printf(&canvas->line, " %5s %6s %6s %7s %6s %10s  ",
			 canvas->top->order.by_vm ? "vCPUs" : "vCPU", "guest%", "work%", "asleep%",
			 "steal%", "exits/s");
	if (history_width(canvas))
		vp_buffer_printf(&canvas->line, "%s%s, to now", value_name(history_value(canvas)),
				 history_value(canvas) == VP_LIVE_EXITS ? "" : "%");
	put_line(canvas, "\033[7m");
}

static const union vp_cell *cell_of(const struct vp_table *table, size_t row, const char *key)
{
	return &table->cells.at[row * table->columns.count + vp_table_column_of(table, key)];
}

static void top_screen_put_exits(struct canvas *canvas, size_t rows)
{
	const struct vp_table *table = canvas->screen->exits;
	static const char *const times[] = {"work_ns", "asleep_ns", "steal_ns"};
	char text[VP_DURATION_SIZE];

	if (!rows)
		return;
	put_line(canvas, NULL);
	top_screen_put_field(canvas, "VM", canvas->name);
	vp_buffer_string(&canvas->line, " ");
	top_screen_put_field(canvas, "Exit reason", REASON);
	vp_buffer_printf(&canvas->line, " %9s %9s %9s %9s", "Exits/s", "Work", "Asleep", "Steal");
	put_line(canvas, "\033[7m");
	for (size_t row = 0; row < rows; row++) {
		top_screen_put_field(canvas, cell_of(table, row, "vm")->text, canvas->name);
		vp_buffer_string(&canvas->line, " ");
		top_screen_put_field(canvas, cell_of(table, row, "reason")->text, REASON);
		vp_buffer_printf(&canvas->line, " %9" PRIu64, cell_of(table, row, "per_s")->count);
		for (size_t i = 0; i < VP_ARRAY_SIZE(times); i++)
			vp_buffer_printf(
			    &canvas->line, " %9s",
			    vp_text_duration(cell_of(table, row, times[i])->count, text));
		put_line(canvas, NULL);
	}
}

/* The largest thief not shown yet. */
static size_t next_thief(const struct vp_table *table, const size_t *shown, size_t n_shown)
{
	size_t best = SIZE_MAX;

	for (size_t row = 0; row < vp_table_rows(table); row++) {
		bool is_shown = false;
		for (size_t i = 0; i < n_shown; i++)
			is_shown |= shown[i] == row;
		if (!is_shown && (best == SIZE_MAX || cell_of(table, row, "ns")->count >
							  cell_of(table, best, "ns")->count))
			best = row;
	}
	return best;
}

static void put_thieves(struct canvas *canvas, size_t rows)
{
	const struct vp_table *table = canvas->screen->thieves;
	size_t thief_width = canvas->screen->width > USUAL_WIDTH
				 ? 33 + (canvas->screen->width - USUAL_WIDTH) / 2
				 : 33;
	size_t shown[BOTTOM_ROWS];
	char text[VP_DURATION_SIZE];

	if (!rows)
		return;
	put_line(canvas, NULL);
	top_screen_put_field(canvas, "VM", canvas->name);
	vp_buffer_printf(&canvas->line, " %5s ", "vCPU");
	top_screen_put_field(canvas, "Thief", thief_width);
	vp_buffer_printf(&canvas->line, " %9s %8s", "Time", "Percent");
	put_line(canvas, "\033[7m");
	for (size_t i = 0; i < rows; i++) {
		size_t row = shown[i] = next_thief(table, shown, i);
		top_screen_put_field(canvas, cell_of(table, row, "vm")->text, canvas->name);
		vp_buffer_printf(&canvas->line, " %5" PRIu64 " ",
				 cell_of(table, row, "vcpu")->count);
		top_screen_put_field(canvas, cell_of(table, row, "thief")->text, thief_width);
		vp_buffer_printf(&canvas->line, " %9s %8.2f",
				 vp_text_duration(cell_of(table, row, "ns")->count, text),
				 cell_of(table, row, "percent")->percent);
		put_line(canvas, NULL);
	}
}

static const char *const help[] = {
    "Keys:",
    "  g o i t x   sort by guest, work, asleep, steal, exits; sparkline of the same",
    "  n           sort by VM and vCPU",
    "  < >         sort by the previous, next column",
    "  v V         only the next or previous VM; after the last, all VMs",
    "  a           all VMs",
    "  c           one row per vCPU, or per VM: mean of its vCPUs, sum of exits",
    "  j k, arrows scroll; also by pages",
    "  f, space    freeze the screen, and resume",
    "  h, ?        this help; any key closes it",
    "  q, Ctrl-C   quit",
    "",
    "guest: in guest mode. work: kernel, poll and vmm. asleep: halted and waiting.",
    "steal: runnable, but not running: waking, preempted, throttled, interrupted.",
};

static size_t top_screen_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Lines of a table with its heading and the blank line above it. */
static size_t bottom_lines(size_t rows)
{
	return rows ? rows + 2 : 0;
}

static void top_screen_put_rows(struct canvas *canvas, const vp_live_rows *rows)
{
	const struct vp_top_screen *screen = canvas->screen;
	size_t exits = top_screen_min(vp_table_rows(screen->exits), BOTTOM_ROWS);
	size_t thieves = top_screen_min(vp_table_rows(screen->thieves), BOTTOM_ROWS);
	size_t above = canvas->lines + 1;

	/* Omit the largest part if it does not fit. */
	if (above + MIN_ROWS + bottom_lines(exits) + bottom_lines(thieves) > screen->height)
		exits = 0;
	if (above + MIN_ROWS + bottom_lines(exits) + bottom_lines(thieves) > screen->height)
		thieves = 0;
	size_t taken = above + bottom_lines(exits) + bottom_lines(thieves);
	size_t room = screen->height > taken ? screen->height - taken : 0;
	size_t first =
	    top_screen_min(canvas->top->first, rows->count > room ? rows->count - room : 0);

	put_heading(canvas);
	for (size_t i = first; i < rows->count && i < first + room; i++)
		top_screen_put_row(canvas, rows->at[i]);
	if (!rows->count) {
		vp_buffer_string(&canvas->line, "No VM is running.");
		put_line(canvas, NULL);
	}
	top_screen_put_exits(canvas, exits);
	put_thieves(canvas, thieves);
}

void vp_top_draw(const struct vp_top *top, const struct vp_top_screen *screen,
		 struct vp_buffer *out)
{
	uint32_t more = screen->width > USUAL_WIDTH ? (screen->width - USUAL_WIDTH) / 3 : 0;
	struct canvas canvas = {.top = top,
				.screen = screen,
				.out = out,
				.name = (uint32_t)top_screen_min(NAME + more, MAX_NAME)};
	vp_live_rows rows = {0};

	vp_live_rows_make(screen->live, &top->order, &rows);
	put_state(&canvas, rows.count);
	if (top->help) {
		for (size_t i = 0; i < VP_ARRAY_SIZE(help); i++) {
			vp_buffer_string(&canvas.line, help[i]);
			put_line(&canvas, NULL);
		}
	} else {
		top_screen_put_rows(&canvas, &rows);
	}
	vp_vec_deinit(&rows);
	vp_buffer_deinit(&canvas.line);
}
