/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "render/render_table.h"

enum {
	MAX_WIDTH = 48, /* a longer text shifts only the rest of its own line */
	NUMBER_SIZE = VP_CLOCK_TEXT_SIZE > VP_DURATION_SIZE ? VP_CLOCK_TEXT_SIZE : VP_DURATION_SIZE,
};
_Static_assert((int)NUMBER_SIZE >= (int)VP_PUT_COUNT + 4, "room for any number");

/* Percentages that perf colours as hot and as warm. */
#define HOT 5.0
#define WARM 0.5

/* Number of UTF-8 characters: all bytes except continuation bytes. Processes eight bytes at a time,
 * since there may be half a million texts. */
static size_t text_width(const char *text, size_t size)
{
	const uint64_t each = 0x0101010101010101;
	size_t width = size, at = 0;
	uint64_t eight;

	for (; size - at >= sizeof(eight); at += sizeof(eight)) {
		memcpy(&eight, text + at, sizeof(eight));
		if (eight & each << 7)
			width -= (size_t)__builtin_popcountll(eight >> 7 & ~(eight >> 6) & each);
	}
	for (; at < size; at++)
		width -= (text[at] & 0xc0) == 0x80;
	return width;
}

static const char *last_part(const char *path)
{
	const char *slash = path[0] == '/' ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

/* Equivalent to printf("%.2f%%"); returns the end. */
static char *put_percent(char *at, double percent)
{
	double hundredths = percent * 100;
	uint64_t whole = percent >= 0 && percent < 1000 ? (uint64_t)hundredths : 0;
	double rest = hundredths - (double)whole;

	/* Let printf() round near a tie, and format unusual values. */
	if (!(percent >= 0 && percent < 1000) || (rest > 0.499999 && rest < 0.500001)) {
		int size = snprintf(at, NUMBER_SIZE, "%.2f%%", percent);
		return at + (size < NUMBER_SIZE ? size : NUMBER_SIZE - 1);
	}
	whole += rest > 0.5;
	at = vp_put_count(at, whole / 100);
	char fraction[] = {'.', (char)('0' + whole / 10 % 10), (char)('0' + whole % 10), '%'};
	memcpy(at, fraction, sizeof(fraction));
	return at + sizeof(fraction);
}

/* Seconds since the start, or in the table's clock format. */
static const char *time_text(const struct vp_table *table, uint64_t ns,
			     char text[VP_CLOCK_TEXT_SIZE])
{
	if (table->clock.form != VP_CLOCK_FORM_HOST)
		return vp_clock_text(&table->clock, table->clock.start + ns, text);
	snprintf(text, VP_CLOCK_TEXT_SIZE, "%.9f", (double)ns / 1e9);
	return text;
}

/* The cell's text, which may be written to `number`, and its size. */
static const char *cell_text(const struct vp_table *table, enum vp_cell_type type,
			     const union vp_cell *cell, char number[NUMBER_SIZE], size_t *size)
{
	const char *text = "-";

	switch (type) {
	case VP_CELL_TEXT:
		text = cell->text ? last_part(cell->text) : "-";
		break;
	case VP_CELL_COUNT:
		if (cell->count == VP_CELL_NO_COUNT)
			break;
		*size = (size_t)(vp_put_count(number, cell->count) - number);
		return number;
	case VP_CELL_DURATION:
		text = vp_text_duration(cell->count, number);
		break;
	case VP_CELL_TIME:
		text = time_text(table, cell->count, number);
		break;
	case VP_CELL_PERCENT:
		*size = (size_t)(put_percent(number, cell->percent) - number);
		return number;
	}
	*size = strlen(text);
	return text;
}

/* Writes whole blocks of blanks, like vp_put_blocks(). */
static char *put_blanks(char *at, size_t size)
{
	for (size_t i = 0; i < size; i += VP_PUT_BLOCK)
		memset(at + i, ' ', VP_PUT_BLOCK);
	return at + size;
}

/* Appends the text, padded to `width`. The last field of a line is followed by a newline. */
static void put_field(const char *text, size_t size, size_t width, bool right, bool last,
		      struct vp_buffer *out)
{
	size_t have = text_width(text, size);
	size_t pad = width > have ? width - have : 0;
	char *at = vp_buffer_room(out, size + pad + 2 + VP_PUT_BLOCK);

	if (right)
		at = put_blanks(at, pad);
	memcpy(at, text, size);
	at += size;
	if (last)
		*at++ = '\n';
	else
		at = put_blanks(at, right ? 2 : pad + 2);
	vp_buffer_end(out, at);
}

/* The width of a cell, without formatting it: there may be a hundred thousand cells. */
static size_t cell_width(const struct vp_table *table, enum vp_cell_type type,
			 const union vp_cell *cell)
{
	char number[NUMBER_SIZE];
	size_t width = 1, size;

	switch (type) {
	case VP_CELL_COUNT:
		for (uint64_t rest = cell->count; rest >= 10 && cell->count != VP_CELL_NO_COUNT;
		     rest /= 10)
			width++;
		return width;
	case VP_CELL_PERCENT:
		return cell->percent >= 99.995  ? sizeof("100.00%") - 1
		       : cell->percent >= 9.995 ? sizeof("10.00%") - 1
						: sizeof("1.00%") - 1;
	default:
		break;
	}
	const char *text = cell_text(table, type, cell, number, &size);
	return text_width(text, size);
}

static size_t column_width(const struct vp_table *table, size_t number)
{
	const struct vp_table_column *column = &table->columns.at[number];
	size_t columns = table->columns.count;
	size_t widest = text_width(column->header, strlen(column->header));
	const char *above = NULL;

	for (size_t at = number; at < table->cells.count && widest < MAX_WIDTH; at += columns) {
		const union vp_cell *cell = &table->cells.at[at];
		/* Often the same text as in the row above, which has been measured. */
		if (column->type == VP_CELL_TEXT && at > number && cell->text == above)
			continue;
		above = column->type == VP_CELL_TEXT ? cell->text : NULL;
		size_t width = cell_width(table, column->type, cell);
		width = width > MAX_WIDTH ? MAX_WIDTH : width;
		widest = width > widest ? width : widest;
	}
	return widest;
}

/* The visible columns, from left to right; initially all columns with a header. */
struct layout {
	const struct vp_table *table;
	size_t count;
	size_t *columns; /* their indices in the table */
	size_t *widths;
};

static void layout_init(struct layout *layout, const struct vp_table *table)
{
	size_t columns = table->columns.count;

	*layout = (struct layout){
	    .table = table,
	    .columns = vp_alloc((columns + 1) * sizeof(*layout->columns)),
	    .widths = vp_alloc((columns + 1) * sizeof(*layout->widths)),
	};
	for (size_t i = 0; i < columns; i++) {
		if (!table->columns.at[i].header)
			continue;
		layout->columns[layout->count] = i;
		layout->widths[layout->count++] = column_width(table, i);
	}
}

static void layout_deinit(struct layout *layout)
{
	free(layout->columns);
	free(layout->widths);
}

static void layout_drop(struct layout *layout, size_t at)
{
	size_t after = --layout->count - at;

	memmove(&layout->columns[at], &layout->columns[at + 1], after * sizeof(*layout->columns));
	memmove(&layout->widths[at], &layout->widths[at + 1], after * sizeof(*layout->widths));
}

static size_t layout_width(const struct layout *layout)
{
	size_t total = 0;

	for (size_t i = 0; i < layout->count; i++)
		total += layout->widths[i] + 2;
	return total ? total - 2 : 0;
}

static const char *colour_of(const struct vp_table_column *column, const union vp_cell *cell)
{
	if (column->type != VP_CELL_PERCENT || cell->percent < WARM)
		return NULL;
	return cell->percent >= HOT ? "\033[31m" : "\033[32m";
}

static void put_header(const struct layout *layout, struct vp_buffer *out)
{
	for (size_t i = 0; i < layout->count; i++) {
		const struct vp_table_column *column =
		    &layout->table->columns.at[layout->columns[i]];
		put_field(column->header, strlen(column->header), layout->widths[i],
			  column->type != VP_CELL_TEXT, i + 1 == layout->count, out);
	}
}

/* The colour must end before the newline. */
static void put_end_of_colour(bool last, struct vp_buffer *out)
{
	if (last)
		out->size--;
	vp_buffer_string(out, last ? "\033[m\n" : "\033[m");
}

static void put_row(const struct layout *layout, const union vp_cell *cells, bool colour,
		    struct vp_buffer *out)
{
	char number[NUMBER_SIZE];

	for (size_t i = 0; i < layout->count; i++) {
		size_t place = layout->columns[i], size;
		const struct vp_table_column *column = &layout->table->columns.at[place];
		const char *paint = colour ? colour_of(column, &cells[place]) : NULL;
		if (paint)
			vp_buffer_string(out, paint);
		const char *text =
		    cell_text(layout->table, column->type, &cells[place], number, &size);
		put_field(text, size, layout->widths[i], column->type != VP_CELL_TEXT,
			  i + 1 == layout->count, out);
		if (paint)
			put_end_of_colour(i + 1 == layout->count, out);
	}
}

static void layout_put(const struct layout *layout, bool colour, struct vp_buffer *out)
{
	const struct vp_table *table = layout->table;
	const union vp_cell *cells = table->cells.at;

	put_header(layout, out);
	for (size_t left = vp_table_rows(table); left; left--, cells += table->columns.count)
		put_row(layout, cells, colour, out);
}

void vp_render_table_text(const struct vp_table *table, bool colour, struct vp_buffer *out)
{
	struct layout layout;

	layout_init(&layout, table);
	layout_put(&layout, colour, out);
	layout_deinit(&layout);
}

static uint64_t table_text_sum_counts(const struct vp_table *table, size_t row)
{
	size_t columns = table->columns.count;
	uint64_t sum = 0;

	for (size_t i = 0; i < columns; i++)
		if (table->columns.at[i].type == VP_CELL_COUNT &&
		    table->cells.at[row * columns + i].count != VP_CELL_NO_COUNT)
			sum += table->cells.at[row * columns + i].count;
	return sum;
}

static const char stars[] = "****************************************";

/* Length of the longest bar: the rest of `width`, at least the width of the heading. */
static size_t longest_bar(const struct vp_table *table, size_t width)
{
	size_t used = 0, most = sizeof(stars) - 1, least = sizeof("Histogram") - 1;

	for (size_t i = 0; i < table->columns.count; i++)
		used += column_width(table, i) + 2;
	if (!width || width >= used + most)
		return most;
	return width < used + least ? least : width - used;
}

void vp_render_histogram_text(const struct vp_table *table, size_t width, bool colour,
			      struct vp_buffer *out)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table);
	size_t longest = longest_bar(table, width);
	struct vp_table shown = {.clock = table->clock};
	uint64_t most = 1;

	for (size_t row = 0; row < rows; row++)
		if (table_text_sum_counts(table, row) > most)
			most = table_text_sum_counts(table, row);
	vp_vec_each (&table->columns, column)
		vp_vec_push(&shown.columns, *column);
	vp_table_column_add(&shown, "bar", "Histogram", "", VP_CELL_TEXT);
	for (size_t row = 0; row < rows; row++) {
		uint64_t sum = table_text_sum_counts(table, row);
		size_t length = (size_t)((double)sum / (double)most * (double)longest + 0.5);
		for (size_t i = 0; i < columns; i++)
			vp_vec_push(&shown.cells, table->cells.at[row * columns + i]);
		vp_table_text(&shown, stars + sizeof(stars) - 1 - (sum && !length ? 1 : length));
	}
	vp_render_table_text(&shown, colour, out);
	vp_table_deinit(&shown);
}

static double largest_in(const struct vp_table *table, size_t column)
{
	size_t columns = table->columns.count;
	double largest = 0;

	for (size_t row = 0; row < vp_table_rows(table); row++) {
		const union vp_cell *cell = &table->cells.at[row * columns + column];
		double value = table->columns.at[column].type == VP_CELL_PERCENT
				   ? cell->percent
				   : (double)cell->count;
		largest = value > largest ? value : largest;
	}
	return largest;
}

/* The first visible column that the table lists as optional; not found: the number of columns. */
static size_t layout_named(const struct layout *layout)
{
	const struct vp_table *table = layout->table;

	for (const char *const *key = table->least; key && *key; key++)
		for (size_t i = 0; i < layout->count; i++)
			if (!strcmp(table->columns.at[layout->columns[i]].key, *key))
				return i;
	return layout->count;
}

/* The column to omit next: optional ones first, then percentages, then durations, smallest first.
 * Not found: the number of columns. */
static size_t layout_least(const struct layout *layout)
{
	static const enum vp_cell_type types[] = {VP_CELL_PERCENT, VP_CELL_DURATION};
	const struct vp_table *table = layout->table;
	size_t least = layout_named(layout);

	for (size_t type = 0; type < 2 && least == layout->count; type++)
		for (size_t i = 0; i < layout->count; i++)
			if (table->columns.at[layout->columns[i]].type == types[type] &&
			    (least == layout->count ||
			     largest_in(table, layout->columns[i]) <
				 largest_in(table, layout->columns[least])))
				least = i;
	return least;
}

/* Omits columns until the rest fits into `width`, and stores their indices in `dropped`, in that
 * order. Returns how many were omitted. */
static size_t layout_shrink(struct layout *layout, size_t width, size_t *dropped)
{
	size_t count = 0, least;

	while (layout_width(layout) > width && (least = layout_least(layout)) < layout->count) {
		dropped[count++] = layout->columns[least];
		layout_drop(layout, least);
	}
	return count;
}

/* Restores an omitted column at its position. */
static void layout_put_back(struct layout *layout, size_t column, size_t width)
{
	size_t at = layout->count++;

	for (; at && layout->columns[at - 1] > column; at--) {
		layout->columns[at] = layout->columns[at - 1];
		layout->widths[at] = layout->widths[at - 1];
	}
	layout->columns[at] = column;
	layout->widths[at] = width;
}

/* The last omitted column may have been wide, so that others fit again: restores those, most useful
 * first. Returns how many remain omitted. */
static size_t layout_fill(struct layout *layout, size_t width, size_t *dropped, size_t count)
{
	for (size_t i = count; i; i--) {
		size_t column = dropped[i - 1], its = column_width(layout->table, column);
		if (layout_width(layout) + 2 + its > width)
			continue;
		layout_put_back(layout, column, its);
		memmove(&dropped[i - 1], &dropped[i], (count - i) * sizeof(*dropped));
		count--;
	}
	return count;
}

static void put_dropped(const struct vp_table *table, const size_t *dropped, size_t count,
			struct vp_buffer *out)
{
	if (!count)
		return;
	vp_buffer_string(out, "(narrow terminal: without ");
	for (size_t i = 0; i < count; i++)
		vp_buffer_printf(out, "%s%s", i ? ", " : "", table->columns.at[dropped[i]].header);
	vp_buffer_printf(out, "; %s)\n", table->whole ? table->whole : "-v shows all");
}

void vp_render_table_fitted(const struct vp_table *table, size_t width, bool colour,
			    struct vp_buffer *out)
{
	VP_AUTO_FREE size_t *dropped = vp_alloc((table->columns.count + 1) * sizeof(*dropped));
	struct layout layout;
	size_t count = 0;

	layout_init(&layout, table);
	if (width) {
		count = layout_shrink(&layout, width, dropped);
		count = layout_fill(&layout, width, dropped, count);
	}
	layout_put(&layout, colour, out);
	put_dropped(table, dropped, count, out);
	layout_deinit(&layout);
}
