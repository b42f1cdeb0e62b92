/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_RENDER_CALL_GRAPH_H
#define VP_RENDER_CALL_GRAPH_H

#include "analyze/report/report.h"
#include "base/buffer.h"

/* Appends the call tree of a row, with the settings of report->graph; nothing without one. */
void vp_render_call_graph(const struct vp_report *report, const struct vp_profile_part *part,
			  uint32_t row, struct vp_buffer *out);

#endif
