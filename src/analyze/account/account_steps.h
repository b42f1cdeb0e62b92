/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps of the accounting: the times at which a recorder wrote it, about once a second. A record is
 * a sum over the time since the previous step. A window from step to step has exact sums.
 */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_STEPS_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_STEPS_H

#include <stdint.h>

#include "analyze/common/window.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

typedef VP_VEC(uint64_t) vp_account_steps; /* CLOCK_MONOTONIC, ns, in order */

/* The steps of the recording in `directory`; the first one is `start`, when it began. Errors:
 * unreadable. */
struct vp_error *vp_account_steps_read(const char *directory, uint64_t start,
				       vp_account_steps *ret) VP_MUST_CHECK;
/* The shortest window from step to step that contains `window`, within the recording. */
struct vp_window vp_account_steps_around(const vp_account_steps *steps,
					 const struct vp_window *window);
/* Steps of two recordings that overlap, the closest to each other: there the first one ends, and
 * the second one begins. False: they do not overlap. */
bool vp_account_steps_seam(const vp_account_steps *first, const vp_account_steps *second,
			   uint64_t *end, uint64_t *begin);

#endif
