/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the page's data (page.h); types: web/src/data.ts. */
#ifndef VP_RENDER_PAGE_PARTS_H
#define VP_RENDER_PAGE_PARTS_H

#include "analyze/model/interval_bins.h"
#include "analyze/report/report.h"
#include "analyze/trace/track_store.h"
#include "base/json.h"

/* Each writes a member of the current object. */
void vp_page_put_profile(const struct vp_report *report, const char *key, struct vp_json *json);
void vp_page_put_tracks(const struct vp_track_store *tracks, const struct vp_report *report,
			struct vp_json *json);
void vp_page_put_intervals(const struct vp_interval_recording *rec, struct vp_json *json);

/* Numbers as LEB128 in base64: writes member `key`; empties `packed`. */
void vp_page_pack(struct vp_buffer *packed, uint64_t number);
void vp_page_put_packed(struct vp_json *json, const char *key, struct vp_buffer *packed);

#endif
