/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "analyze/common/table.h"
#include "base/buffer.h"
#include "render/render_table.h"

/* A loop, because strpbrk() is ten times slower for short texts. */
static bool needs_quotes(const char *text)
{
	for (; *text; text++)
		if (*text == ',' || *text == '"' || *text == '\r' || *text == '\n')
			return true;
	return false;
}

void vp_render_csv_field(const char *text, struct vp_buffer *out)
{
	if (!needs_quotes(text)) {
		vp_buffer_string(out, text);
		return;
	}
	vp_buffer_string(out, "\"");
	for (; *text; text++)
		vp_buffer_append(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	vp_buffer_string(out, "\"");
}

static void table_csv_put_csv_cell(const struct vp_table_column *column, const union vp_cell *cell,
				   struct vp_buffer *out)
{
	switch (column->type) {
	case VP_CELL_TEXT:
		vp_render_csv_field(cell->text ? cell->text : "", out);
		break;
	case VP_CELL_COUNT:
	case VP_CELL_DURATION:
	case VP_CELL_TIME:
		if (cell->count != VP_CELL_NO_COUNT)
			vp_buffer_count(out, cell->count);
		break;
	case VP_CELL_PERCENT:
		vp_buffer_printf(out, "%.6g", cell->percent);
		break;
	}
}

void vp_render_table_csv(const struct vp_table *table, bool with_keys, struct vp_buffer *out)
{
	size_t columns = table->columns.count;

	for (size_t i = 0; with_keys && i < columns; i++) {
		vp_render_csv_field(table->columns.at[i].key, out);
		vp_buffer_string(out, i + 1 == columns ? "\n" : ",");
	}
	for (size_t i = 0; i < table->cells.count; i++) {
		table_csv_put_csv_cell(&table->columns.at[i % columns], &table->cells.at[i], out);
		vp_buffer_string(out, i % columns + 1 == columns ? "\n" : ",");
	}
}
