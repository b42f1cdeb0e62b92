/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any table as text for people, or as CSV. */
#ifndef VP_RENDER_RENDER_TABLE_H
#define VP_RENDER_RENDER_TABLE_H

#include <stdbool.h>

#include "analyze/common/table.h"
#include "base/buffer.h"

/* Columns aligned, numbers to the right; the last column takes what it needs. */
void vp_render_table_text(const struct vp_table *table, bool colour, struct vp_buffer *out);
/* The same, with a bar for each row, as long as the row's counts are of the largest row's. */
void vp_render_histogram_text(const struct vp_table *table, bool colour, struct vp_buffer *out);
/* The same, at most `width` characters wide if that can be done by leaving out columns of
 * percentages and durations, smallest first; a line then names them. 0: any width. */
void vp_render_table_fitted(const struct vp_table *table, size_t width, bool colour,
			    struct vp_buffer *out);
/* RFC 4180: a line of keys (wanted or not), then a line per row. */
void vp_render_table_csv(const struct vp_table *table, bool with_keys, struct vp_buffer *out);
/* One CSV field, quoted where it has to be. */
void vp_render_csv_field(const char *text, struct vp_buffer *out);

#endif
