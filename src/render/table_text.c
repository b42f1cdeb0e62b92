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

enum { MAX_WIDTH = 48 }; /* a longer text pushes the rest of its own line only */

/* In percent: hot from here on, warm from there on, as perf colours them. */
#define HOT 5.0
#define WARM 0.5

/* Characters of UTF-8 text: bytes that do not continue one. Eight at a time: there may be half a
 * million texts. */
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

/* As printf("%.2f%%") does. */
static void put_percent(double percent, struct vp_buffer *out)
{
	double hundredths = percent * 100;
	uint64_t whole = percent >= 0 && percent < 1000 ? (uint64_t)hundredths : 0;
	double rest = hundredths - (double)whole;

	/* Near the middle between two, or out of the ordinary. */
	if (!(percent >= 0 && percent < 1000) || (rest > 0.499999 && rest < 0.500001)) {
		vp_buffer_printf(out, "%.2f%%", percent);
		return;
	}
	whole += rest > 0.5;
	vp_buffer_count(out, whole / 100);
	char fraction[] = {'.', (char)('0' + whole / 10 % 10), (char)('0' + whole % 10), '%'};
	vp_buffer_append(out, fraction, sizeof(fraction));
}

/* Seconds since the start, or the table's clock. */
static const char *time_text(const struct vp_table *table, uint64_t ns,
			     char text[VP_CLOCK_TEXT_SIZE])
{
	if (table->clock.form != VP_CLOCK_FORM_HOST)
		return vp_clock_text(&table->clock, table->clock.start + ns, text);
	snprintf(text, VP_CLOCK_TEXT_SIZE, "%.9f", (double)ns / 1e9);
	return text;
}

static void table_text_put_cell(const struct vp_table *table, const struct vp_table_column *column,
				const union vp_cell *cell, struct vp_buffer *out)
{
	char time[VP_CLOCK_TEXT_SIZE];
	char duration[VP_DURATION_SIZE];

	switch (column->type) {
	case VP_CELL_TEXT:
		vp_buffer_string(out, cell->text ? last_part(cell->text) : "-");
		break;
	case VP_CELL_COUNT:
		if (cell->count == VP_CELL_NO_COUNT)
			vp_buffer_string(out, "-");
		else
			vp_buffer_count(out, cell->count);
		break;
	case VP_CELL_DURATION:
		vp_buffer_string(out, vp_text_duration(cell->count, duration));
		break;
	case VP_CELL_TIME:
		vp_buffer_string(out, time_text(table, cell->count, time));
		break;
	case VP_CELL_PERCENT:
		put_percent(cell->percent, out);
		break;
	}
}

/* Pads what was appended from `start` on. */
static void pad_from(size_t start, size_t width, bool right, bool last, struct vp_buffer *out)
{
	size_t size = out->size - start, have = text_width(out->bytes + start, size);
	size_t pad = width > have && (right || !last) ? width - have : 0;
	char *blanks = vp_buffer_extend(out, pad);

	if (right && pad) {
		blanks = out->bytes + start;
		memmove(blanks + pad, blanks, size);
	}
	memset(blanks, ' ', pad);
	vp_buffer_append(out, last ? "\n" : "  ", last ? 1 : 2);
}

/* How wide a cell is, without formatting it: there may be a hundred thousand. */
static size_t cell_width(const struct vp_table *table, const struct vp_table_column *column,
			 const union vp_cell *cell)
{
	char time[VP_CLOCK_TEXT_SIZE];
	char duration[VP_DURATION_SIZE];
	const char *text;
	size_t width = 1;

	switch (column->type) {
	case VP_CELL_TEXT:
		text = cell->text ? last_part(cell->text) : "-";
		return text_width(text, strlen(text));
	case VP_CELL_COUNT:
		for (uint64_t rest = cell->count; rest >= 10 && cell->count != VP_CELL_NO_COUNT;
		     rest /= 10)
			width++;
		return width;
	case VP_CELL_DURATION:
		return strlen(vp_text_duration(cell->count, duration));
	case VP_CELL_TIME:
		return strlen(time_text(table, cell->count, time));
	case VP_CELL_PERCENT:
		return cell->percent >= 99.995  ? sizeof("100.00%") - 1
		       : cell->percent >= 9.995 ? sizeof("10.00%") - 1
						: sizeof("1.00%") - 1;
	}
	return width;
}

static void table_text_measure(const struct vp_table *table, size_t *widths)
{
	size_t columns = table->columns.count;

	for (size_t i = 0; i < columns; i++)
		widths[i] =
		    text_width(table->columns.at[i].header, strlen(table->columns.at[i].header));
	for (size_t i = 0; i < table->cells.count; i++) {
		size_t column = i % columns;
		size_t width = cell_width(table, &table->columns.at[column], &table->cells.at[i]);
		width = width > MAX_WIDTH ? MAX_WIDTH : width;
		widths[column] = width > widths[column] ? width : widths[column];
	}
}

static const char *colour_of(const struct vp_table_column *column, const union vp_cell *cell)
{
	if (column->type != VP_CELL_PERCENT || cell->percent < WARM)
		return NULL;
	return cell->percent >= HOT ? "\033[31m" : "\033[32m";
}

static void table_text_put_row(const struct vp_table *table, const union vp_cell *cells,
			       const size_t *widths, bool colour, struct vp_buffer *out)
{
	size_t columns = table->columns.count;

	for (size_t i = 0; i < columns; i++) {
		const struct vp_table_column *column = &table->columns.at[i];
		const char *paint = colour ? colour_of(column, &cells[i]) : NULL;
		if (paint)
			vp_buffer_string(out, paint);
		size_t start = out->size;
		table_text_put_cell(table, column, &cells[i], out);
		pad_from(start, widths[i], column->type != VP_CELL_TEXT, i + 1 == columns, out);
		if (paint)
			vp_buffer_string(out, "\033[m");
	}
}

static void table_text_put(const struct vp_table *table, bool colour, struct vp_buffer *out)
{
	size_t columns = table->columns.count;
	size_t *widths = vp_alloc((columns + 1) * sizeof(*widths));

	table_text_measure(table, widths);
	for (size_t i = 0; i < columns; i++) {
		size_t start = out->size;
		vp_buffer_string(out, table->columns.at[i].header);
		pad_from(start, widths[i], table->columns.at[i].type != VP_CELL_TEXT,
			 i + 1 == columns, out);
	}
	for (size_t row = 0; row < vp_table_rows(table); row++)
		table_text_put_row(table, &table->cells.at[row * columns], widths, colour, out);
	free(widths);
}

void vp_render_table_text(const struct vp_table *table, bool colour, struct vp_buffer *out)
{
	struct vp_table shown;

	vp_table_without_old(table, &shown);
	table_text_put(&shown, colour, out);
	vp_table_deinit(&shown);
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

void vp_render_histogram_text(const struct vp_table *table, bool colour, struct vp_buffer *out)
{
	static const char stars[] = "****************************************";
	enum { LONGEST = sizeof(stars) - 1 };
	size_t columns = table->columns.count, rows = vp_table_rows(table);
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
		size_t length = (size_t)((double)sum / (double)most * LONGEST + 0.5);
		for (size_t i = 0; i < columns; i++)
			vp_vec_push(&shown.cells, table->cells.at[row * columns + i]);
		vp_table_text(&shown, stars + LONGEST - (sum && !length ? 1 : length));
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

/* The column to leave out next: percentages go first. The number of columns: none is left. */
static size_t table_text_least(const struct vp_table *table, const bool *shown)
{
	static const enum vp_cell_type types[] = {VP_CELL_PERCENT, VP_CELL_DURATION};
	size_t columns = table->columns.count, least = columns;

	for (size_t type = 0; type < 2 && least == columns; type++)
		for (size_t i = 0; i < columns; i++)
			if (shown[i] && table->columns.at[i].type == types[type] &&
			    (least == columns || largest_in(table, i) < largest_in(table, least)))
				least = i;
	return least;
}

static size_t table_text_total(const size_t *widths, const bool *shown, size_t columns)
{
	size_t total = 0;

	for (size_t i = 0; i < columns; i++)
		total += shown[i] ? widths[i] + 2 : 0;
	return total ? total - 2 : 0;
}

void vp_render_table_fitted(const struct vp_table *table, size_t width, bool colour,
			    struct vp_buffer *out)
{
	struct vp_table now, fitted;
	struct vp_buffer names = {0};

	vp_table_without_old(table, &now);
	size_t columns = now.columns.count, least;
	VP_AUTO_FREE size_t *widths = vp_alloc((columns + 1) * sizeof(*widths));
	VP_AUTO_FREE bool *shown = vp_alloc(columns + 1);
	memset(shown, true, columns);
	table_text_measure(&now, widths);
	while (width && table_text_total(widths, shown, columns) > width &&
	       (least = table_text_least(&now, shown)) < columns) {
		shown[least] = false;
		vp_buffer_printf(&names, "%s%s", names.size ? ", " : "",
				 now.columns.at[least].header);
	}
	vp_table_choose(&now, shown, &fitted);
	table_text_put(&fitted, colour, out);
	if (names.size)
		vp_buffer_printf(out, "(narrow terminal: without %s; -v shows all)\n",
				 vp_buffer_text(&names));
	vp_buffer_deinit(&names);
	vp_table_deinit(&fitted);
	vp_table_deinit(&now);
}
