/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call chains of a guest's user space, while it is recorded: from copies of its registers and
 * stacks, by the unwind tables of the files that it has mapped. Time and memory are bounded,
 * whatever the guest has there.
 */
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
