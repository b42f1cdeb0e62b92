/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of an interpreter in call chains: they replace the frames of the function that executes
 * them. */
#ifndef VP_GUESTREADER_INTERPRETED_H
#define VP_GUESTREADER_INTERPRETED_H

#include "guestreader/stack_job.h"

/*
 * Puts the job's interpreted frames into its chain, in place of frames between `low` and `high`. A
 * frame of that function executes all frames up to one with VP_INTERPRETED_ENTRY. If there are not
 * as many such groups as frames, the outermost ones belong together, or the innermost ones if the
 * chain is incomplete. Addresses of outer code objects are one higher, as those of return
 * addresses.
 */
void vp_interpreted_merge(struct vp_stack_job *job, uint64_t low, uint64_t high);

#endif
