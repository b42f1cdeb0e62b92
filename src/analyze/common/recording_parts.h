/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of several recordings of a host that are read as one. */
#ifndef VP_ANALYZE_COMMON_RECORDING_PARTS_H
#define VP_ANALYZE_COMMON_RECORDING_PARTS_H

#include "analyze/common/health.h"
#include "analyze/common/window.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* A recording's part of the requested time. */
struct vp_recording_part {
	char *path;
	struct vp_window window; /* on the recording's clock */
};
/* In order of time. */
typedef VP_VEC(struct vp_recording_part) vp_recording_parts;

void vp_recording_parts_deinit(vp_recording_parts *parts);
/* Appends a sentence: how many recordings there are, and the time between them that none has. */
void vp_recording_parts_note(const vp_recording_parts *parts, vp_sentences *sentences);
/* Appends copies of those sentences that are not in `sentences` yet. */
void vp_sentences_join(vp_sentences *sentences, const vp_sentences *from);

#endif
