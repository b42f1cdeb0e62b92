/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One pass through a recording, or through a stretch of its time: a view's ticks become totals.
 * Passes of neighbouring stretches are merged into one.
 */
#ifndef VP_ANALYZE_PROFILE_PASS_H
#define VP_ANALYZE_PROFILE_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/profile/flow.h"
#include "analyze/profile/tick_counts.h"
#include "analyze/profile/view.h"
#include "base/alloc.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "store/trace_reader.h"
#include "timeline/timeline.h"

struct vp_profile_options {
	enum vp_view view;
	const char *vm;    /* a name or a pid, or NULL */
	const char *comm;  /* only rows of this process, or NULL */
	uint64_t pid;      /* only rows of this process, or 0 */
	uint64_t from, to; /* only ticks of this time, ns of CLOCK_MONOTONIC; to 0: no bound */
	const int *pcpus;  /* only ticks of these pCPUs, if n_pcpus is not 0 */
	size_t n_pcpus;
	bool has_vcpu;
	uint64_t vcpu;
	bool per_vcpu;
	unsigned columns;  /* enum vp_frame_column; 0: the view's usual ones */
	bool per_process;  /* usual columns, and the pid */
	bool chains;       /* call chains, too: stacks and what rows' callees took */
	bool needs_chains; /* a recording without call chains is an error */
	bool events_only;  /* samples are not requested: no notes about them */
	bool
	    by_callees; /* rows with most samples of their own and of what they called come first */
	const struct vp_sample_sink *sink; /* who wants the samples one by one instead of rows, or
					    * NULL; these come from one thread */
	uint32_t jobs;                     /* threads; 0: one */
	bool max_jobs; /* fewer if the recording is so small that more are not worth it */
};

/* Input of a pass. */
struct vp_pass_input {
	const struct vp_profile_options *options;
	const struct vp_recording *recording;
	vp_vms *vms; /* may grow by VMs that only the records know; by one pass of several it does
			not */
	const vp_stream_readers *streams; /* at their start; for this pass only */
	const struct vp_naming *naming;
	uint64_t from, until; /* the stretch, ns of CLOCK_MONOTONIC; 0: no bound */
	/* One record after another in order of time, even if that makes no difference: which
	 * addresses without a name share one frame depends on it when there are very many. */
	bool in_order;
	/* Shared by several passes at a time: set, they end early, and what they made is worthless.
	 * NULL: there is one only. */
	bool *stop;
};

struct vp_pass { /* one thread's */
	struct vp_pass_input input;
	vp_vms *vms; /* the input's, or `own`: those, followed by VMs that only the records have */
	vp_vms own;
	size_t given; /* VMs of the input */
	struct vp_timeline timeline;
	struct vp_flow flow;
	struct vp_pass_counts counts;
	size_t unnamed;      /* addresses without a name */
	uint64_t begin, end; /* digests of the timeline */
} __attribute__((aligned(VP_APART)));

/* Columns of the rows: enum vp_frame_column. */
unsigned vp_pass_columns(const struct vp_profile_options *options);
/* Errors: an unknown VM. */
struct vp_error *vp_pass_init(struct vp_pass *pass,
			      const struct vp_pass_input *input) VP_MUST_CHECK;
void vp_pass_deinit(struct vp_pass *pass);
/* Reads the records of its stretch and counts them. */
void vp_pass_run(struct vp_pass *pass);
/* Adds `next`, whose stretch follows that of `pass`. False: together they are not what one pass
 * over both would be. */
bool vp_pass_merge(struct vp_pass *pass, const struct vp_pass *next) VP_MUST_CHECK;
/* After the last one was merged: the input's VMs are all that are known. */
void vp_pass_close(struct vp_pass *pass);

#endif
