/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwinds user stacks of a guest while it is recorded: copies of registers and stacks, with the
 * unwind tables of mapped files. Time and memory are bounded, even with forged guest data. */
#ifndef VP_GUESTREADER_UNWINDER_H
#define VP_GUESTREADER_UNWINDER_H

#include "guestmem/kernel/kernel.h"
#include "guestreader/stack_job.h"

struct vp_guest_unwinder;

struct vp_guest_unwinder *vp_guest_unwinder_new(void);
void vp_guest_unwinder_free(struct vp_guest_unwinder *unwinder);
/* Unwinds the job's stack, and writes its reply. */
void vp_guest_unwinder_run(struct vp_guest_unwinder *unwinder, const struct vp_guest_kernel *kernel,
			   struct vp_stack_job *job);

#endif
