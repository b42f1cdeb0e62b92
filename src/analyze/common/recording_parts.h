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
	uint32_t boot;           /* number of the host's boot among the parts */
};
/* In order of time. */
typedef VP_VEC(struct vp_recording_part) vp_recording_parts;

struct vp_part_note {
	char *text;
	char *path;   /* of the first part that has it; NULL: the text names it */
	size_t parts; /* that have it */
};

void vp_recording_parts_deinit(vp_recording_parts *parts);
/* Appends a sentence: how many recordings there are, and the time between them that none has. */
void vp_recording_parts_note(const vp_recording_parts *parts, vp_sentences *sentences);

/* Notes of parts, each once. Zero-initialized. */
struct vp_part_notes {
	VP_VEC(struct vp_part_note) notes;
	size_t parts; /* that were read */
};
/* Takes copies of the notes of a part that was read. */
void vp_part_notes_add(struct vp_part_notes *notes, const char *path, const vp_sentences *part);
/* Takes a note, as text, that names its part. */
void vp_part_notes_take(struct vp_part_notes *notes, char *text);
/* Appends all: the recording's name, or their number, is before a note that not all have. Frees
 * `notes`.
 */
void vp_part_notes_finish(struct vp_part_notes *notes, vp_sentences *sentences);

#endif
