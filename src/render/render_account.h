/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of a recording for people. */
#ifndef VP_RENDER_RENDER_ACCOUNT_H
#define VP_RENDER_RENDER_ACCOUNT_H

#include "analyze/account/account_recording.h"
#include "analyze/common/table.h"
#include "base/json.h"

/* The recording and its problems: lines that start with #. */
void vp_render_account_head(const struct vp_account_recording *rec, const char *verb,
			    struct vp_buffer *out);
/* One line: whether the account is right. */
void vp_render_checks(const struct vp_account_checks *checks, struct vp_buffer *out);
/* A table as a JSON array of objects, by the columns' keys. */
void vp_render_table_json(const struct vp_table *table, const char *key, struct vp_json *json);
/* Facts of the recording as members of a JSON object: "path": …, "notes": …. */
void vp_render_account_json(const struct vp_account_recording *rec, struct vp_json *json);

#endif
