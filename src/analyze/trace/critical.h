/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The critical path of a guest's thread: what it waited for during an interval, backwards through
 * wake-ups, across guest, hypervisor and host. The links have no gaps and do not overlap: their
 * lengths add up to the interval's, and so do the causes'.
 */
#ifndef VP_ANALYZE_TRACE_CRITICAL_H
#define VP_ANALYZE_TRACE_CRITICAL_H

#include "analyze/common/table.h"
#include "analyze/trace/threads.h"
#include "base/clock_text.h"
#include "base/macros.h"
#include "base/vec.h"

enum vp_critical_kind {
	VP_CRITICAL_GUEST,      /* a guest's thread ran */
	VP_CRITICAL_HYPERVISOR, /* it had its vCPU, which was not in guest mode */
	VP_CRITICAL_STOLEN,     /* its vCPU was runnable, and another thread had the pCPU */
	VP_CRITICAL_WAKEUP,     /* its vCPU was halted or about to be woken */
	VP_CRITICAL_QUEUE,      /* it waited in the guest for others on its vCPU */
	VP_CRITICAL_HOST,       /* a thread of the host ran */
	VP_CRITICAL_HOST_QUEUE, /* a thread of the host waited for a pCPU that another one had */
	VP_CRITICAL_TIMER,      /* until a timer */
	VP_CRITICAL_DEVICE,     /* until an interrupt of a device, of guest or host */
	VP_CRITICAL_UNKNOWN,    /* no event has it */
	VP_CRITICAL_KINDS
};

struct vp_critical_link {
	uint64_t begin, end;
	enum vp_critical_kind kind;
	const char *machine; /* "host", or the guest's name */
	const char *thread;  /* whose time it is: "name/TID"; NULL: none */
	const char *detail;  /* who had the CPU instead, or why it is not known; NULL: nothing */
};

struct vp_critical {
	struct vp_threads *threads;
	const struct vp_thread *thread; /* whose path it is */
	uint64_t from, to;
	VP_VEC(struct vp_critical_link) links; /* in order of time */
	struct vp_clock_text clock;            /* the caller's: of times in the table */
};

/* The thread of VM `vm` with that number, or with that name if it is the only one; errors: not
 * found, or several. */
struct vp_error *vp_critical_choose(struct vp_threads *threads, const char *vm, const char *word,
				    const struct vp_thread **ret) VP_MUST_CHECK;
/* Its path; the interval is cut to what is known of the thread. */
struct vp_error *vp_critical_find(struct vp_threads *threads, const struct vp_thread *thread,
				  struct vp_critical *ret) VP_MUST_CHECK;
void vp_critical_deinit(struct vp_critical *critical);
/* A row for each link; a row for each cause, the largest first. */
void vp_critical_chain_table(struct vp_critical *critical, struct vp_table *table);
void vp_critical_blame_table(struct vp_critical *critical, struct vp_table *table);

#endif
