/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inserts interpreter frames into call chains, in place of the frames of the function that executes
 * them. */
#ifndef VP_GUESTREADER_INTERPRETED_H
#define VP_GUESTREADER_INTERPRETED_H

#include "guestreader/stack_job.h"

/* Replaces frames of the function in [low, high) in the job's chain by the job's interpreter
 * frames. Each of them executes a group of interpreter frames, which ends with
 * VP_INTERPRETED_ENTRY. If their numbers differ, the outermost ones are matched, or the innermost
 * ones if the chain is incomplete. Addresses of outer code objects are one higher, like return
 * addresses. */
void vp_interpreted_merge(struct vp_stack_job *job, uint64_t low, uint64_t high);

#endif
