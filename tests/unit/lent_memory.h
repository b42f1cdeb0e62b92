/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an agent shares of lent counters, and a test in the place of what passes while the library
 * waits. */
#ifndef VP_TESTS_LENT_MEMORY_H
#define VP_TESTS_LENT_MEMORY_H

#include "unit.h"

#include <time.h>

#include "counters/counters_lent.h"

enum { CPUS = 3, PLACE = 5 /* of the thread */, MARKER = 77 };
/* Of each counter, at each publication. */
enum { MORE = 1001 };

static inline uint64_t count_of(unsigned cpu, unsigned index)
{
	return 10000 * (cpu + 1) + 100 * index;
}

static inline uint64_t base_of(unsigned index)
{
	return index % 2 ? 7 + index : 0 - (uint64_t)(3 + index);
}

/* What the agent shares; behind the threads are the stints. */
struct shared {
	struct vp_lent_cell cells[CPUS + 1];
	struct vp_lent_thread threads[VP_LENT_THREADS];
	struct vp_lent_run runs[CPUS + 1]; /* the last is none of theirs */
};
static struct shared memory;
static struct vp_counters_lent lent;

static inline struct vp_lent_thread *thread_here(void)
{
	return &memory.threads[PLACE];
}

static inline void fill(struct shared *shared)
{
	memset(shared, 0, sizeof(*shared));
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		shared->cells[cpu] = (struct vp_lent_cell){
		    .marker = MARKER, .sequence = 10 + cpu, .stolen = 500 * (cpu + 1)};
		for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
			shared->cells[cpu].counts[i] = count_of(cpu, i);
	}
	struct vp_lent_thread *thread = &shared->threads[PLACE];
	*thread = (struct vp_lent_thread){.sequence = 8,
					  .state = VP_LENT_RUNNING,
					  .cpu = 1,
					  .stolen_base = 40,
					  .executed = 2,
					  .n_children = 9,
					  .children_at_exec = 4,
					  .born = 3};
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++) {
		thread->base[i] = base_of(i);
		thread->at_exec[i] = 60 + i;
	}
}

/* The thread's counters as one who attached to it has them, all events being asked for in the
 * opposite order. */
static inline int setup(void **state)
{
	fill(&memory);
	lent = (struct vp_counters_lent){.cells = memory.cells,
					 .thread = thread_here(),
					 .runs = memory.runs,
					 .n_cpus = CPUS,
					 .index = PLACE,
					 .marker = MARKER,
					 .n = VP_LENT_EVENTS,
					 .events = VP_LENT_EVENTS,
					 .tid = gettid()};
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		lent.indices[i] = VP_LENT_EVENTS - 1 - i;
	return 0;
}

/* What happens at each wait of the library, and how many there were. */
static void (*at_wait)(unsigned nth);
static unsigned waits;

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
	assert_int_equal(time->tv_sec, 0);
	assert_int_equal(time->tv_nsec, VP_COUNTERS_WAIT_NS);
	if (at_wait)
		at_wait(waits);
	waits++;
	return 0;
}

#endif
