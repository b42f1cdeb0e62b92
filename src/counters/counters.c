/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The public functions; see vperf/counters.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "counters/costs.h"
#include "counters/counters_event.h"
#include "counters/counters_lent.h"
#include "counters/overflow.h"
#include "counters/page_read.h"
#include "counters/set.h"
#include "protocol/lent.h"

struct vperf_counters {
	enum vperf_way way;
	unsigned n;
	bool is_running, reads_exactly; /* reads_exactly: of host-provided counters */
	const void *thread;
	/* The thread, if it can read without a system call now: its own counters, or
	 * host-provided ones. */
	const void *user_reader, *lent_reader;
	struct vp_counters_group group;        /* of ways 1 and 2 */
	struct vp_counters_lent *lent;         /* of way 3 */
	struct vp_counters_overflow *overflow; /* of way 3, with a signal; else NULL */
	unsigned signal_event;
	/* Counters at the start, and the part since then that was already added up. */
	uint64_t start[VPERF_MAX_EVENTS], added[VPERF_MAX_EVENTS];
	uint64_t origins[VPERF_MAX_EVENTS]; /* `start` for vp_counters_page_read() */
	struct vperf_view view;
	bool is_calibrated;
	struct vp_counters_costs costs;
	/* Since the start: overhead of reads, number of times the thread had been switched in
	 * before, last values returned. */
	uint64_t spent[VPERF_MAX_EVENTS], runs, last[VPERF_MAX_EVENTS];
	int clocks_fd, signal_fd;
	struct vp_counters_clocks clocks;
	uint64_t stolen; /* steal at the start, of host-provided counters */
	char why[252];
};

static int counters_check_options(const struct vperf_options *options, unsigned n,
				  struct vperf_error *error)
{
	if (options->size != sizeof(*options))
		return vp_counters_fail(error, VPERF_E_ARGUMENT,
					"the options' size is %u, expected %zu", options->size,
					sizeof(*options));
	if (options->way > VPERF_WAY_LENT || options->flags & ~(uint32_t)VPERF_EXACT)
		return vp_counters_fail(error, VPERF_E_ARGUMENT,
					"the options have an unknown way or flag");
	if (options->signal && (options->signal < 0 || options->signal > SIGRTMAX ||
				options->event >= n || !options->period))
		return vp_counters_fail(
		    error, VPERF_E_ARGUMENT,
		    "a signal needs a number, an event of the set and a period");
	return VPERF_OK;
}

static int find_events(const char *const *names, unsigned n, struct vp_counters_event *ret,
		       struct vperf_error *error)
{
	if (!n || n > VPERF_MAX_EVENTS)
		return vp_counters_fail(error, n ? VPERF_E_TOO_MANY : VPERF_E_ARGUMENT,
					"expected 1 to %d events, got %u", VPERF_MAX_EVENTS, n);
	for (unsigned i = 0; i < n; i++)
		if (!names[i] || !vp_counters_event_find(names[i], &ret[i]))
			return vp_counters_fail(error, VPERF_E_EVENT, "unknown event '%.40s'",
						names[i] ? names[i] : "(null)");
	return VPERF_OK;
}

static const uint64_t zeros[VPERF_MAX_EVENTS];

static bool read_for_overflow(void *context, uint64_t *values)
{
	struct vperf_counters *counters = context;

	return !vp_counters_lent_read(counters->lent, true, zeros, values);
}

/* A read interrupted by the overflow handler is repeated: the handler's own reads made the host
 * publish meanwhile. */
static void counters_take_off(void *context, const uint64_t *values)
{
	struct vperf_counters *counters = context;

	for (unsigned i = 0; i < counters->n; i++)
		counters->start[i] += values[i];
}

static void make_view(struct vperf_counters *counters)
{
	const struct vp_counters_lent *lent = counters->lent;

	counters->view.thread = (const void *)lent->thread;
	counters->view.cells = (const void *)lent->cells;
	for (unsigned i = 0; i < counters->n; i++)
		counters->view.events[i].offset = offsetof(struct vp_lent_thread, base) +
						  lent->indices[i] * sizeof(lent->thread->base[0]);
}

static int open_lent(struct vperf_counters *counters, const struct vp_counters_event *events,
		     const struct vperf_options *options, struct vperf_error *error)
{
	static const struct vp_counters_overflow_ops ops = {.read = read_for_overflow,
							    .take_off = counters_take_off};
	int status = vp_counters_lent_open(events, counters->n, options->flags & VPERF_EXACT,
					   &counters->lent, error);

	counters->way = VPERF_WAY_LENT;
	counters->reads_exactly = options->flags & VPERF_EXACT;
	if (status)
		return status;
	make_view(counters);
	if (!options->signal)
		return VPERF_OK;
	counters->signal_event = options->event;
	status = vp_counters_overflow_open(&ops, counters, counters->n, options,
					   &counters->overflow, error);
	if (!status)
		counters->signal_fd = vp_counters_overflow_fd(counters->overflow);
	return status;
}

static int open_own(struct vperf_counters *counters, const struct vp_counters_event *events,
		    const struct vperf_options *options, struct vperf_error *error)
{
	int status = vp_counters_group_open(events, counters->n, options, &counters->group, error);

	if (status)
		return status;
	if (options->signal)
		counters->signal_fd = counters->group.fds[options->event];
	bool user =
	    options->way != VPERF_WAY_CALL &&
	    vp_counters_prefer_user(&counters->group, &events[0], options->way == VPERF_WAY_USER,
				    counters->why, sizeof(counters->why));
	counters->way = user ? VPERF_WAY_USER : VPERF_WAY_CALL;
	if (options->way == VPERF_WAY_USER && !user)
		return vp_counters_fail(error, VPERF_E_NO_COUNTER, "%s", counters->why);
	return VPERF_OK;
}

/* Opens the system's own counters, or else host-provided ones. */
static int open_any(struct vperf_counters *counters, const struct vp_counters_event *events,
		    const struct vperf_options *options, struct vperf_error *error)
{
	if (options->way == VPERF_WAY_LENT)
		return open_lent(counters, events, options, error);
	struct vperf_error own = {0}, lent = {0};
	int status = open_own(counters, events, options, &own);
	if (status && options->way == VPERF_WAY_ANY &&
	    (status == VPERF_E_NO_COUNTER || status == VPERF_E_RIGHTS)) {
		vp_counters_group_close(&counters->group);
		if (!open_lent(counters, events, options, &lent)) {
			snprintf(counters->why, sizeof(counters->why), "%s", own.text);
			return VPERF_OK;
		}
		return vp_counters_fail(error, status, "%.120s; %.120s", own.text, lent.text);
	}
	return status ? vp_counters_fail(error, status, "%s", own.text) : status;
}

/* Zeroed in a forked child, which does not inherit perf's pages, and whose events belong to the
 * parent. */
static struct vperf_counters *new_set(void)
{
	void *memory = mmap(NULL, sizeof(struct vperf_counters), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, sizeof(struct vperf_counters), MADV_WIPEONFORK);
	return memory;
}

int vperf_counters_open(const char *const *names, unsigned n, const struct vperf_options *options,
			struct vperf_counters **ret, struct vperf_error *error)
{
	const struct vperf_options none = {.size = sizeof(none)};
	struct vp_counters_event events[VPERF_MAX_EVENTS];

	*ret = NULL;
	if (!options)
		options = &none;
	int status = find_events(names, n, events, error);
	if (!status)
		status = counters_check_options(options, n, error);
	if (status)
		return status;
	struct vperf_counters *counters = new_set();
	if (!counters)
		return vp_counters_fail(error, VPERF_E_SYSTEM, "out of memory");
	counters->n = n;
	counters->thread = __builtin_thread_pointer();
	counters->signal_fd = -1;
	counters->view.counters = counters;
	counters->clocks_fd = vp_counters_clocks_open();
	status = open_any(counters, events, options, error);
	if (status)
		vperf_counters_close(counters);
	else
		*ret = counters;
	return status;
}

void vperf_counters_close(struct vperf_counters *counters)
{
	if (!counters)
		return;
	if (counters->thread) {
		vp_counters_group_close(&counters->group);
		vp_counters_overflow_close(counters->overflow);
		vp_counters_lent_close(counters->lent);
		if (counters->clocks_fd >= 0)
			close(counters->clocks_fd);
	}
	munmap(counters, sizeof(*counters));
}

static int check_running(const struct vperf_counters *counters)
{
	if (counters->thread != __builtin_thread_pointer())
		return VPERF_E_THREAD;
	return counters->is_running ? VPERF_OK : VPERF_E_ARGUMENT;
}

/* Current counts minus `start`; exact values of host-provided counters on request. */
static inline int counters_show(struct vperf_counters *counters, bool exact, const uint64_t *start,
				uint64_t *values)
{
	if (counters->way == VPERF_WAY_LENT)
		return vp_counters_lent_read(counters->lent, exact, start, values);
	int status = counters->way == VPERF_WAY_USER
			 ? vp_counters_group_user(&counters->group, values)
			 : vp_counters_group_call(&counters->group, values);
	for (unsigned i = 0; !status && i < counters->n; i++)
		values[i] -= start[i];
	return status;
}

/* Enables the fast read paths, unless an overhead must be subtracted. */
static void enable_user_reads(struct vperf_counters *counters)
{
	if (counters->is_calibrated)
		return;
	if (counters->way == VPERF_WAY_USER)
		counters->user_reader = counters->thread;
	if (counters->way != VPERF_WAY_LENT || counters->reads_exactly)
		return;
	counters->lent_reader = counters->thread;
	for (unsigned i = 0; i < counters->n; i++)
		counters->view.events[i].start = counters->start[i];
	/* The overflow handler would change `start` during a read. */
	if (!counters->overflow)
		counters->view.reader = counters->thread;
}

int vperf_counters_start(struct vperf_counters *counters)
{
	int status = VPERF_OK;

	if (counters->thread != __builtin_thread_pointer())
		return VPERF_E_THREAD;
	if (counters->is_running)
		return VPERF_E_ARGUMENT;
	vp_counters_clocks_read(counters->clocks_fd, &counters->clocks);
	if (counters->way == VPERF_WAY_LENT)
		status = vp_counters_lent_stolen(counters->lent, &counters->stolen);
	else
		status = vp_counters_group_start(&counters->group);
	if (!status)
		status = counters_show(counters, true, zeros, counters->start);
	for (unsigned i = 0; i < counters->n; i++)
		counters->origins[i] = counters->start[i] + counters->group.signs[i];
	if (counters->is_calibrated && counters->lent)
		counters->runs = vp_counters_lent_runs(counters->lent);
	memset(counters->added, 0, sizeof(counters->added));
	memset(counters->spent, 0, sizeof(counters->spent));
	memset(counters->last, 0, sizeof(counters->last));
	if (!status && counters->overflow)
		status = vp_counters_overflow_start(counters->overflow,
						    counters->start[counters->signal_event]);
	counters->is_running = !status;
	if (counters->is_running)
		enable_user_reads(counters);
	return status;
}

/* The values, and how often the thread had been switched in when they were read. */
static int show_between_switches(struct vperf_counters *counters, bool exact, uint64_t *values,
				 uint64_t *runs)
{
	int status;

	if (!counters->lent) {
		*runs = counters->runs;
		return counters_show(counters, exact, counters->start, values);
	}
	do {
		*runs = vp_counters_lent_runs(counters->lent);
		status = counters_show(counters, exact, counters->start, values);
	} while (!status && *runs != vp_counters_lent_runs(counters->lent));
	return status;
}

/* Subtracts the overhead of counting. It varies slightly: values never decrease. */
static int show_calibrated(struct vperf_counters *counters, bool exact, uint64_t *values)
{
	const struct vp_counters_costs *costs = &counters->costs;
	uint64_t runs;
	int status = show_between_switches(counters, exact, values, &runs);

	for (unsigned i = 0; !status && i < counters->n; i++) {
		counters->spent[i] += exact ? costs->exact_read[i] : costs->read[i];
		uint64_t own = counters->spent[i] + (runs - counters->runs) * costs->run[i];
		uint64_t value = values[i] > own ? values[i] - own : 0;
		values[i] = value > counters->last[i] ? value : counters->last[i];
		counters->last[i] = values[i];
	}
	return status;
}

static __attribute__((noinline)) int read_since_start(struct vperf_counters *counters, bool exact,
						      uint64_t *values)
{
	int status = check_running(counters);

	if (status)
		return status;
	if (counters->is_calibrated)
		return show_calibrated(counters, exact || counters->reads_exactly, values);
	return counters_show(counters, exact, counters->start, values);
}

/* The fastest path, with few instructions and no function calls. */
static inline bool read_quickly(const struct vperf_counters *counters, uint64_t *values)
{
	if (counters->user_reader != __builtin_thread_pointer())
		return false;
	unsigned i = 0;
	do {
		if (!vp_counters_page_read(counters->group.pages[i], counters->group.signs[i],
					   counters->origins[i], &values[i]))
			return false;
	} while (++i < counters->n);
	return true;
}

/* The same for host-provided counters. Not inlined, to keep the other path fast. */
static __attribute__((noinline)) int read_lent(const struct vperf_counters *counters,
					       uint64_t *values)
{
	return vp_counters_lent_read_own(counters->lent, counters->start, values) ? VPERF_OK
										  : VPERF_E_LOST;
}

int vperf_counters_read(struct vperf_counters *counters, uint64_t *values)
{
	if (read_quickly(counters, values))
		return VPERF_OK;
	if (counters->lent_reader == __builtin_thread_pointer())
		return read_lent(counters, values);
	return read_since_start(counters, false, values);
}

int vperf_counters_accumulate(struct vperf_counters *counters, uint64_t *values)
{
	uint64_t now[VPERF_MAX_EVENTS];

	int status = read_since_start(counters, false, now);
	for (unsigned i = 0; !status && i < counters->n; i++) {
		values[i] += now[i] - counters->added[i];
		counters->added[i] = now[i];
	}
	return status;
}

int vperf_counters_stop(struct vperf_counters *counters, uint64_t *values)
{
	uint64_t own[VPERF_MAX_EVENTS];
	int status = read_since_start(counters, true, values ? values : own);

	if (status == VPERF_E_ARGUMENT || status == VPERF_E_THREAD)
		return status;
	counters->is_running = false;
	counters->user_reader = counters->lent_reader = counters->view.reader = NULL;
	unsigned event = counters->signal_event;
	if (counters->overflow && !status)
		vp_counters_overflow_stop(counters->overflow,
					  counters->start[event] + (values ? values : own)[event]);
	if (counters->way != VPERF_WAY_LENT)
		vp_counters_group_enable(&counters->group, false);
	return status;
}

int vperf_counters_times(struct vperf_counters *counters, struct vperf_times *ret)
{
	uint64_t stolen;
	int status = check_running(counters);

	if (status || ret->size != sizeof(*ret))
		return status ? status : VPERF_E_ARGUMENT;
	vp_counters_clocks_between(counters->clocks_fd, &counters->clocks, ret);
	if (counters->way != VPERF_WAY_LENT)
		return VPERF_OK;
	status = vp_counters_lent_stolen(counters->lent, &stolen);
	if (!status) {
		ret->stolen_least = ret->stolen_most = stolen - counters->stolen;
		ret->known |= VPERF_KNOWN_STOLEN;
	}
	return status;
}

int vperf_counters_read_one(struct vperf_counters *counters, unsigned event, uint64_t *value)
{
	uint64_t values[VPERF_MAX_EVENTS];

	if (!counters) /* in a child process: the parent's set */
		return VPERF_E_THREAD;
	int status = vperf_counters_read(counters, values);
	if (!status && event >= counters->n)
		return VPERF_E_ARGUMENT;
	if (!status)
		*value = values[event];
	return status;
}

const struct vperf_view *vperf_counters_view(struct vperf_counters *counters, unsigned layout)
{
	_Static_assert(sizeof(struct vperf_view_cell) == sizeof(struct vp_lent_cell) &&
			   !offsetof(struct vp_lent_cell, marker) &&
			   !offsetof(struct vp_lent_thread, sequence) &&
			   offsetof(struct vperf_view_thread, cpu) ==
			       offsetof(struct vp_lent_thread, cpu),
		       "the view's layout is that of what the agent shares");

	return layout == VPERF_VIEW_1 ? &counters->view : NULL;
}

/* Reads like a client: quickly where that is exact enough. */
static int read_for_costs(void *context, bool exact, uint64_t *values)
{
	struct vperf_counters *counters = context;

	if (exact && counters->way == VPERF_WAY_LENT && !counters->reads_exactly)
		return read_since_start(counters, true, values);
	return vperf_counters_read(counters, values);
}

static uint64_t runs_for_costs(void *context)
{
	return vp_counters_lent_runs(((struct vperf_counters *)context)->lent);
}

int vperf_counters_calibrate(struct vperf_counters *counters, struct vperf_error *error)
{
	const struct vp_counters_costs_ops ops = {
	    .read = read_for_costs,
	    .runs = counters->way == VPERF_WAY_LENT ? runs_for_costs : NULL,
	};

	if (counters->thread != __builtin_thread_pointer())
		return vp_counters_fail(error, VPERF_E_THREAD, "the set belongs to another thread");
	if (counters->is_running || counters->signal_fd >= 0)
		return vp_counters_fail(
		    error, VPERF_E_ARGUMENT,
		    "a running set, or one with a signal, cannot be calibrated");
	struct vp_counters_costs costs = {0};
	/* Includes the overhead of a calibrated set's reads. */
	counters->is_calibrated = true;
	counters->costs = costs;
	int status = vperf_counters_start(counters);
	if (status) {
		vp_counters_fail(error, status, "%s", vperf_status_text(status));
	} else {
		status = vp_counters_costs_measure(&ops, counters, counters->n, &costs, error);
		vperf_counters_stop(counters, NULL);
	}
	counters->is_calibrated = !status;
	counters->costs = costs;
	return status;
}

enum vperf_way vperf_counters_way(const struct vperf_counters *counters)
{
	return counters->way;
}

const char *vperf_counters_why(const struct vperf_counters *counters)
{
	return counters->why[0] ? counters->why : "requested";
}

int vperf_counters_descriptor(const struct vperf_counters *counters)
{
	return counters->signal_fd;
}
