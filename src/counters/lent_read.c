/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads host-provided counters exactly, and those of other threads. */
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "counters/counters_lent.h"
#include "counters/set.h"
#include "protocol/lent.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Causes a VM exit and entry, so that the host publishes. */
static void lent_read_force_exit(const struct vp_counters_lent *lent)
{
#if defined(__x86_64__)
	uint32_t a, b, c, d;

	__cpuid(0, a, b, c, d); /* intercepted by every hypervisor */
#else
	ssize_t ignored = send(lent->force, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)ignored;
#endif
}

/* False: the host did not publish despite a forced exit. */
static bool lent_read_publish(const struct vp_counters_lent *lent)
{
	uint64_t switches = lent->thread->sequence;
	uint64_t before = lent->cells[lent->thread->cpu].sequence;

	lent_read_force_exit(lent);
	return lent->cells[lent->thread->cpu].sequence != before ||
	       lent->thread->sequence != switches;
}

int vp_counters_lent_read(struct vp_counters_lent *lent, bool exact, const uint64_t *start,
			  uint64_t *values)
{
	if ((exact || lent->exact) && !lent_read_publish(lent))
		return VPERF_E_LOST;
	return vp_counters_lent_read_own(lent, start, values) ? VPERF_OK : VPERF_E_LOST;
}

uint64_t vp_counters_lent_runs(const struct vp_counters_lent *lent)
{
	enum {
		OF_RUN = 4
	}; /* changes of `sequence` per run: two when switched in, two when switched out */

	return lent->thread->sequence / OF_RUN;
}

int vp_counters_lent_stolen(struct vp_counters_lent *lent, uint64_t *ret)
{
	const volatile struct vp_lent_thread *thread = lent->thread;
	const volatile struct vp_lent_cell *cell;
	uint64_t switches, sequence;

	do {
		switches = thread->sequence;
		cell = &lent->cells[thread->cpu];
		sequence = cell->sequence;
		*ret = thread->stolen_base + cell->stolen;
	} while (cell->sequence != sequence || thread->sequence != switches);
	return vp_counters_lent_is_lost(lent, cell) ? VPERF_E_LOST : VPERF_OK;
}

/* The cell is not used unless the thread is running. */
static int status_of(const struct vp_counters_lent *lent, uint32_t cpu)
{
	return vp_counters_lent_is_lost(lent, &lent->cells[cpu]) || lent->thread->stale
		   ? VPERF_E_LOST
		   : VPERF_OK;
}

/* Observable state of a thread, and its time. */
struct snapshot {
	uint64_t switches, sequence; /* sequence: of the cell of the vCPU on which it runs */
	uint32_t state, cpu;
	struct vp_counters_lent_state counts;
};

static void lent_read_take_snapshot(const struct vp_counters_lent *lent, struct snapshot *ret)
{
	const volatile struct vp_lent_thread *thread = lent->thread;

	/* Clears padding: snapshots are compared by memcmp(). */
	memset(ret, 0, sizeof(*ret));
	ret->switches = thread->sequence;
	ret->state = thread->state;
	ret->counts.executed = thread->executed;
	ret->counts.n_children = thread->n_children;
	ret->counts.children_at_exec = thread->children_at_exec;
	bool runs = ret->state == VP_LENT_RUNNING;
	ret->cpu = runs ? thread->cpu : 0;
	const volatile struct vp_lent_cell *cell = &lent->cells[ret->cpu];
	ret->sequence = runs ? cell->sequence : 0;
	for (unsigned i = 0; i < lent->events; i++) {
		ret->counts.counts[i] = thread->base[i] + (runs ? cell->counts[i] : 0);
		ret->counts.at_exec[i] = thread->at_exec[i];
	}
}

/* Whether all counts are newer than the first snapshot. A publication may have been in progress
 * then, so two are required. */
static bool is_new(const struct snapshot *first, const struct snapshot *now)
{
	return now->state != VP_LENT_RUNNING || now->switches != first->switches ||
	       now->sequence - first->sequence >= 2;
}

/* If the thread runs on another vCPU, no program here can force a publication; that vCPU's next
 * tick does. Writers may be active during each snapshot: two equal snapshots, some time apart,
 * without writes in between, are valid. */
static int lent_read_other(const struct vp_counters_lent *lent, struct vp_counters_lent_state *ret)
{
	const struct timespec moment = {.tv_nsec = VP_COUNTERS_WAIT_NS};
	struct snapshot first, last, now;

	lent_read_take_snapshot(lent, &first);
	last = first;
	for (int i = 0; i < VP_COUNTERS_MAX_WAITS; i++) {
		nanosleep(&moment, NULL);
		lent_read_take_snapshot(lent, &now);
		if (!(now.switches % 2) && !memcmp(&now, &last, sizeof(now)) &&
		    is_new(&first, &now)) {
			*ret = now.counts;
			return status_of(lent, now.cpu);
		}
		last = now;
	}
	return VPERF_E_LOST;
}

int vp_counters_lent_read_state(const struct vp_counters_lent *lent,
				struct vp_counters_lent_state *ret)
{
	struct snapshot snapshot;

	if (lent->tid != gettid())
		return lent_read_other(lent, ret);
	if (!lent_read_publish(lent))
		return VPERF_E_LOST;
	do
		lent_read_take_snapshot(lent, &snapshot);
	while (lent->thread->sequence != snapshot.switches ||
	       lent->cells[snapshot.cpu].sequence != snapshot.sequence);
	*ret = snapshot.counts;
	return status_of(lent, snapshot.cpu);
}

/* Observable state of a thread's children. */
struct children_update {
	uint64_t counts[VP_LENT_EVENTS], sequence; /* sums of their per-CPU parts */
	uint64_t missed;
	uint32_t live, unsettled;
};

static void add_run(const struct vp_counters_lent *lent, unsigned cpu, struct children_update *ret)
{
	const volatile struct vp_lent_run *run = &lent->runs[cpu];
	const volatile struct vp_lent_cell *cell = &lent->cells[cpu];

	ret->unsettled += run->sequence % 2;
	if (!run->runs || run->index != lent->index || run->born != lent->thread->born)
		return;
	ret->sequence += run->sequence + cell->sequence;
	for (unsigned i = 0; i < lent->events; i++)
		ret->counts[i] += cell->counts[i] - run->start[i];
}

static void update_children(const struct vp_counters_lent *lent, struct children_update *ret)
{
	const volatile struct vp_lent_thread *thread = lent->thread;

	memset(ret, 0, sizeof(*ret)); /* clears padding: updates are compared by memcmp() */
	ret->live = thread->live;
	ret->missed = thread->missed;
	for (unsigned i = 0; i < lent->events; i++)
		ret->counts[i] = thread->children[i];
	for (unsigned cpu = 0; cpu < lent->n_cpus; cpu++)
		add_run(lent, cpu, ret);
}

int vp_counters_lent_children(const struct vp_counters_lent *lent, uint64_t counts[VP_LENT_EVENTS],
			      uint32_t *live)
{
	const struct timespec moment = {.tv_nsec = VP_COUNTERS_WAIT_NS};
	struct children_update last, now;

	update_children(lent, &now);
	for (int i = 0; i < VP_COUNTERS_MAX_WAITS; i++) {
		last = now;
		nanosleep(&moment, NULL);
		update_children(lent, &now);
		if (!now.unsettled && !memcmp(&now, &last, sizeof(now))) {
			memcpy(counts, now.counts, sizeof(now.counts));
			*live = now.live;
			return now.missed ? VPERF_E_LOST : VPERF_OK;
		}
	}
	return VPERF_E_LOST;
}
