/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread's lent counters, as its owner reads them; and those of other threads, for the shim. */
#ifndef VP_COUNTERS_COUNTERS_LENT_H
#define VP_COUNTERS_COUNTERS_LENT_H

#include "counters/set.h"
#include "counters/user_read.h"
#include "protocol/lent.h"

/* How long is waited for the kernel or the host to do something, and how often. */
enum { VP_COUNTERS_MAX_WAITS = 1000, VP_COUNTERS_WAIT_NS = 100000 };

struct vp_counters_lent {
	const volatile struct vp_lent_cell *cells;
	const volatile struct vp_lent_thread *thread;
	const volatile struct vp_lent_run *runs; /* one for each CPU */
	unsigned n_cpus, index;                  /* the latter of the thread */
	uint64_t marker;
	unsigned n, indices[VPERF_MAX_EVENTS]; /* of the set's events among those lent */
	bool exact;
	pid_t tid;
	int force, socket; /* the agent forgets the thread when the latter is closed */
	unsigned events;   /* that the host lends */
	char names[VP_LENT_EVENTS][VP_LENT_NAME_SIZE];
	void *maps[2];
	size_t sizes[2];
};

/* For all host-provided counters: the thread's counts, and their values when it first executed a
 * program; the number of programs, and of created threads and processes, in all and until then. */
struct vp_counters_lent_state {
	uint64_t counts[VP_LENT_EVENTS], at_exec[VP_LENT_EVENTS];
	uint32_t executed, n_children, children_at_exec;
};

/* Counters of any thread that the caller may count; closed as any other. `inherits`: children that
 * it creates from then on are counted as its family. */
int vp_counters_lent_attach(pid_t tid, bool inherits, struct vp_counters_lent **ret,
			    struct vperf_error *error);
/* Where it is among what the host lends, or -1. */
int vp_counters_lent_index(const struct vp_counters_lent *lent,
			   const struct vp_counters_event *event);
/* An exact read. If the thread runs elsewhere, it waits for the host to publish. */
int vp_counters_lent_read_state(const struct vp_counters_lent *lent,
				struct vp_counters_lent_state *ret);
/* Counts of its family, for all host-provided counters, and the number of its living members.
 * Running ones are counted up to their vCPUs' last publication. */
int vp_counters_lent_children(const struct vp_counters_lent *lent, uint64_t counts[VP_LENT_EVENTS],
			      uint32_t *live);

/* The host, or the agent, has gone, or something was not counted: that is in the marker of a thread
 * that runs. */
static inline bool vp_counters_lent_is_lost(const struct vp_counters_lent *lent,
					    const volatile struct vp_lent_cell *cell)
{
	return cell->marker != lent->marker;
}

/*
 * By the thread itself, less `start`. The writers of cell and thread run only while it does not:
 * the cell's at an entry of its vCPU, the thread's at a switch. If neither came between, all of
 * this is of one moment. False: lost.
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
