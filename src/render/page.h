/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording as one HTML page, in one file that makes no requests. The contents and layout are in
 * web/, which is bundled when vperf is built; the page's data is a JSON object in it
 * (web/src/data.ts has its types). */
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
	size_t left_out; /* rows that it had beyond these */
};

struct vp_page {
	const struct vp_report
	    *report; /* about the recording; its rows and stacks: the flame graph */
	const struct vp_report
	    *before; /* of another recording, that this one is compared with; or NULL */
	const struct vp_page_table *tables;
	size_t n_tables;
	const struct vp_diagnosis *diagnosis; /* with its account, or NULL */
	const struct vp_account_recording *account;
	const struct vp_track_store *tracks;           /* NULL: no events were recorded */
	const struct vp_interval_recording *intervals; /* NULL: none */
	const vp_sentences *notes;                     /* what is missing, a sentence each */
};

/* Appends the page; there is a frame. */
void vp_render_page(const struct vp_page *page, struct vp_buffer *out);

#endif
