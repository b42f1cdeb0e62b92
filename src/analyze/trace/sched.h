/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics over slices (analyze/trace/tracks.h): states of vCPUs and guest threads, histogram of
 * waits for a pCPU, and the longest waits. */
#ifndef VP_ANALYZE_TRACE_SCHED_H
#define VP_ANALYZE_TRACE_SCHED_H

#include "analyze/common/table.h"
#include "analyze/trace/tracks.h"
#include "base/clock_text.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { VP_SCHED_BUCKETS = 40 }; /* of waits; bucket n: from 2^n ns */

struct vp_sched_vcpu {
	uint32_t vm, vcpu, tid;
	uint64_t ns[VP_TRACK_STATES];
	uint64_t exact, uncertain, unknown; /* ns in guest mode */
	/* The present wait: its main thief. */
	uint64_t wait_begin, thief_ns;
	uint32_t thief_tid;
	const char *thief_comm;
};

struct vp_sched_thread {
	uint32_t vcpu; /* index in `vcpus` */
	uint32_t tid, pid;
	const char *comm;
	uint64_t exact, uncertain; /* ns in guest mode since it became current */
	uint64_t host, stolen;     /* ns of its vCPU while it was current */
};

struct vp_sched_theft {
	uint32_t thread; /* index in `threads` */
	uint32_t tid;
	const char *comm;
	uint64_t ns;
};

struct vp_sched_wait {
	uint32_t vcpu; /* index in `vcpus` */
	bool woken;    /* after a wakeup; false: after a preemption */
	uint64_t begin, ns;
	bool has_guest;
	uint32_t guest_tid;
	const char *guest_comm;
	uint32_t thief_tid;
	const char *thief_comm; /* NULL: unknown */
	bool has_thief;
};

struct vp_sched {
	VP_VEC(struct vp_sched_vcpu) vcpus;
	VP_VEC(struct vp_sched_thread) threads;
	VP_VEC(struct vp_sched_theft) thefts;
	struct vp_map vcpu_of, thread_of, theft_of;
	uint64_t woken[VP_SCHED_BUCKETS], preempted[VP_SCHED_BUCKETS];
	size_t max_waits; /* number of longest waits to keep */
	VP_VEC(struct vp_sched_wait) waits;
	uint64_t left_out; /* slices of threads and thefts for which there was no space */
	struct vp_intern texts;
	struct vp_clock_text clock; /* set by the caller: format of times in tables */
};

void vp_sched_deinit(struct vp_sched *sched);
void vp_sched_take(struct vp_sched *sched, const struct vp_track_slice *slice);

/* Tables of the statistics; texts belong to `sched` and `tracks`. */
void vp_sched_vcpu_table(const struct vp_sched *sched, struct vp_tracks *tracks,
			 struct vp_table *table);
void vp_sched_thread_table(struct vp_sched *sched, struct vp_tracks *tracks,
			   struct vp_table *table);
void vp_sched_wait_table(const struct vp_sched *sched, struct vp_table *table);
void vp_sched_worst_table(struct vp_sched *sched, struct vp_tracks *tracks, struct vp_table *table);

#endif
