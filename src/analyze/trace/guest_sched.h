/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of guest threads from guest kernels' events (threads.h) and of their vCPUs from host
 * events: run and wait times, and components of wakeup latency. */
#ifndef VP_ANALYZE_TRACE_GUEST_SCHED_H
#define VP_ANALYZE_TRACE_GUEST_SCHED_H

#include "analyze/common/table.h"
#include "analyze/trace/threads.h"
#include "base/clock_text.h"
#include "base/vec.h"

enum { VP_GUEST_SCHED_BUCKETS = 40 }; /* bucket n: from 2^n ns */

/* Components of a wakeup's latency, which sum to the total. */
enum vp_wakeup_part {
	VP_WAKEUP_VCPU,       /* the vCPU thread was woken and waited for a pCPU */
	VP_WAKEUP_INJECTION,  /* until the guest handled the interrupt */
	VP_WAKEUP_SCHEDULING, /* the thread was runnable until it got the vCPU */
	VP_WAKEUP_PARTS
};

struct vp_guest_time {
	const struct vp_thread *thread;
	uint64_t on_cpu;   /* had its vCPU, in guest mode */
	uint64_t host;     /* had its vCPU, on a pCPU outside guest mode */
	uint64_t runnable; /* waited for its vCPU, which ran other threads */
	uint64_t off;      /* current or runnable, while its vCPU was not running */
	uint64_t asleep;
	uint64_t thief_ns; /* part of `off`: largest single piece by one thief */
	const char *thief;
};

struct vp_wakeup {
	const struct vp_thread *thread;
	const struct vp_thread_segment *segment;
	uint64_t begin, ns, segments[VP_WAKEUP_PARTS];
};

struct vp_guest_sched {
	struct vp_threads *threads;
	VP_VEC(struct vp_guest_time) times;
	uint64_t whole[VP_GUEST_SCHED_BUCKETS];
	uint64_t by_part[VP_WAKEUP_PARTS][VP_GUEST_SCHED_BUCKETS];
	size_t max_worst;
	VP_VEC(struct vp_wakeup) worst; /* sorted by length, descending */
	struct vp_clock_text clock;     /* set by the caller: format of times in tables */
};

/* Sums over all guest threads. */
void vp_guest_sched_sum(struct vp_guest_sched *sched);
void vp_guest_sched_deinit(struct vp_guest_sched *sched);
void vp_guest_sched_thread_table(struct vp_guest_sched *sched, struct vp_table *table);
void vp_guest_sched_wakeup_table(const struct vp_guest_sched *sched, struct vp_table *table);
void vp_guest_sched_worst_table(struct vp_guest_sched *sched, struct vp_table *table);

#endif
