/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders a recording as one self-contained HTML page. Layout and code are in web/, bundled when
 * vperf is built; the data is a JSON object in the page (types: web/src/data.ts). */
#ifndef VP_RENDER_PAGE_H
#define VP_RENDER_PAGE_H

#include "analyze/account/account_recording.h"
#include "analyze/common/health.h"
#include "analyze/common/table.h"
#include "analyze/model/interval_bins.h"
#include "analyze/report/diagnose.h"
#include "analyze/report/report.h"
#include "analyze/trace/track_store.h"
#include "base/buffer.h"

struct vp_page_table {
	const char *key, *title;
	struct vp_table table;
	size_t left_out; /* number of further rows that are not in the page */
};

struct vp_page {
	const struct vp_report
	    *report; /* facts about the recording; its rows and stacks: the flame graph */
	const struct vp_report *before; /* baseline recording for comparison; or NULL */
	const struct vp_page_table *tables;
	size_t n_tables;
	const struct vp_diagnosis *diagnosis; /* with accounting, or NULL */
	const struct vp_account_recording *account;
	const struct vp_track_store *tracks;           /* NULL: no events were recorded */
	const struct vp_interval_recording *intervals; /* NULL: no intervals */
	const vp_sentences *notes;                     /* sentences about missing data */
};

/* Appends the page; requires vp_page_frame(). */
void vp_render_page(const struct vp_page *page, struct vp_buffer *out);

#endif
