/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The critical path of a guest thread in a time interval: the chain of waits, followed backwards
 * through wakeups, across guest, hypervisor and host. Links have no gaps and do not overlap: their
 * lengths, and those of the causes, add up to the interval.
 */
#ifndef VP_ANALYZE_TRACE_CRITICAL_H
#define VP_ANALYZE_TRACE_CRITICAL_H

#include "analyze/common/table.h"
#include "analyze/trace/threads.h"
#include "base/clock_text.h"
#include "base/macros.h"
#include "base/vec.h"

enum vp_critical_kind {
	VP_CRITICAL_GUEST,      /* a guest thread ran */
	VP_CRITICAL_HYPERVISOR, /* it had its vCPU, which was not in guest mode */
	VP_CRITICAL_STOLEN,     /* its vCPU was runnable, and another thread had the pCPU */
	VP_CRITICAL_WAKEUP,     /* its vCPU was halted or being woken */
	VP_CRITICAL_QUEUE,      /* it waited in the guest for other threads on its vCPU */
	VP_CRITICAL_HOST,       /* a host thread ran */
	VP_CRITICAL_HOST_QUEUE, /* a host thread waited for a pCPU used by another thread */
	VP_CRITICAL_TIMER,      /* waited for a timer */
	VP_CRITICAL_DEVICE,     /* waited for a device interrupt of guest or host */
	VP_CRITICAL_UNKNOWN,    /* no event shows the cause */
	VP_CRITICAL_KINDS
};

struct vp_critical_link {
	uint64_t begin, end;
	enum vp_critical_kind kind;
	const char *machine; /* "host", or the guest's name */
	const char *thread;  /* thread of the link: "name/TID"; NULL: none */
	const char *detail;  /* thread that had the CPU, or reason why it is unknown; NULL: none */
};

struct vp_critical {
	struct vp_threads *threads;
	const struct vp_thread *thread; /* thread of the path */
	uint64_t from, to;
	VP_VEC(struct vp_critical_link) links; /* sorted by time */
	struct vp_clock_text clock;            /* set by the caller: format of times in the table */
};

/* The thread of VM `vm` with that tid, or with that name if unique; errors: not found, or
 * several. */
struct vp_error *vp_critical_choose(struct vp_threads *threads, const char *vm, const char *word,
				    const struct vp_thread **ret) VP_MUST_CHECK;
/* Computes the path; the interval is limited to the known history of the thread. */
struct vp_error *vp_critical_find(struct vp_threads *threads, const struct vp_thread *thread,
				  struct vp_critical *ret) VP_MUST_CHECK;
void vp_critical_deinit(struct vp_critical *critical);
/* One row per link; one row per cause, sorted by time. */
void vp_critical_chain_table(struct vp_critical *critical, struct vp_table *table);
void vp_critical_blame_table(struct vp_critical *critical, struct vp_table *table);

#endif
