/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host-provided ("lent") counters of a thread, read by the thread itself; and of other threads, for
 * the shim. */
#ifndef VP_COUNTERS_COUNTERS_LENT_H
#define VP_COUNTERS_COUNTERS_LENT_H

#include "counters/set.h"
#include "counters/user_read.h"
#include "protocol/lent.h"

/* Maximum number and length of waits for the kernel or the host. */
enum { VP_COUNTERS_MAX_WAITS = 1000, VP_COUNTERS_WAIT_NS = 100000 };

struct vp_counters_lent {
	const volatile struct vp_lent_cell *cells;
	const volatile struct vp_lent_thread *thread;
	const volatile struct vp_lent_run *runs; /* one per CPU */
	unsigned n_cpus, index;                  /* index of the thread */
	uint64_t marker;
	unsigned n,
	    indices[VPERF_MAX_EVENTS]; /* positions of the set's events among the provided ones */
	bool exact;
	pid_t tid;
	int force, socket; /* the agent releases the thread when `socket` is closed */
	unsigned events;   /* number of provided counters */
	char names[VP_LENT_EVENTS][VP_LENT_NAME_SIZE];
	void *maps[2];
	size_t sizes[2];
};

/* For all provided counters: the thread's counts, and their values at its first exec; number of
 * execs, and of created threads and processes, in total and until that exec. */
struct vp_counters_lent_state {
	uint64_t counts[VP_LENT_EVENTS], at_exec[VP_LENT_EVENTS];
	uint32_t executed, n_children, children_at_exec;
};

/* Counters of any thread that the caller may count; closed like any other. `inherits`: also counts
 * children that it creates from then on. */
int vp_counters_lent_attach(pid_t tid, bool inherits, struct vp_counters_lent **ret,
			    struct vperf_error *error);
/* Index among the provided counters, or -1. */
int vp_counters_lent_index(const struct vp_counters_lent *lent,
			   const struct vp_counters_event *event);
/* Exact read. If the thread is running elsewhere, waits for the host to publish. */
int vp_counters_lent_read_state(const struct vp_counters_lent *lent,
				struct vp_counters_lent_state *ret);
/* Counts of its children, for all provided counters, and the number of live ones. Running children
 * are counted up to their vCPUs' last publication. */
int vp_counters_lent_children(const struct vp_counters_lent *lent, uint64_t counts[VP_LENT_EVENTS],
			      uint32_t *live);

/* Whether the host or the agent is gone, or something was not counted: the marker of a running
 * thread shows that. */
static inline bool vp_counters_lent_is_lost(const struct vp_counters_lent *lent,
					    const volatile struct vp_lent_cell *cell)
{
	return cell->marker != lent->marker;
}

/*
 * Read by the thread itself, minus `start`. The writers of cell and thread run only while the
 * thread does not: at a VM entry, and at a context switch. If neither happened in between, all
 * values are of one moment. False: lost.
 */
static inline bool vp_counters_lent_read_own(const struct vp_counters_lent *lent,
					     const uint64_t *start, uint64_t *values)
{
	const volatile struct vp_lent_thread *thread = lent->thread;
	const volatile struct vp_lent_cell *cell;
	uint64_t switches, sequence;

	do {
		switches = thread->sequence;
		cell = &lent->cells[thread->cpu];
		sequence = cell->sequence;
		VP_COUNTERS_BARRIER();
		unsigned i = 0;
		do {
			unsigned index = lent->indices[i];
			values[i] = thread->base[index] + cell->counts[index] - start[i];
		} while (++i < lent->n);
		VP_COUNTERS_BARRIER();
	} while (cell->sequence != sequence || thread->sequence != switches);
	return !vp_counters_lent_is_lost(lent, cell);
}

#endif
