/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwinds user stacks of a guest while it is recorded: copies of registers and stacks, with the
 * unwind tables of mapped files. Time and memory are bounded, even with forged guest data. */
#ifndef VP_GUESTREADER_UNWINDER_H
#define VP_GUESTREADER_UNWINDER_H

#include "base/buffer.h"
#include "guestmem/kernel/kernel.h"
#include "guestreader/stack_job.h"
#include "maps/format.h"
#include "unwind/user_chain.h"

struct vp_guest_unwinder;

/* Frames of language runtimes. */
struct vp_runtime_frames {
	/* Called first for each stack. `program` is valid until name() returns. */
	void (*begin)(void *context, const struct vp_user_program *program,
		      const struct vp_stack_job *job);
	/* As in struct vp_user_program. */
	enum vp_user_step (*step)(void *context, struct vp_user_registers *now, bool exact);
	/* Replaces addresses of a chain by those of functions. */
	void (*name)(void *context, const struct vp_user_program *program,
		     const struct vp_stack_job *job, struct vp_user_chain *chain);
	void *context;
};

struct vp_guest_unwinder *vp_guest_unwinder_new(void);
void vp_guest_unwinder_free(struct vp_guest_unwinder *unwinder);
/* Unwinds the job's stack, and writes its reply. `runtimes` may be NULL. */
void vp_guest_unwinder_run(struct vp_guest_unwinder *unwinder, const struct vp_guest_kernel *kernel,
			   const struct vp_runtime_frames *runtimes, struct vp_stack_job *job);

/* Appends a line `file BUILDID PATH` for each file with missing pages of unwind tables, once. */
void vp_guest_unwinder_list(struct vp_guest_unwinder *unwinder, struct vp_buffer *answer);
/* Reads missing pages from the host's copy of the file with that build-id. */
void vp_guest_unwinder_take_file(struct vp_guest_unwinder *unwinder,
				 const struct vp_build_id *build_id, int fd);

#endif
