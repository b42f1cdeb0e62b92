/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders the vCPU accounting of a recording. */
#ifndef VP_RENDER_RENDER_ACCOUNT_H
#define VP_RENDER_RENDER_ACCOUNT_H

#include "analyze/account/account_recording.h"
#include "analyze/common/table.h"
#include "base/json.h"

/* Header lines, which start with #: the recording and its problems. */
void vp_render_account_head(const struct vp_account_recording *rec, const char *verb,
			    struct vp_buffer *out);
/* One line: whether the accounting is consistent. */
void vp_render_checks(const struct vp_account_checks *checks, struct vp_buffer *out);
/* A table as a JSON array of objects, with the columns' keys. */
void vp_render_table_json(const struct vp_table *table, const char *key, struct vp_json *json);
/* Facts about the recording as members of a JSON object: "path": …, "notes": …. */
void vp_render_account_json(const struct vp_account_recording *rec, struct vp_json *json);

#endif
