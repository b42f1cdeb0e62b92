/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums over what guests' threads did by their own kernels' events (threads.h) and what their vCPUs
 * did by the host's: where their time went, and what made the latency of their wake-ups.
 */
#ifndef VP_ANALYZE_TRACE_GUEST_SCHED_H
#define VP_ANALYZE_TRACE_GUEST_SCHED_H

#include "analyze/common/table.h"
#include "analyze/trace/threads.h"
#include "base/clock_text.h"
#include "base/vec.h"

enum { VP_GUEST_SCHED_BUCKETS = 40 }; /* n has those from 2^n ns on */

/* Parts of a wakeup's latency; their sum is the whole. */
enum vp_wakeup_part {
	VP_WAKEUP_VCPU,       /* the vCPU's thread was woken, and waited for a pCPU */
	VP_WAKEUP_INJECTION,  /* until the guest was interrupted, and handled it */
	VP_WAKEUP_SCHEDULING, /* the thread was runnable until it had the vCPU */
	VP_WAKEUP_PARTS
};

struct vp_guest_time {
	const struct vp_thread *thread;
	uint64_t on_cpu;   /* it had its vCPU, and that was in guest mode */
	uint64_t host;     /* it had it, and that was on a pCPU outside of guest mode */
	uint64_t runnable; /* it waited for its vCPU, which ran others */
	uint64_t off;      /* current or runnable, and its vCPU did not run */
	uint64_t asleep;
	uint64_t thief_ns; /* of `off`: who took most of it in one piece */
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
	VP_VEC(struct vp_wakeup) worst; /* the longest first */
	struct vp_clock_text clock;     /* the caller's: of times in tables */
};

/* Sums all of the guests' threads. */
void vp_guest_sched_sum(struct vp_guest_sched *sched);
void vp_guest_sched_deinit(struct vp_guest_sched *sched);
void vp_guest_sched_thread_table(struct vp_guest_sched *sched, struct vp_table *table);
void vp_guest_sched_wakeup_table(const struct vp_guest_sched *sched, struct vp_table *table);
void vp_guest_sched_worst_table(struct vp_guest_sched *sched, struct vp_table *table);

#endif
