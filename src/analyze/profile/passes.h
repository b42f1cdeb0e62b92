/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording gone through by several threads: a stretch of its time each, merged at the end. */
#ifndef VP_ANALYZE_PROFILE_PASSES_H
#define VP_ANALYZE_PROFILE_PASSES_H

#include "analyze/profile/pass.h"
#include "base/macros.h"

struct vp_passes {
	struct vp_pass *at; /* the first one has the totals of all */
	uint32_t count;
};

/* Processes the whole recording. If stretches do not fit together, or cannot be computed, one pass
 * repeats it. `input` has no bounds. Its streams are read to their end. */
struct vp_error *vp_passes_make(const struct vp_pass_input *input,
				struct vp_passes *ret) VP_MUST_CHECK;
void vp_passes_deinit(struct vp_passes *passes);

#endif
