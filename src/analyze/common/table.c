/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/text.h"

void vp_table_deinit(struct vp_table *table)
{
	vp_vec_deinit(&table->columns);
	vp_vec_deinit(&table->cells);
	vp_vec_each (&table->cleaned, text)
		free(*text);
	vp_vec_deinit(&table->cleaned);
}

void vp_table_column_add(struct vp_table *table, const char *key, const char *header,
			 const char *unit, enum vp_cell_type type)
{
	vp_vec_push(&table->columns, ((struct vp_table_column){key, header, unit, type}));
}

void vp_table_column_add_old(struct vp_table *table, const char *key, enum vp_cell_type type)
{
	vp_table_column_add(table, key, NULL, "", type);
}

/* Whether the row above has the same text in this column; for most rows of a VM it has. */
static bool is_as_above(const struct vp_table *table, const char *text)
{
	size_t columns = table->columns.count, cells = table->cells.count;

	return columns && cells >= columns && table->cells.at[cells - columns].text == text;
}

void vp_table_text(struct vp_table *table, const char *text)
{
	if (text && !is_as_above(table, text) && !vp_text_is_clean(text)) {
		vp_vec_push(&table->cleaned, vp_text_cleaned(text));
		text = table->cleaned.at[table->cleaned.count - 1];
	}
	vp_vec_push(&table->cells, ((union vp_cell){.text = text}));
}

void vp_table_count(struct vp_table *table, uint64_t count)
{
	vp_vec_push(&table->cells, ((union vp_cell){.count = count}));
}

void vp_table_percent(struct vp_table *table, double percent)
{
	vp_vec_push(&table->cells, ((union vp_cell){.percent = percent}));
}

size_t vp_table_column_of(const struct vp_table *table, const char *key)
{
	size_t index = 0;

	while (index < table->columns.count && strcmp(table->columns.at[index].key, key) != 0)
		index++;
	return index;
}

size_t vp_table_rows(const struct vp_table *table)
{
	return table->columns.count ? table->cells.count / table->columns.count : 0;
}

static bool is_zero(enum vp_cell_type type, const union vp_cell *cell)
{
	switch (type) {
	case VP_CELL_COUNT:
	case VP_CELL_DURATION:
		return !cell->count;
	case VP_CELL_PERCENT:
		return cell->percent <= 0;
	default:
		return false;
	}
}

void vp_table_choose(const struct vp_table *table, const bool *shown, struct vp_table *ret)
{
	size_t columns = table->columns.count;

	*ret = (struct vp_table){.clock = table->clock, .least = table->least};
	for (size_t i = 0; i < columns; i++)
		if (shown[i])
			vp_vec_push(&ret->columns, table->columns.at[i]);
	for (size_t i = 0; i < vp_table_rows(table) * columns; i++)
		if (shown[i % columns])
			vp_vec_push(&ret->cells, table->cells.at[i]);
}

void vp_table_without_old(const struct vp_table *table, struct vp_table *ret)
{
	VP_AUTO_FREE bool *shown = vp_alloc(table->columns.count + 1);

	for (size_t i = 0; i < table->columns.count; i++)
		shown[i] = table->columns.at[i].header;
	vp_table_choose(table, shown, ret);
}

void vp_table_without_zeros(const struct vp_table *table, struct vp_table *ret)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table);
	VP_AUTO_FREE bool *shown = vp_alloc(columns + 1);

	for (size_t i = 0; i < columns; i++) {
		const struct vp_table_column *column = &table->columns.at[i];
		shown[i] = column->header && (!rows || !strcmp(column->key, "vcpu"));
		for (size_t row = 0; column->header && row < rows && !shown[i]; row++)
			shown[i] = !is_zero(column->type, &table->cells.at[row * columns + i]);
	}
	vp_table_choose(table, shown, ret);
}

size_t vp_table_without_small(const struct vp_table *table, const char *key, double least,
			      struct vp_table *ret)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table), column = 0, dropped = 0;

	*ret = (struct vp_table){.clock = table->clock, .least = table->least};
	vp_vec_each (&table->columns, each)
		vp_vec_push(&ret->columns, *each);
	while (column < columns && strcmp(table->columns.at[column].key, key) != 0)
		column++;
	for (size_t row = 0; row < rows; row++) {
		const union vp_cell *cells = &table->cells.at[row * columns];
		if (column < columns && cells[column].percent < least) {
			dropped++;
			continue;
		}
		for (size_t i = 0; i < columns; i++)
			vp_vec_push(&ret->cells, cells[i]);
	}
	return dropped;
}

void vp_table_limit(struct vp_table *table, uint64_t rows)
{
	if (rows && vp_table_rows(table) > rows)
		table->cells.count = rows * table->columns.count;
}

struct sorted_row {
	const union vp_cell *cells;
	size_t column;
	enum vp_cell_type type;
};

/* Unknown values sort last. */
static int table_compare_cells(enum vp_cell_type type, const union vp_cell *a,
			       const union vp_cell *b)
{
	switch (type) {
	case VP_CELL_TEXT:
		if (!a->text || !b->text)
			return !a->text - !b->text;
		return strcmp(a->text, b->text);
	case VP_CELL_PERCENT:
		return (a->percent < b->percent) - (a->percent > b->percent);
	default:
		if (a->count == VP_CELL_NO_COUNT || b->count == VP_CELL_NO_COUNT)
			return (a->count == VP_CELL_NO_COUNT) - (b->count == VP_CELL_NO_COUNT);
		return (a->count < b->count) - (a->count > b->count);
	}
}

static int by_cell(const void *one, const void *other)
{
	const struct sorted_row *a = one, *b = other;
	int order = table_compare_cells(a->type, &a->cells[a->column], &b->cells[b->column]);

	return order ? order : (a->cells > b->cells) - (a->cells < b->cells);
}

void vp_table_sort(struct vp_table *table, size_t column)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table);
	size_t size = columns * sizeof(*table->cells.at);
	VP_AUTO_FREE struct sorted_row *order = vp_alloc((rows + 1) * sizeof(*order));
	VP_AUTO_FREE union vp_cell *cells = vp_alloc(rows * size + 1);

	for (size_t i = 0; i < rows; i++)
		order[i] = (struct sorted_row){&table->cells.at[i * columns], column,
					       table->columns.at[column].type};
	qsort(order, rows, sizeof(*order), by_cell);
	for (size_t i = 0; i < rows; i++)
		memcpy(&cells[i * columns], order[i].cells, size);
	if (rows)
		memcpy(table->cells.at, cells, rows * size);
}
