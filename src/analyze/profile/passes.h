/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes a recording with several threads: one segment of its time each, merged at the end. */
#ifndef VP_ANALYZE_PROFILE_PASSES_H
#define VP_ANALYZE_PROFILE_PASSES_H

#include "analyze/profile/pass.h"
#include "base/macros.h"

struct vp_passes {
	struct vp_pass *at; /* the first one has the total */
	uint32_t count;
};

/* Processes the whole recording. If segments do not fit together or cannot be computed, a single
 * pass repeats it. `input` has no limits of time. Its streams are read to their end. */
struct vp_error *vp_passes_make(const struct vp_pass_input *input,
				struct vp_passes *ret) VP_MUST_CHECK;
void vp_passes_deinit(struct vp_passes *passes);

#endif
