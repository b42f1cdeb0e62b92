/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/table_join.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"

void vp_table_join_deinit(struct vp_table_join *join)
{
	vp_table_deinit(&join->table);
	vp_intern_deinit(&join->texts);
	vp_intern_deinit(&join->keys);
	vp_vec_deinit(&join->row_of);
}

static bool table_join_is_one_of(const char *const *keys, const char *key)
{
	for (; keys && *keys; keys++)
		if (!strcmp(*keys, key))
			return true;
	return false;
}

static bool table_join_is(const char *name, const char *key)
{
	return name && !strcmp(name, key);
}

static union vp_cell *table_join_cell(struct vp_table *table, size_t row, const char *key)
{
	return &table->cells.at[row * table->columns.count + vp_table_column_of(table, key)];
}

/* The values of the keys as one text. */
static uint32_t table_join_key(struct vp_table_join *join, const struct vp_table_join_rules *rules,
			       const struct vp_table *from, const union vp_cell *cells)
{
	struct vp_buffer text = {0};

	for (size_t i = 0; i < from->columns.count; i++) {
		if (!table_join_is_one_of(rules->keys, from->columns.at[i].key))
			continue;
		if (from->columns.at[i].type != VP_CELL_TEXT)
			vp_buffer_printf(&text, "%" PRIu64 "\n", cells[i].count);
		else
			vp_buffer_printf(&text, "%s\n", cells[i].text ? cells[i].text : "\t");
	}
	uint32_t key = vp_intern_string(&join->keys, vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return key;
}

/* A cell with its own copy of the text. */
static union vp_cell table_join_copy(struct vp_table_join *join, enum vp_cell_type type,
				     union vp_cell cell)
{
	if (type == VP_CELL_TEXT && cell.text)
		cell.text = vp_intern_text(&join->texts, vp_intern_string(&join->texts, cell.text));
	return cell;
}

static void table_join_append(struct vp_table_join *join, const struct vp_table *from,
			      const union vp_cell *cells)
{
	for (size_t i = 0; i < from->columns.count; i++)
		vp_vec_push(&join->table.cells,
			    table_join_copy(join, from->columns.at[i].type, cells[i]));
}

static bool table_join_is_count(enum vp_cell_type type)
{
	return type == VP_CELL_COUNT || type == VP_CELL_DURATION;
}

static uint64_t table_join_sum(uint64_t one, uint64_t other)
{
	return one == VP_CELL_NO_COUNT ? other : other == VP_CELL_NO_COUNT ? one : one + other;
}

static void table_join_cells(struct vp_table_join *join, const struct vp_table_join_rules *rules,
			     const struct vp_table *from, union vp_cell *to,
			     const union vp_cell *cells)
{
	size_t most = rules->most ? vp_table_column_of(from, rules->most) : 0;
	bool is_more = rules->most && cells[most].count > to[most].count;

	for (size_t i = 0; i < from->columns.count; i++) {
		const struct vp_table_column *column = &from->columns.at[i];
		bool of_most = table_join_is(rules->most, column->key) ||
			       table_join_is(rules->most_text, column->key);
		if (table_join_is_one_of(rules->keys, column->key) || (of_most && !is_more))
			continue;
		if (of_most || table_join_is_one_of(rules->last, column->key) ||
		    (column->type == VP_CELL_TEXT && cells[i].text))
			to[i] = table_join_copy(join, column->type, cells[i]);
		else if (table_join_is_count(column->type))
			to[i].count = table_join_sum(to[i].count, cells[i].count);
	}
}

void vp_table_join_add(struct vp_table_join *join, const struct vp_table_join_rules *rules,
		       const struct vp_table *from)
{
	struct vp_table *table = &join->table;
	size_t columns = from->columns.count;

	if (!table->columns.count) {
		table->clock = from->clock;
		table->least = from->least;
		table->whole = from->whole;
		vp_vec_each (&from->columns, column)
			vp_vec_push(&table->columns, *column);
	}
	for (size_t row = 0; row < vp_table_rows(from); row++) {
		const union vp_cell *cells = &from->cells.at[row * columns];
		uint32_t key = rules->keys ? table_join_key(join, rules, from, cells) : 0;
		if (rules->keys && key < join->row_of.count) {
			table_join_cells(join, rules, from,
					 &table->cells.at[join->row_of.at[key] * columns], cells);
			continue;
		}
		if (rules->keys)
			vp_vec_push(&join->row_of, (uint32_t)vp_table_rows(table));
		table_join_append(join, from, cells);
	}
}

static void table_join_set_percent(struct vp_table *table, const struct vp_table_join_rules *rules)
{
	size_t rows = vp_table_rows(table);
	uint64_t total = 0;

	for (size_t row = 0; row < rows; row++)
		total += table_join_cell(table, row, rules->part)->count;
	for (size_t row = 0; row < rows; row++) {
		uint64_t part = table_join_cell(table, row, rules->part)->count;
		uint64_t whole =
		    rules->whole ? table_join_cell(table, row, rules->whole)->count : total;
		table_join_cell(table, row, rules->percent)->percent =
		    whole ? 100.0 * (double)part / (double)whole : 0;
	}
}

/* The row of a bucket; without rows, the number of rows. */
static size_t table_join_row_of_bucket(struct vp_table *table, const char *key, uint64_t from)
{
	size_t rows = vp_table_rows(table), row = 0;

	while (row < rows && table_join_cell(table, row, key)->count != from)
		row++;
	return row;
}

/* Rows of all buckets from the first to the last one, in this order. */
static void table_join_fill_buckets(struct vp_table *table, const char *key)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table), found;
	VP_VEC(union vp_cell) cells = {0};
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t row = 0; row < rows; row++) {
		uint64_t from = table_join_cell(table, row, key)->count;
		least = from < least ? from : least;
		most = from > most ? from : most;
	}
	/* The first bucket begins at 0, the next one at 2 ns. */
	for (uint64_t from = least; rows && from <= most; from = from ? from << 1 : 2) {
		found = table_join_row_of_bucket(table, key, from);
		for (size_t i = 0; i < columns; i++)
			vp_vec_push(&cells, found < rows ? table->cells.at[found * columns + i]
							 : (union vp_cell){.count = 0});
		cells.at[cells.count - columns + vp_table_column_of(table, key)].count = from;
	}
	vp_vec_deinit(&table->cells);
	table->cells.at = cells.at;
	table->cells.count = cells.count;
	table->cells.room = cells.room;
}

/* A row's place in the order. */
struct join_order {
	uint64_t sum;
	size_t row;
};

static int table_join_by_sum(const void *one, const void *other)
{
	const struct join_order *a = one, *b = other;

	return a->sum != b->sum ? (a->sum < b->sum) - (a->sum > b->sum)
				: (a->row > b->row) - (a->row < b->row);
}

static void table_join_sort(struct vp_table *table, const char *const *keys)
{
	size_t columns = table->columns.count, rows = vp_table_rows(table);
	VP_AUTO_FREE struct join_order *order = vp_alloc((rows + 1) * sizeof(*order));
	union vp_cell *cells = vp_alloc((rows * columns + 1) * sizeof(*cells));

	for (size_t row = 0; row < rows; row++) {
		order[row] = (struct join_order){.row = row};
		for (const char *const *key = keys; *key; key++)
			order[row].sum += table_join_cell(table, row, *key)->count;
	}
	qsort(order, rows, sizeof(*order), table_join_by_sum);
	for (size_t row = 0; row < rows; row++)
		memcpy(&cells[row * columns], &table->cells.at[order[row].row * columns],
		       columns * sizeof(*cells));
	free(table->cells.at);
	table->cells.at = cells;
	table->cells.count = table->cells.room = rows * columns;
}

void vp_table_join_finish(struct vp_table_join *join, const struct vp_table_join_rules *rules)
{
	if (rules->percent)
		table_join_set_percent(&join->table, rules);
	if (rules->buckets)
		table_join_fill_buckets(&join->table, rules->buckets);
	if (rules->order)
		table_join_sort(&join->table, rules->order);
	join->row_of.count = 0;
}
