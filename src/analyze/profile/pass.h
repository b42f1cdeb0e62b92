/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pass over a recording or a segment of its time: counts a view's ticks in totals. Passes over
 * adjacent segments are merged. */
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
	uint64_t from, to; /* only ticks of this time, ns of CLOCK_MONOTONIC; to 0: no limit */
	const int *pcpus;  /* only ticks of these pCPUs, if n_pcpus is not 0 */
	size_t n_pcpus;
	bool has_vcpu;
	uint64_t vcpu;
	bool per_vcpu;
	unsigned columns;  /* enum vp_frame_column; 0: the view's defaults */
	bool per_process;  /* default columns, and the pid */
	bool chains;       /* also count stacks, and samples of rows with their callees */
	bool needs_chains; /* a recording without stacks is an error */
	bool events_only;  /* samples are not needed: no notes about them */
	bool by_callees;   /* sort rows by samples including callees */
	const struct vp_sample_sink
	    *sink; /* receives the samples one by one, from one thread, instead of rows; or NULL */
	uint32_t jobs; /* threads; 0: one */
	bool max_jobs; /* use fewer threads for a small recording */
};

/* Input of a pass. */
struct vp_pass_input {
	const struct vp_profile_options *options;
	const struct vp_recording *recording;
	vp_vms *vms; /* VMs known only from records may be added; not by one of several passes */
	const vp_stream_readers *streams; /* at their start; for this pass only */
	const struct vp_naming *naming;
	uint64_t from, until; /* the segment, ns of CLOCK_MONOTONIC; 0: no limit */
	/* Process records strictly in order of time, even if the counts do not depend on it: if
	 * there are very many unnamed addresses, those that share a frame do. */
	bool in_order;
	/* The first of several concurrent passes, whose frames this one may share; or NULL. */
	struct vp_pass *first;
	/* Shared by concurrent passes: when set, they stop early and their results are invalid.
	 * NULL: there is only one. */
	bool *stop;
};

struct vp_pass { /* used by one thread */
	struct vp_pass_input input;
	vp_vms *vms; /* the input's, or `own`: those, followed by VMs known only from records */
	vp_vms own;
	size_t n_input_vms; /* number of VMs of the input */
	struct vp_timeline timeline;
	struct vp_flow flow;
	struct vp_pass_counts counts;
	size_t unnamed;      /* number of unnamed addresses */
	uint64_t begin, end; /* digests of the timeline's state */
} __attribute__((aligned(VP_APART)));

/* Columns of the rows: enum vp_frame_column. */
unsigned vp_pass_columns(const struct vp_profile_options *options);
/* Errors: an unknown VM. */
struct vp_error *vp_pass_init(struct vp_pass *pass,
			      const struct vp_pass_input *input) VP_MUST_CHECK;
void vp_pass_deinit(struct vp_pass *pass);
/* Processes the records of its segment. */
void vp_pass_run(struct vp_pass *pass);
/* Number of the segment's records of a stream that a pass over the next one has not read; 0 if it
 * has read all. */
uint64_t vp_pass_records(const struct vp_pass *pass, uint32_t stream);
/* Adds `next`, whose segment follows that of `pass`. False: the result would differ from a single
 * pass over both. */
bool vp_pass_merge(struct vp_pass *pass, const struct vp_pass *next) VP_MUST_CHECK;
/* After the last merge: the input's VMs are complete. */
void vp_pass_close(struct vp_pass *pass);

#endif
