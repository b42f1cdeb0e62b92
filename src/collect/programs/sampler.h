/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the sampling programs and passes on their records. */
#ifndef VP_COLLECT_PROGRAMS_SAMPLER_H
#define VP_COLLECT_PROGRAMS_SAMPLER_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/identity.h"
#include "collect/programs/rings.h"
#include "collect/programs/trigger.h"
#include "schema/records.h"

struct vp_sampler;

struct vp_kernel_btf;

/* `trigger` must outlive the sampler. */
struct vp_sampler_options {
	const struct vp_trigger *trigger;
	size_t buffer_pages;
	bool by_memory; /* identify guest tasks from guest memory, after vp_sampler_identity() */
	bool with_chains;
	bool by_frame_pointers; /* stacks of guest user space: without copies */
	/* No sample hits a guest, even if perf reports one: in a Xen dom0 perf uses the last
	 * interrupt of Xen's PMU, even for another event. */
	bool hits_no_guests;
	/* On Intel, makes samples cheaper (NULL: without); must outlive the sampler. */
	const struct vp_exit_event *exit_event;
	struct vp_kernel_btf *kernel; /* already parsed, or NULL */
	vp_records_fn take;
	void *context; /* for `take` */
};
/* Loads and attaches the programs; samples start when the trigger is enabled. Errors: no
 * permission, missing kernel features. */
struct vp_error *vp_sampler_start(const struct vp_sampler_options *options,
				  struct vp_sampler **ret) VP_MUST_CHECK;
/* Attaches to a new event at that index of the trigger's `fds`, for a pCPU that came online. */
struct vp_error *vp_sampler_add(struct vp_sampler *sampler, size_t index) VP_MUST_CHECK;
/* A descriptor that is readable when a buffer is half full; it changes with vp_sampler_add(). */
int vp_sampler_fd(const struct vp_sampler *sampler);
/* Passes on all records, pCPU by pCPU. */
struct vp_error *vp_sampler_drain(struct vp_sampler *sampler) VP_MUST_CHECK;
/* Number of records lost in this pCPU's full buffer since the start. */
uint64_t vp_sampler_lost(const struct vp_sampler *sampler, uint32_t pcpu);
/* Notes how many bytes of a stack of that guest address space were needed, see
 * vp_stack_sizes_take(): what is not copied is read after the sample, and may have changed. */
void vp_sampler_note_stack(struct vp_sampler *sampler, uint64_t as_root, uint32_t needed);
void vp_sampler_free(struct vp_sampler *sampler);

/* Enables identification of guest tasks from guest memory, for the sampler. */
struct vp_identity *vp_sampler_identity(struct vp_sampler *sampler);

#endif
