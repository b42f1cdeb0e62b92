/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/recording_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/recording.h"

/* A shorter time without data is not reported. */
#define LEAST_GAP 1000000

void vp_recording_parts_deinit(vp_recording_parts *parts)
{
	vp_vec_each (parts, part)
		free(part->path);
	vp_vec_deinit(parts);
}

/* By the clock that cannot be set if both are of one boot, otherwise by time of day. */
static uint64_t gap_between(const struct vp_recording *before, uint64_t end,
			    const struct vp_recording *after, uint64_t begin)
{
	if (!before->boot[0] || strcmp(before->boot, after->boot) != 0) {
		end += (uint64_t)before->realtime_offset;
		begin += (uint64_t)after->realtime_offset;
	}
	return begin > end ? begin - end : 0;
}

/* Total gaps between the parts. An unreadable part is a gap. */
static uint64_t parts_gap(const vp_recording_parts *parts)
{
	struct vp_recording before = {0}, about;
	uint64_t gap = 0, end = 0;

	vp_vec_each (parts, part) {
		VP_AUTO_ERROR struct vp_error *error = vp_recording_read(part->path, &about);
		if (error)
			continue;
		if (before.boot)
			gap += gap_between(&before, end, &about, part->window.from);
		end = part->window.to;
		vp_recording_deinit(&before);
		before = about;
	}
	vp_recording_deinit(&before);
	return gap;
}

void vp_recording_parts_note(const vp_recording_parts *parts, vp_sentences *sentences)
{
	char text[VP_DURATION_SIZE];
	uint64_t gap = parts_gap(parts);

	vp_vec_push(sentences,
		    gap >= LEAST_GAP
			? vp_format("%zu recordings; nothing was recorded in %s between them",
				    parts->count, vp_text_long_duration(gap, text))
			: vp_format("%zu recordings, without a gap", parts->count));
}

static struct vp_part_note *note_of(struct vp_part_notes *notes, const char *text)
{
	vp_vec_each (&notes->notes, note)
		if (note->path && !strcmp(note->text, text))
			return note;
	return NULL;
}

void vp_part_notes_add(struct vp_part_notes *notes, const char *path, const vp_sentences *part)
{
	notes->parts++;
	vp_vec_each (part, sentence) {
		struct vp_part_note *known = note_of(notes, *sentence);
		if (known)
			known->parts++;
		else
			vp_vec_push(&notes->notes, ((struct vp_part_note){vp_strdup(*sentence),
									  vp_strdup(path), 1}));
	}
}

void vp_part_notes_take(struct vp_part_notes *notes, char *text)
{
	vp_vec_push(&notes->notes, ((struct vp_part_note){.text = text}));
}

static char *part_note_text(const struct vp_part_notes *notes, struct vp_part_note *note)
{
	if (!note->path || note->parts == notes->parts)
		return VP_TAKE(note->text);
	if (note->parts > 1)
		return vp_format("in %zu of %zu recordings: %s", note->parts, notes->parts,
				 note->text);
	const char *slash = strrchr(note->path, '/');
	return vp_format("'%s': %s", slash ? slash + 1 : note->path, note->text);
}

void vp_part_notes_finish(struct vp_part_notes *notes, vp_sentences *sentences)
{
	vp_vec_each (&notes->notes, note) {
		vp_vec_push(sentences, part_note_text(notes, note));
		free(note->text);
		free(note->path);
	}
	vp_vec_deinit(&notes->notes);
}
