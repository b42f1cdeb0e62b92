/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of 'vperf info', appended to `out`. */
#ifndef VP_RENDER_RENDER_SUMMARY_H
#define VP_RENDER_RENDER_SUMMARY_H

#include "analyze/report/summary.h"
#include "base/buffer.h"

/* Limited to `width` characters; 0: no limit. Verbose: all notes and columns. */
void vp_render_summary_text(const struct vp_summary *summary, size_t width, bool verbose,
			    struct vp_buffer *out);
void vp_render_summary_json(const struct vp_summary *summary, struct vp_buffer *out);

#endif
