/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Named frames: what one address of one sample is, each distinct one once and by number. */
#ifndef VP_ANALYZE_PROFILE_FRAME_H
#define VP_ANALYZE_PROFILE_FRAME_H

#include "analyze/common/key_set.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "timeline/guests.h"

/* Kind of a frame. KERNEL and USER are the guest's, or the host's in a frame without a VM. */
enum vp_kind { VP_KIND_KERNEL, VP_KIND_USER, VP_KIND_IDLE, VP_KIND_STEAL, VP_KIND_VM, VP_KINDS };

/* Columns by which frames are distinguished: frames that differ only in others are the same. */
enum vp_frame_column {
	VP_COLUMN_FUNCTION = 1,
	VP_COLUMN_MODULE = 2,
	VP_COLUMN_PROCESS = 4,
	VP_COLUMN_PID = 8,
	VP_COLUMN_VM = 16,
	VP_COLUMN_VCPU = 32,
	VP_COLUMNS_ALL = 63,
};

/* Texts are numbers in vp_frames.texts, or VP_NONE: unknown, or not the same wherever it was. */
struct vp_frame {
	uint32_t part; /* of the view; frames of different parts are different */
	uint32_t kind; /* enum vp_kind, or VP_NONE */
	uint32_t function, module, process, pid;
	uint32_t vm;   /* VP_NONE: the host */
	uint32_t vcpu; /* its number */
};

/* The address that a frame is at in a stack, and where its function begins, as far as that is
 * known: the address itself if not. 0: it is no code. */
struct vp_frame_address {
	uint64_t ip, start;
};

struct vp_frames {
	unsigned columns; /* enum vp_frame_column */
	struct vp_intern texts;
	struct vp_key_set keys;
	VP_VEC(struct vp_frame) at;
};

/* "kernel", "user", …, or NULL. `kind` is an enum vp_kind. */
const char *vp_kind_name(uint32_t kind);

/* `columns`: bits of enum vp_frame_column. */
void vp_frames_init(struct vp_frames *frames, unsigned columns);
void vp_frames_deinit(struct vp_frames *frames);
/* The number of that frame, added if it is new; other columns than those of `frames` are ignored.
 */
uint32_t vp_frames_add(struct vp_frames *frames, const struct vp_frame *frame);
/* Adds the frames of `from`, whose columns are the same. `part_of` has a number here for each of
 * its parts, `text_of` for each of its texts; returns one for each of its frames, to be freed. */
uint32_t *vp_frames_merge(struct vp_frames *frames, const struct vp_frames *from,
			  const uint32_t *part_of, const uint32_t *text_of) VP_MUST_CHECK;
/* The number of a frame's text. */
uint32_t vp_frames_text(struct vp_frames *frames, const char *text);

#endif
