/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders findings as text and JSON. */
#ifndef VP_RENDER_RENDER_DIAGNOSE_H
#define VP_RENDER_RENDER_DIAGNOSE_H

#include "analyze/account/account_recording.h"
#include "analyze/report/diagnose.h"
#include "base/json.h"

void vp_render_diagnosis_text(const struct vp_diagnosis *diagnosis,
			      const struct vp_account_recording *rec, struct vp_buffer *out);
/* Writes a member "findings" of the current object. */
void vp_render_diagnosis_json(const struct vp_diagnosis *diagnosis,
			      const struct vp_account_recording *rec, struct vp_json *json);

#endif
