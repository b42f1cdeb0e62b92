/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs are the minimum of several measurements, since interruptions only add.
 *
 * The cost of a switch is measured with two threads on one CPU that yield to each other. A yield
 * without another runnable thread is the same system call without the switch. */
#include "counters/costs.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "counters/set.h"

/* Number of valid batches, maximum and minimum number of attempts, and yields or reads per
 * batch. */
enum { BATCHES = 16, MAX_BATCHES = 400, MIN_BATCHES = 2 * BATCHES, OF_BATCH = 16 };
enum { QUICK_NS = 50000000 };

struct measurement {
	const struct vp_counters_costs_ops *ops;
	void *context;
	unsigned n;
	struct vp_counters_costs *costs;
};

/* The second thread. */
struct other {
	pthread_t thread;
	_Atomic bool runs, shall_end;
};

static void read_many(const struct measurement *m)
{
	uint64_t ignored[VPERF_MAX_EVENTS];

	for (int i = 0; i < OF_BATCH; i++)
		m->ops->read(m->context, false, ignored);
}

static void yield_many(const struct measurement *m)
{
	for (int i = 0; i < OF_BATCH; i++)
		sched_yield();
}

static uint64_t runs_of(const struct measurement *m)
{
	return m->ops->runs ? m->ops->runs(m->context) : 0;
}

static uint64_t costs_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* A yield to a busy thread takes that thread's whole time slice. A kernel thread woken by an
 * exact read runs only for a moment, but may do so in many batches. */
static bool may_try(unsigned tried, bool yields, uint64_t began)
{
	return tried < MIN_BATCHES ||
	       (tried < MAX_BATCHES && (!yields || costs_now() - began < QUICK_NS));
}

/* Counts between two exact reads around the call: the minimum of each event over batches in
 * which the thread was switched in `least` to `most` times; per switch, minus `known`. False: no
 * such batch, or the counters cannot be read. */
static bool costs_measure(const struct measurement *m, void (*work)(const struct measurement *),
			  uint64_t least, uint64_t most, const uint64_t *known, uint64_t *ret)
{
	uint64_t before[VPERF_MAX_EVENTS], after[VPERF_MAX_EVENTS];
	uint64_t began = costs_now();
	unsigned found = 0;

	memset(ret, 0xff, m->n * sizeof(*ret));
	for (unsigned i = 0; may_try(i, work == yield_many, began) && found < BATCHES; i++) {
		uint64_t runs = runs_of(m);
		if (m->ops->read(m->context, true, before))
			return false;
		if (work)
			work(m);
		if (m->ops->read(m->context, true, after))
			return false;
		runs = runs_of(m) - runs;
		if (runs < least || runs > most)
			continue;
		found++;
		for (unsigned j = 0; j < m->n; j++) {
			uint64_t all = after[j] - before[j];
			uint64_t rest = all > known[j] ? all - known[j] : 0;
			rest /= runs ? runs : 1;
			ret[j] = rest < ret[j] ? rest : ret[j];
		}
	}
	return found > 0;
}

static void *yield_until_end(void *context)
{
	struct other *other = context;

	atomic_store(&other->runs, true);
	while (!atomic_load(&other->shall_end))
		sched_yield();
	return NULL;
}

/* Starts it on the CPU of the calling thread, which is bound. It receives no signals of the
 * program. */
static bool start_other(struct other *other)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool good = !pthread_create(&other->thread, NULL, yield_until_end, other);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (good && !atomic_load(&other->runs))
		sched_yield();
	return good;
}

static bool measure_switches(const struct measurement *m)
{
	static const uint64_t nothing[VPERF_MAX_EVENTS];
	uint64_t alone[VPERF_MAX_EVENTS];
	struct other other = {0};

	if (!costs_measure(m, yield_many, 0, 0, nothing, alone) || !start_other(&other))
		return false;
	bool good = costs_measure(m, yield_many, 1, OF_BATCH, alone, m->costs->run);
	atomic_store(&other.shall_end, true);
	pthread_join(other.thread, NULL);
	return good;
}

static bool measure_run(const struct measurement *m)
{
	cpu_set_t before[8], here[8]; /* 1,024 CPUs per element */
	int cpu = sched_getcpu();

	if (!m->ops->runs)
		return true;
	CPU_ZERO_S(sizeof(here), here);
	if (cpu < 0 || sched_getaffinity(0, sizeof(before), before))
		return false;
	CPU_SET_S(cpu, sizeof(here), here);
	if (sched_setaffinity(0, sizeof(here), here))
		return false;
	bool good = measure_switches(m);
	sched_setaffinity(0, sizeof(before), before);
	return good;
}

int vp_counters_costs_measure(const struct vp_counters_costs_ops *ops, void *context, unsigned n,
			      struct vp_counters_costs *ret, struct vperf_error *error)
{
	static const uint64_t nothing[VPERF_MAX_EVENTS];
	struct measurement m = {ops, context, n, ret};

	memset(ret, 0, sizeof(*ret));
	if (!costs_measure(&m, NULL, 0, 0, nothing, ret->exact_read) ||
	    !costs_measure(&m, read_many, 0, 0, ret->exact_read, ret->read))
		return vp_counters_fail(error, VPERF_E_LOST, "the counters cannot be read");
	for (unsigned i = 0; i < n; i++)
		ret->read[i] /= OF_BATCH;
	if (!measure_run(&m))
		return vp_counters_fail(error, VPERF_E_SYSTEM,
					"cannot measure the overhead of a context switch: other "
					"threads are busy on this CPU");
	return VPERF_OK;
}
