/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders a report in each of its formats, appended to `out`. */
#ifndef VP_RENDER_RENDER_REPORT_H
#define VP_RENDER_RENDER_REPORT_H

#include <stdbool.h>

#include "analyze/common/health.h"
#include "analyze/report/report.h"
#include "base/buffer.h"

/* Notes as lines that start with #. Similar ones are merged, unless `verbose`. */
void vp_render_notes(const vp_sentences *notes, bool verbose, struct vp_buffer *out);
/* The line with total and shares, and an empty line. */
void vp_render_report_shares(const struct vp_report *report, const struct vp_profile_part *part,
			     struct vp_buffer *out);
/* Text: notes, shares, table, and the exits before steal. */
void vp_render_report_text(const struct vp_report *report, bool colour, struct vp_buffer *out);
/* `colour` is for text only. */
void vp_render_report_csv(const struct vp_report *report, bool colour, struct vp_buffer *out);
void vp_render_report_json(const struct vp_report *report, bool colour, struct vp_buffer *out);

#endif
