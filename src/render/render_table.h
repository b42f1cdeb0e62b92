/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders any table as text or CSV. */
#ifndef VP_RENDER_RENDER_TABLE_H
#define VP_RENDER_RENDER_TABLE_H

#include <stdbool.h>

#include "analyze/common/table.h"
#include "base/buffer.h"

/* Aligned columns, numbers right-aligned; the last column is not padded. */
void vp_render_table_text(const struct vp_table *table, bool colour, struct vp_buffer *out);
/* The same, with a bar per row proportional to the row's count, shortened to fit `width`; 0: no
 * limit. */
void vp_render_histogram_text(const struct vp_table *table, size_t width, bool colour,
			      struct vp_buffer *out);
/* The same, limited to `width` characters if possible, by omitting the columns that the table
 * names, then percentages and durations, smallest first; a line then lists them. 0: no limit. */
void vp_render_table_fitted(const struct vp_table *table, size_t width, bool colour,
			    struct vp_buffer *out);
/* RFC 4180: a line of keys (optional), then a line per row. */
void vp_render_table_csv(const struct vp_table *table, bool with_keys, struct vp_buffer *out);
/* One CSV field, quoted if necessary. */
void vp_render_csv_field(const char *text, struct vp_buffer *out);

#endif
