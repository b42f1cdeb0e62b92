/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that count in aligned intervals, and passes on their records. */
#ifndef VP_COLLECT_PROGRAMS_INTERVALS_SOURCE_H
#define VP_COLLECT_PROGRAMS_INTERVALS_SOURCE_H

#include "base/error.h"
#include "base/macros.h"
#include "base/pcpus.h"
#include "bpf/intervals_abi.h"
#include "collect/agent/counts_client.h"
#include "collect/guests/guest_reader.h"
#include "collect/programs/exit_programs.h"
#include "collect/programs/rings.h"
#include "schema/recipe.h"

struct vp_intervals;

struct vp_kernel_btf;

struct vp_intervals_options {
	const struct vp_recipe *recipe; /* must outlive the source */
	size_t ring_bytes;              /* per pCPU: a power of two, at least a page */
	/* Programs that report VM exits; empty: programs of its own. */
	struct vp_exit_programs exit_programs;
	struct vp_kernel_btf *kernel; /* already parsed, or NULL */
	bool only_watched;            /* no intervals for vCPUs that were not added */
	vp_records_fn take;           /* receives whole intervals: an interval and its values */
	void *context;
};

/* Opens counters, loads and attaches the programs. Nothing is counted yet. */
struct vp_error *vp_intervals_open(const struct vp_intervals_options *options,
				   struct vp_intervals **ret) VP_MUST_CHECK;
/*
 * Starts intervals of thread `tid` of process `pid`: as vCPU number `vcpu`, or with VP_VCPU_UNKNOWN
 * as a task with its children. Threads may be added while counting. Errors: full table, an event
 * that cannot be opened.
 */
struct vp_error *vp_intervals_watch(struct vp_intervals *intervals, uint32_t pid, uint32_t tid,
				    uint32_t vcpu) VP_MUST_CHECK;
/* Whether vp_intervals_watch() was called for the thread. */
bool vp_intervals_is_watched(const struct vp_intervals *intervals, uint32_t tid);
/* Guest counts of the recipe: bits of enum vp_guest_count. */
uint32_t vp_intervals_guest_events(const struct vp_intervals *intervals);
/* Starts reading a guest's counters from its memory; vp_intervals_forget() stops it. Events counted
 * by its agent already stay with the agent. */
struct vp_error *vp_intervals_identify(struct vp_intervals *intervals,
				       const struct vp_guest_state *state,
				       const struct vp_guest_finding *finding) VP_MUST_CHECK;
void vp_intervals_forget(struct vp_intervals *intervals, uint32_t pid); /* of the VMM */
/* The same for counters of its agent, except events for which the kernel's own counter is known.
 * Addresses outside its memory are ignored. */
struct vp_error *vp_intervals_take_agent(struct vp_intervals *intervals,
					 const struct vp_guest_state *state,
					 const struct vp_agent_memory *agent) VP_MUST_CHECK;
void vp_intervals_forget_agent(struct vp_intervals *intervals, uint32_t pid);
/* Events requested from guest kernels that are not available for that guest so far. */
uint32_t vp_intervals_unknown(const struct vp_intervals *intervals, uint32_t pid);
/* Starts counting: starts every subject's first interval. */
struct vp_error *vp_intervals_begin(struct vp_intervals *intervals) VP_MUST_CHECK;
/* Starts counting on a pCPU that came online. Errors: its counters cannot be opened, or are
 * multiplexed. */
struct vp_error *vp_intervals_add_pcpu(struct vp_intervals *intervals, uint32_t pcpu) VP_MUST_CHECK;
/* A descriptor that is readable when a buffer is half full. */
int vp_intervals_fd(const struct vp_intervals *intervals);
/* Passes on available records. */
struct vp_error *vp_intervals_drain(struct vp_intervals *intervals) VP_MUST_CHECK;
/* Ends every subject's last interval and stops counting; the rest can still be drained. */
struct vp_error *vp_intervals_end(struct vp_intervals *intervals) VP_MUST_CHECK;
void vp_intervals_free(struct vp_intervals *intervals);

/* Losses so far. */
struct vp_intervals_lost vp_intervals_lost(const struct vp_intervals *intervals);
/* Whether exits are reported by the programs in the options, which some kernels do not allow. */
bool vp_intervals_has_joined(const struct vp_intervals *intervals);
/* A sentence about events that this machine cannot count, or NULL; a new string. */
char *vp_intervals_missing(const struct vp_intervals *intervals);

#endif
