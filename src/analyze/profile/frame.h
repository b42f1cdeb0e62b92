/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Named frames: distinct results of resolving sample addresses, numbered. */
#ifndef VP_ANALYZE_PROFILE_FRAME_H
#define VP_ANALYZE_PROFILE_FRAME_H

#include "analyze/common/key_set.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "timeline/guests.h"

/* Function of code in memory without a file, for which no runtime has a name. */
#define VP_JIT_CODE "[JIT code]"

/* Kind of a frame. KERNEL and USER are of the guest; of the host in a frame without a VM. */
enum vp_kind { VP_KIND_KERNEL, VP_KIND_USER, VP_KIND_IDLE, VP_KIND_STEAL, VP_KIND_VM, VP_KINDS };

/* Columns that distinguish frames: frames that differ only in others are the same. */
enum vp_frame_column {
	VP_COLUMN_FUNCTION = 1,
	VP_COLUMN_MODULE = 2,
	VP_COLUMN_PROCESS = 4,
	VP_COLUMN_PID = 8,
	VP_COLUMN_VM = 16,
	VP_COLUMN_VCPU = 32,
	VP_COLUMNS_ALL = 63,
};

/* Texts are numbers in vp_frames.texts, or VP_NONE: unknown, or not unique. */
struct vp_frame {
	uint32_t part; /* of the view; frames of different parts are distinct */
	uint32_t kind; /* enum vp_kind, or VP_NONE */
	uint32_t function, module, process, pid;
	uint32_t vm;   /* VP_NONE: the host */
	uint32_t vcpu; /* its number */
};

/* Address of a frame in a stack, and start of its function; if unknown, the address itself. 0: not
 * code. */
struct vp_frame_address {
	uint64_t ip, start;
};

struct vp_frames {
	unsigned columns; /* enum vp_frame_column */
	struct vp_intern texts;
	struct vp_key_set keys;
	VP_VEC(struct vp_frame) at;
};

/* "kernel", "user", …, or NULL. `kind`: enum vp_kind. */
const char *vp_kind_name(uint32_t kind);

/* `columns`: bits of enum vp_frame_column. */
void vp_frames_init(struct vp_frames *frames, unsigned columns);
void vp_frames_deinit(struct vp_frames *frames);
/* The number of that frame, added if new; columns other than those of `frames` are ignored. */
uint32_t vp_frames_add(struct vp_frames *frames, const struct vp_frame *frame);
/* From numbers of one set of frames to those of another. */
struct vp_frame_numbers {
	const uint32_t *parts, *texts;
	const uint32_t *vms; /* NULL: the same */
};
/* Adds the frames of `from`, which has the same columns; returns an array that maps its frames, to
 * be freed. */
uint32_t *vp_frames_merge(struct vp_frames *frames, const struct vp_frames *from,
			  const struct vp_frame_numbers *numbers) VP_MUST_CHECK;
/* The number of a text. */
uint32_t vp_frames_text(struct vp_frames *frames, const char *text);

#endif
