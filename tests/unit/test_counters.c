/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libvperf, as far as any machine has what it counts: the kernel's own events. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters/costs.h"
#include "counters/counters_event.h"
#include "counters/counters_lent.h"
#include "counters/overflow.h"
#include "counters/set.h"
#include "vperf/counters.h"

static struct vperf_counters *open_set(const char *const *events, unsigned n,
				       const struct vperf_options *options)
{
	struct vperf_counters *counters;
	struct vperf_error error;

	int status = vperf_counters_open(events, n, options, &counters, &error);
	if (status == VPERF_E_RIGHTS || status == VPERF_E_NO_COUNTER)
		skip(); /* a container that may not count */
	if (status)
		fail_msg("%d: %s", status, error.text);
	return counters;
}

/* What a group's leader says when it is read: a file in its place. */
static int read_group_of(unsigned n, const uint64_t *words, size_t count, uint64_t *values)
{
	struct vp_counters_group group = {.n = n};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	if (count)
		assert_int_equal(write(ends[1], words, count * sizeof(*words)),
				 (ssize_t)(count * sizeof(*words)));
	close(ends[1]);
	group.fds[0] = ends[0];
	int status = vp_counters_group_call(&group, values);
	close(ends[0]);
	return status;
}

/* Counted all the time, or not at all: what had its counters for a part of it is told, and what the
 * kernel says nothing of. */
static void test_groups_that_lost_their_counters(void **state)
{
	const struct vp_counters_group closed = {.n = 2, .fds = {-1}};
	uint64_t values[VPERF_MAX_EVENTS] = {0};

	assert_int_equal(read_group_of(2, (uint64_t[]){2, 90, 90, 11, 22}, 5, values), VPERF_OK);
	assert_int_equal(values[0], 11);
	assert_int_equal(values[1], 22);
	assert_int_equal(values[2], 0);
	assert_int_equal(read_group_of(2, (uint64_t[]){2, 90, 89, 11, 22}, 5, values),
			 VPERF_E_LOST);
	assert_int_equal(read_group_of(2, (uint64_t[]){3, 90, 90, 11, 22}, 5, values),
			 VPERF_E_LOST);
	assert_int_equal(read_group_of(2, (uint64_t[]){2, 90, 90, 11}, 4, values), VPERF_E_LOST);
	assert_int_equal(read_group_of(2, NULL, 0, values), VPERF_E_LOST);
	assert_int_equal(read_group_of(1, (uint64_t[]){33, 90, 90}, 3, values), VPERF_OK);
	assert_int_equal(values[0], 33);
	assert_int_equal(read_group_of(1, (uint64_t[]){33, 90, 91}, 3, values), VPERF_E_LOST);
	assert_int_equal(read_group_of(1, (uint64_t[]){33, 90}, 2, values), VPERF_E_LOST);
	assert_int_equal(read_group_of(1, NULL, 0, values), VPERF_E_LOST);
	assert_int_equal(vp_counters_group_call(&closed, values), VPERF_E_SYSTEM);
}

/* Touches that many pages for the first time. */
static void fault(size_t pages)
{
	size_t page = (size_t)getpagesize();
	char *memory =
	    mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * page] = 1;
	munmap(memory, pages * page);
}

/* With those of the counting itself; and a sanitizer has an eighth of a page for each. */
static uint64_t most_faults(uint64_t pages)
{
	return pages + pages / 8 + 99;
}

static void test_names(void **state)
{
	struct vp_counters_event event, other;

	assert_true(vp_counters_event_find("PAPI_TOT_INS:u", &event));
	assert_string_equal(event.name, "instructions:u");
	assert_true(event.exclude_kernel && !event.exclude_user);
	assert_true(vp_counters_event_find("cpu-cycles", &event));
	assert_true(vp_counters_event_find("PAPI_TOT_CYC:uk", &other));
	assert_string_equal(event.name, "cycles");
	assert_string_equal(other.name, "cycles");
	assert_true(vp_counters_event_find("r08:k", &event));
	assert_string_equal(event.name, "r8:k");
	assert_int_equal(event.config, 8);
	assert_false(vp_counters_event_find("PAPI_TOT", &event));
	assert_false(vp_counters_event_find("instructions:x", &event));
	assert_false(vp_counters_event_find("instructions:", &event));
	assert_false(vp_counters_event_find("r", &event));
	assert_false(vp_counters_event_find("r12345678123456789", &event));
	assert_false(vp_counters_event_find("", &event));
}

/* Each of perf's names, and PAPI's, is an event of its own or another name of one before it. */
static void test_names_of_one_event(void **state)
{
	static const char *const same[][2] = {
	    {"cycles", "cpu-cycles"},
	    {"cycles", "PAPI_TOT_CYC"},
	    {"branches", "branch-instructions"},
	    {"branches", "PAPI_BR_INS"},
	    {"page-faults", "faults"},
	    {"context-switches", "cs"},
	    {"cpu-migrations", "migrations"},
	    {"instructions", "PAPI_TOT_INS"},
	    {"r1a8", "r01A8"},
	    {"cycles", "cycles:ku"},
	};
	struct vp_counters_event event, other;

	for (size_t i = 0; i < VP_ARRAY_SIZE(same); i++) {
		assert_true(vp_counters_event_find(same[i][0], &event));
		assert_true(vp_counters_event_find(same[i][1], &other));
		assert_true(vp_counters_event_same(&event, &other));
		assert_string_equal(event.name, same[i][0]);
		assert_string_equal(other.name, same[i][0]);
	}
	unsigned n = 0;
	for (; vp_counters_event_name(n); n++) {
		assert_true(vp_counters_event_find(vp_counters_event_name(n), &event));
		for (unsigned i = 0; i < n; i++) {
			assert_true(vp_counters_event_find(vp_counters_event_name(i), &other));
			assert_int_equal(vp_counters_event_same(&event, &other),
					 !strcmp(event.name, other.name));
		}
	}
	assert_true(n > 20);
	for (const char *both = "cycles:uk"; both; both = both[7] == 'u' ? "cycles:ku" : NULL) {
		assert_true(vp_counters_event_find(both, &event));
		assert_true(!event.exclude_user && !event.exclude_kernel);
	}
	assert_true(vp_counters_event_find("cycles:k", &event));
	assert_true(event.exclude_user && !event.exclude_kernel);
	assert_true(vp_counters_event_find("r123456789abcdef0", &event));
	assert_int_equal(event.config, 0x123456789abcdef0);
}

static void test_counts_page_faults(void **state)
{
	const char *const events[] = {"page-faults", "task-clock"};
	struct vperf_counters *counters = open_set(events, 2, NULL);
	uint64_t before[2], after[2], sum[2] = {0}, last[2];

	assert_int_equal(vperf_counters_way(counters), VPERF_WAY_CALL);
	fault(100); /* not counted: it has not started */
	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	assert_int_equal(vperf_counters_read(counters, before), VPERF_OK);
	fault(1000);
	assert_int_equal(vperf_counters_read(counters, after), VPERF_OK);
	assert_in_range(before[0], 0, 99);
	assert_in_range(after[0] - before[0], 1000, most_faults(1000));
	assert_true(after[1] > before[1]);
	assert_int_equal(vperf_counters_accumulate(counters, sum), VPERF_OK);
	fault(500);
	assert_int_equal(vperf_counters_accumulate(counters, sum), VPERF_OK);
	assert_int_equal(vperf_counters_stop(counters, last), VPERF_OK);
	assert_in_range(sum[0], 1500, most_faults(1500));
	assert_in_range(last[0], sum[0], sum[0] + 99);
	assert_true(last[1] >= sum[1]);
	/* Once more, from 0. */
	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	assert_int_equal(vperf_counters_stop(counters, last), VPERF_OK);
	assert_in_range(last[0], 0, 99);
	vperf_counters_close(counters);
}

/* A thread counts what it does, and not what others do meanwhile. */
static void *count_own(void *pages)
{
	const char *const events[] = {"page-faults"};
	struct vperf_counters *counters;
	uint64_t count = 0;

	if (vperf_counters_open(events, 1, NULL, &counters, NULL))
		return NULL;
	int status = vperf_counters_start(counters);
	fault((size_t)(uintptr_t)pages);
	if (!status)
		status = vperf_counters_stop(counters, &count);
	vperf_counters_close(counters);
	return (void *)(uintptr_t)(status ? 0 : count);
}

static void test_threads(void **state)
{
	const size_t pages[] = {1000, 3000, 7000};
	pthread_t threads[3];
	void *count;

	vperf_counters_close(open_set((const char *const[]){"page-faults"}, 1, NULL));
	for (int i = 0; i < 3; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, count_own, (void *)(uintptr_t)pages[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &count);
		assert_in_range((uintptr_t)count, pages[i], most_faults(pages[i]));
	}
}

static void *use_of_other(void *counters)
{
	uint64_t value;

	return (void *)(intptr_t)vperf_counters_read(counters, &value);
}

static void test_refuses(void **state)
{
	const char *const events[] = {"page-faults", "page-faults", "page-faults",
				      "page-faults", "page-faults", "page-faults",
				      "page-faults", "page-faults", "page-faults"};
	const char *const unknown[] = {"page-fault"};
	struct vperf_options options = {.size = sizeof(options), .signal = SIGIO};
	struct vperf_times times = {0};
	struct vperf_counters *counters;
	struct vperf_error error;
	pthread_t thread;
	uint64_t value;
	void *status;

	assert_int_equal(vperf_counters_open(unknown, 1, NULL, &counters, &error), VPERF_E_EVENT);
	assert_string_equal(error.text, "unknown event 'page-fault'");
	assert_null(counters);
	assert_int_equal(vperf_counters_open(events, 9, NULL, &counters, &error), VPERF_E_TOO_MANY);
	assert_int_equal(vperf_counters_open(events, 0, NULL, &counters, &error), VPERF_E_ARGUMENT);
	/* A signal without a period; a struct of another size. */
	assert_int_equal(vperf_counters_open(events, 1, &options, &counters, &error),
			 VPERF_E_ARGUMENT);
	options = (struct vperf_options){.size = 4};
	assert_int_equal(vperf_counters_open(events, 1, &options, &counters, &error),
			 VPERF_E_ARGUMENT);
	options = (struct vperf_options){.size = sizeof(options), .way = VPERF_WAY_LENT};
	assert_int_equal(vperf_counters_open(events, 1, &options, &counters, &error),
			 VPERF_E_NOT_LENT);
	options.way = VPERF_WAY_USER; /* which software events do not have */
	status = (void *)(intptr_t)vperf_counters_open(events, 1, &options, &counters, &error);
	assert_true((intptr_t)status == VPERF_E_NO_COUNTER || (intptr_t)status == VPERF_E_RIGHTS);

	counters = open_set(events, 1, NULL);
	assert_int_equal(vperf_counters_read(counters, &value), VPERF_E_ARGUMENT);
	assert_int_equal(vperf_counters_stop(counters, &value), VPERF_E_ARGUMENT);
	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	assert_int_equal(vperf_counters_start(counters), VPERF_E_ARGUMENT);
	assert_int_equal(vperf_counters_times(counters, &times), VPERF_E_ARGUMENT);
	assert_int_equal(pthread_create(&thread, NULL, use_of_other, counters), 0);
	pthread_join(thread, &status);
	assert_int_equal((intptr_t)status, VPERF_E_THREAD);
	vperf_counters_close(counters);
	vperf_counters_close(NULL);
	for (int code = VPERF_OK; code >= VPERF_E_SYSTEM; code--)
		assert_string_not_equal(vperf_status_text(code), vperf_status_text(1));
}

/* A child has not its parent's counters, and may close what it has of them. */
static void test_fork(void **state)
{
	struct vperf_counters *counters = open_set((const char *const[]){"page-faults"}, 1, NULL);
	uint64_t value = 0;
	int status;

	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	pid_t child = fork();
	if (child == 0) {
		bool told = vperf_counters_read(counters, &value) == VPERF_E_THREAD &&
			    vperf_counters_stop(counters, &value) == VPERF_E_THREAD;
		vperf_counters_close(counters);
		_exit(told && fcntl(STDIN_FILENO, F_GETFD) >= 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(vperf_counters_stop(counters, &value), VPERF_OK);
	vperf_counters_close(counters);
}

/* Lent counters as the agent and the host would have written them: of a thread that is on the
 * second CPU. The third cell is nobody's. */
struct lent_memory {
	struct vperf_view_cell cells[3];
	struct {
		struct vperf_view_thread head;
		uint64_t others[2], base[2];
	} thread;
	struct vperf_view view;
};

static void make_view(struct lent_memory *memory)
{
	*memory = (struct lent_memory){
	    .cells = {{.marker = 5}, {.marker = 5}},
	    .thread = {{.cpu = 1}, .base = {100, (uint64_t)-500}},
	    .view = {.reader = __builtin_thread_pointer(),
		     .thread = &memory->thread.head,
		     .cells = memory->cells,
		     .events = {{.offset = 32, .start = 40}, {.offset = 40, .start = 0}}},
	};
	memory->cells[1].others[3] = 1000;
	memory->cells[1].others[4] = 2000;
}

static void *read_view(void *view)
{
	uint64_t value;

	return (void *)(intptr_t)vperf_view_read(view, 0, &value);
}

static void test_view(void **state)
{
	struct lent_memory memory;
	uint64_t value = 7;
	pthread_t thread;
	void *status;

	make_view(&memory);
	assert_int_equal(vperf_view_read(&memory.view, 0, &value), VPERF_OK);
	assert_int_equal(value, 1060);
	assert_int_equal(vperf_view_read(&memory.view, 1, &value), VPERF_OK);
	assert_int_equal(value, 1500);
	/* What else there is to say, the set does, and this one has none. */
	assert_int_equal(pthread_create(&thread, NULL, read_view, &memory.view), 0);
	pthread_join(thread, &status);
	assert_int_equal((intptr_t)status, VPERF_E_THREAD);
	memory.thread.head.cpu = 2;
	assert_int_equal(vperf_view_read(&memory.view, 0, &value), VPERF_E_THREAD);
	memory.thread.head.cpu = 1;
	memory.cells[1].marker = 0;
	assert_int_equal(vperf_view_read(&memory.view, 0, &value), VPERF_E_THREAD);
	memory.cells[1].marker = 5;
	memory.view.reader = NULL;
	assert_int_equal(vperf_view_read(&memory.view, 0, &value), VPERF_E_THREAD);
	assert_int_equal(value, 1500);
}

/* A family of which one runs on the second CPU; on the others run other families. */
struct family_memory {
	struct vp_lent_cell cells[4];
	struct vp_lent_thread threads[2];
	struct vp_lent_run runs[3];
	struct vp_counters_lent lent;
};

static void make_family(struct family_memory *memory)
{
	*memory = (struct family_memory){
	    .cells = {{.counts = {9000, 9000}}, {.counts = {1000, 5000}}, {.counts = {7000, 7000}}},
	    .threads = {{.born = 3, .children = {400, 100}, .live = 2}, {.born = 3}},
	    .runs = {{.runs = 1, .index = 1, .born = 3},
		     {.runs = 1, .index = 0, .born = 3, .start = {900, 4000}},
		     {.runs = 1, .index = 0, .born = 2}},
	    .lent = {.cells = memory->cells,
		     .thread = &memory->threads[0],
		     .runs = memory->runs,
		     .n_cpus = 3,
		     .events = 2},
	};
}

static void test_family(void **state)
{
	struct family_memory memory;
	uint64_t counts[VP_LENT_EVENTS];
	uint32_t live;

	make_family(&memory);
	assert_int_equal(vp_counters_lent_children(&memory.lent, counts, &live), VPERF_OK);
	assert_int_equal(counts[0], 500);
	assert_int_equal(counts[1], 1100);
	assert_int_equal(live, 2);
	memory.runs[1].runs = 0;
	assert_int_equal(vp_counters_lent_children(&memory.lent, counts, &live), VPERF_OK);
	assert_int_equal(counts[0], 400);
	/* It is just being changed, and stays so: its writer has gone. */
	memory.runs[1].sequence = 1;
	assert_int_equal(vp_counters_lent_children(&memory.lent, counts, &live), VPERF_E_LOST);
	memory.runs[1].sequence = 2;
	memory.threads[0].missed = 1;
	assert_int_equal(vp_counters_lent_children(&memory.lent, counts, &live), VPERF_E_LOST);
}

/* Of counters that are not lent, what the set says. */
static void test_view_of_set(void **state)
{
	struct vperf_counters *counters =
	    open_set((const char *const[]){"page-faults", "page-faults"}, 2, NULL);
	const struct vperf_view *view = vperf_counters_view(counters, VPERF_VIEW_1);
	uint64_t value = 0, all[2];
	int status;

	assert_null(vperf_counters_view(counters, VPERF_VIEW_1 + 1));
	assert_non_null(view);
	assert_int_equal(vperf_view_read(view, 1, &value), VPERF_E_ARGUMENT);
	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	fault(64);
	assert_int_equal(vperf_view_read(view, 1, &value), VPERF_OK);
	assert_true(value >= 64 && value < most_faults(64));
	assert_int_equal(vperf_view_read(view, 2, &value), VPERF_E_ARGUMENT);
	pid_t child = fork();
	if (child == 0)
		_exit(vperf_view_read(view, 0, &value) == VPERF_E_THREAD ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(vperf_counters_stop(counters, all), VPERF_OK);
	assert_true(all[1] >= value);
	vperf_counters_close(counters);
}

/* Counters that count nothing but what counting adds: 300 for each exact read, 7 for any other, and
 * 2700 each time that the thread is switched in. */
struct known_costs {
	uint64_t of_reads;
	bool cannot_read;
};

static uint64_t switches_of_thread(void *context)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

static int read_known(void *context, bool exact, uint64_t *values)
{
	struct known_costs *known = context;

	known->of_reads += exact ? 300 : 7;
	values[0] = known->of_reads + 2700 * switches_of_thread(NULL);
	values[1] = 12;
	return known->cannot_read ? VPERF_E_LOST : VPERF_OK;
}

static void test_costs(void **state)
{
	const struct vp_counters_costs_ops ops = {read_known, switches_of_thread},
					   own = {.read = read_known};
	struct known_costs known = {0};
	struct vp_counters_costs costs;
	struct vperf_error error;
	cpu_set_t before, after;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	int status = vp_counters_costs_measure(&ops, &known, 2, &costs, &error);
	if (status == VPERF_E_SYSTEM)
		skip(); /* a kernel that does not say how often a thread was switched */
	assert_int_equal(status, VPERF_OK);
	assert_int_equal(costs.exact_read[0], 300);
	assert_int_equal(costs.read[0], 7);
	assert_int_equal(costs.run[0], 2700);
	assert_true(!costs.exact_read[1] && !costs.read[1] && !costs.run[1]);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));

	assert_int_equal(vp_counters_costs_measure(&own, &known, 2, &costs, &error), VPERF_OK);
	assert_int_equal(costs.run[0], 0);
	known.cannot_read = true;
	assert_int_equal(vp_counters_costs_measure(&ops, &known, 2, &costs, &error), VPERF_E_LOST);
}

/* In batches of reads the thread is not switched. In the next 100 it is once, as if each exact read
 * woke another one; then not, until there is enough; then once again, to the second thread. */
static uint64_t switches_at_first(void *context)
{
	enum { OF_READS = 32, BUSY = OF_READS + 100, ALONE = BUSY + 16 };
	static unsigned calls, switches;
	unsigned batch = calls / 2;
	bool busy = (batch >= OF_READS && batch < BUSY) || batch >= ALONE;

	switches += calls++ % 2 && busy;
	return switches;
}

static void test_costs_with_woken_threads(void **state)
{
	const struct vp_counters_costs_ops ops = {read_known, switches_at_first};
	struct known_costs known = {0};
	struct vp_counters_costs costs;
	struct vperf_error error;

	assert_int_equal(vp_counters_costs_measure(&ops, &known, 2, &costs, &error), VPERF_OK);
}

static void *spin(void *shall_end)
{
	while (!*(volatile bool *)shall_end)
		;
	return NULL;
}

/* Where other threads have the CPU whenever they can, it cannot be told, or is the same. */
static void test_costs_beside_others(void **state)
{
	const struct vp_counters_costs_ops ops = {read_known, switches_of_thread};
	struct known_costs known = {0};
	struct vp_counters_costs costs;
	struct vperf_error error;
	bool shall_end = false;
	pthread_t others[2];
	cpu_set_t before, here;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	assert_int_equal(sched_setaffinity(0, sizeof(here), &here), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&others[i], NULL, spin, &shall_end), 0);
	int status = vp_counters_costs_measure(&ops, &known, 2, &costs, &error);
	*(volatile bool *)&shall_end = true;
	for (int i = 0; i < 2; i++)
		pthread_join(others[i], NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	if (!switches_of_thread(NULL))
		skip(); /* a kernel that does not say how often a thread was switched */
	if (status) {
		assert_int_equal(status, VPERF_E_SYSTEM);
		assert_non_null(strstr(error.text, "other threads are busy on this CPU"));
	} else {
		assert_int_equal(costs.run[0], 2700);
	}
}

static void *calibrate_foreign(void *context)
{
	static struct vperf_error error;

	vperf_counters_calibrate(context, &error);
	return &error;
}

static void test_calibrated_by_another_thread(void **state)
{
	struct vperf_counters *counters = open_set((const char *const[]){"page-faults"}, 1, NULL);
	struct vperf_error *error;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, calibrate_foreign, counters), 0);
	assert_int_equal(pthread_join(thread, (void **)&error), 0);
	assert_int_equal(error->status, VPERF_E_THREAD);
	assert_string_equal(error->text, "the set belongs to another thread");
	vperf_counters_close(counters);
}

static void test_calibrated(void **state)
{
	const char *const events[] = {"page-faults"};
	struct vperf_options options = {.size = sizeof(options), .signal = SIGIO, .period = 1000};
	struct vperf_counters *counters = open_set(events, 1, NULL);
	struct vperf_error error;
	uint64_t value, last = 0;

	assert_int_equal(vperf_counters_calibrate(counters, &error), VPERF_OK);
	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	assert_int_equal(vperf_counters_calibrate(counters, &error), VPERF_E_ARGUMENT);
	for (int i = 0; i < 8; i++) {
		fault(64);
		assert_int_equal(vperf_counters_read(counters, &value), VPERF_OK);
		assert_true(value >= last);
		last = value;
	}
	assert_true(value >= 8 * 64UL && value < most_faults(8 * 64));
	assert_int_equal(vperf_counters_stop(counters, &value), VPERF_OK);
	vperf_counters_close(counters);
	counters = open_set(events, 1, &options);
	assert_int_equal(vperf_counters_calibrate(counters, &error), VPERF_E_ARGUMENT);
	assert_string_equal(error.text,
			    "a running set, or one with a signal, cannot be calibrated");
	vperf_counters_close(counters);
}

static void test_times(void **state)
{
	const char *const events[] = {"task-clock"};
	const struct timespec sleep = {.tv_nsec = 50000000};
	struct vperf_counters *counters = open_set(events, 1, NULL);
	struct vperf_times times = {.size = sizeof(times)};
	uint64_t clock;

	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	nanosleep(&sleep, NULL);
	do
		assert_int_equal(vperf_counters_read(counters, &clock), VPERF_OK);
	while (clock < 30000000);
	assert_int_equal(vperf_counters_times(counters, &times), VPERF_OK);
	assert_int_equal(vperf_counters_stop(counters, &clock), VPERF_OK);
	assert_true(times.known & VPERF_KNOWN_ON_CPU);
	assert_true(times.on_cpu >= 30000000);
	assert_true(times.wall >= times.on_cpu + 50000000);
	assert_true(times.stolen_least <= times.stolen_most);
	if (times.known & VPERF_KNOWN_STOLEN)
		assert_true(times.stolen_most <= times.on_cpu);
	vperf_counters_close(counters);
}

static volatile sig_atomic_t signals, wrong_thread;
static pid_t expected_thread;
static int expected_descriptor;

static void on_overflow(int number, siginfo_t *info, void *context)
{
	signals++;
	wrong_thread |= gettid() != expected_thread || info->si_fd != expected_descriptor;
}

static void *idle(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

/* What a thread that had signals at overflows found. */
struct overflows {
	int number; /* of the signal */
	int status; /* that of the first call that failed */
	int told_before_end;
	uint64_t count;
};

static void *overflow_in_thread(void *context)
{
	const char *const events[] = {"task-clock", "page-faults"};
	struct overflows *of = context;
	struct vperf_options options = {
	    .size = sizeof(options), .signal = of->number, .event = 1, .period = 100};
	struct vperf_counters *counters;
	uint64_t values[2] = {0};

	of->status = vperf_counters_open(events, 2, &options, &counters, NULL);
	if (of->status)
		return NULL;
	expected_thread = gettid();
	expected_descriptor = vperf_counters_descriptor(counters);
	of->status = vperf_counters_start(counters);
	fault(10000);
	if (!of->status)
		of->status = vperf_counters_stop(counters, values);
	of->count = values[1];
	vperf_counters_close(counters);
	return NULL;
}

/* Runs that in a thread that is not the process's first, which does nothing meanwhile: the kernel
 * would give that any signal that is not for one thread alone. */
static void count_in_thread(void *(*run)(void *), struct overflows *of)
{
	struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO};
	pthread_t thread;

	signals = wrong_thread = 0;
	sigaction(of->number, &action, NULL);
	assert_int_equal(pthread_create(&thread, NULL, run, of), 0);
	pthread_join(thread, NULL);
	signal(of->number, SIG_DFL);
	assert_int_equal(of->status, VPERF_OK);
	assert_false(wrong_thread);
}

/* One signal each 100 page faults, to the thread that has them, though others run. */
static void test_overflow(void **state)
{
	struct overflows of = {.number = SIGRTMIN + 3};
	bool stop = false;
	pthread_t other;

	vperf_counters_close(open_set((const char *const[]){"page-faults"}, 1, NULL));
	assert_int_equal(pthread_create(&other, NULL, idle, &stop), 0);
	count_in_thread(overflow_in_thread, &of);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	assert_in_range(of.count, 10000, most_faults(10000));
	assert_int_equal(signals, of.count / 100);
}

static void *restart_in_thread(void *context)
{
	const char *const events[] = {"page-faults"};
	struct overflows *of = context;
	struct vperf_options options = {
	    .size = sizeof(options), .signal = of->number, .period = 1000};
	struct vperf_counters *counters;
	uint64_t value = 0;

	of->status = vperf_counters_open(events, 1, &options, &counters, NULL);
	if (of->status)
		return NULL;
	for (int run = 0; !of->status && run < 4; run++) {
		vperf_counters_start(counters);
		fault(600);
		of->status = vperf_counters_stop(counters, &value);
		of->count += value;
	}
	vperf_counters_close(counters);
	return NULL;
}

/* The first signal comes a whole period after each start. */
static void test_restart(void **state)
{
	struct overflows of = {.number = SIGRTMIN + 3};

	count_in_thread(restart_in_thread, &of);
	assert_in_range(of.count, 2400, 4 * most_faults(600));
	assert_int_equal(signals, 0);
}

static uint64_t taken_off;

static bool read_counter(void *context, uint64_t *values)
{
	return vperf_counters_read(context, values) == VPERF_OK;
}

static void take_off(void *context, const uint64_t *values)
{
	taken_off += values[0];
}

static const struct vp_counters_overflow_ops counter_ops = {.read = read_counter,
							    .take_off = take_off};

static struct vp_counters_overflow *open_overflow(const struct vp_counters_overflow_ops *ops,
						  struct vperf_counters *counters, int number)
{
	const struct vperf_options options = {
	    .size = sizeof(options), .signal = number, .period = 100};
	struct vp_counters_overflow *overflow;
	struct vperf_error error;

	int status = vp_counters_overflow_open(ops, counters, 1, &options, &overflow, &error);
	if (status)
		fail_msg("%d: %s", status, error.text);
	return overflow;
}

static void *timed_overflow_in_thread(void *context)
{
	const char *const events[] = {"page-faults"};
	struct overflows *of = context;
	const struct vperf_options options = {
	    .size = sizeof(options), .signal = of->number, .period = 100};
	struct vp_counters_overflow *overflow = NULL;
	struct vperf_counters *counters;
	uint64_t first = 0, last = 0;

	of->status = vperf_counters_open(events, 1, NULL, &counters, NULL);
	if (of->status)
		return NULL;
	of->status = vperf_counters_start(counters);
	if (!of->status)
		of->status =
		    vp_counters_overflow_open(&counter_ops, counters, 1, &options, &overflow, NULL);
	if (!of->status) {
		expected_thread = gettid();
		expected_descriptor = vp_counters_overflow_fd(overflow);
		taken_off = 0;
		of->status = vperf_counters_read(counters, &first);
	}
	if (!of->status)
		of->status = vp_counters_overflow_start(overflow, first);
	for (int i = 0; i < 20; i++)
		fault(5000);
	of->told_before_end = signals;
	if (!of->status)
		of->status = vperf_counters_read(counters, &last);
	of->count = last - first - taken_off;
	if (!of->status)
		vp_counters_overflow_stop(overflow, last);
	vp_counters_overflow_close(overflow);
	vperf_counters_close(counters);
	return NULL;
}

/* The same of a counter that is read only: as many signals as periods, the last ones at the end. */
static void check_timed_overflow(int number)
{
	struct overflows of = {.number = number};

	vperf_counters_close(open_set((const char *const[]){"page-faults"}, 1, NULL));
	count_in_thread(timed_overflow_in_thread, &of);
	assert_true(of.told_before_end > 0);
	assert_in_range(of.count, 100000, most_faults(100000));
	assert_int_equal(signals, of.count / 100);
}

static void test_timed_overflow(void **state)
{
	check_timed_overflow(SIGRTMIN + 3);
	check_timed_overflow(SIGUSR1);
}

enum { MAX_LOOKS = 5000, MAX_WAITING = 64 };
static int looks, most_waiting;

/* How many signals of the timer wait, all being blocked here: they are taken, and sent again. */
static int waiting_signals(void)
{
	const struct timespec now = {0};
	siginfo_t infos[MAX_WAITING];
	sigset_t of_timer;
	int n = 0;

	sigemptyset(&of_timer);
	sigaddset(&of_timer, SIGRTMAX);
	while (n < MAX_WAITING && sigtimedwait(&of_timer, &infos[n], &now) > 0)
		n++;
	for (int i = 0; i < n; i++)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMAX, &infos[i]);
	return n;
}

/* Of the thread's own time. */
static void work(long ns)
{
	struct timespec now, start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

/* Takes far longer than the least time to which a timer is set. */
static void take_off_slowly(void *context, const uint64_t *values)
{
	take_off(context, values);
	if (looks < MAX_LOOKS)
		work(200000);
	looks++;
	int waiting = waiting_signals();
	most_waiting = waiting > most_waiting ? waiting : most_waiting;
}

/* A thread gets on though each look takes longer than until the next one is due, and looks do not
 * pile up. */
static void test_slow_looks(void **state)
{
	const char *const events[] = {"page-faults"};
	const struct vp_counters_overflow_ops ops = {.read = read_counter,
						     .take_off = take_off_slowly};
	struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO};
	struct vperf_counters *counters = open_set(events, 1, NULL);
	uint64_t first, last;

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	struct vp_counters_overflow *overflow = open_overflow(&ops, counters, SIGUSR1);
	signals = 0;
	taken_off = 0;
	looks = most_waiting = 0;
	assert_int_equal(vperf_counters_read(counters, &first), VPERF_OK);
	assert_int_equal(vp_counters_overflow_start(overflow, first), VPERF_OK);
	for (int i = 0; i < 4; i++)
		fault(5000);
	assert_int_equal(vperf_counters_read(counters, &last), VPERF_OK);
	vp_counters_overflow_stop(overflow, last);
	assert_true(looks < MAX_LOOKS);
	assert_int_equal(most_waiting, 1);
	assert_int_equal(signals, (last - first - taken_off) / 100);
	vp_counters_overflow_close(overflow);
	vperf_counters_close(counters);
	signal(SIGUSR1, SIG_DFL);
}

/* What is stopped sends nothing: another program, that the thread executes then, would end by it.
 */
static void test_stopped_timer(void **state)
{
	const char *const events[] = {"page-faults"};
	struct vperf_counters *counters = open_set(events, 1, NULL);
	sigset_t all, before;
	uint64_t shown;

	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	struct vp_counters_overflow *overflow = open_overflow(&counter_ops, counters, SIGUSR1);
	for (int stops = 0; stops < 2; stops++) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		work(20000000);
		int waiting = waiting_signals();
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		assert_int_equal(waiting, 0);
		assert_int_equal(vperf_counters_read(counters, &shown), VPERF_OK);
		assert_int_equal(vp_counters_overflow_start(overflow, shown), VPERF_OK);
		vp_counters_overflow_stop(overflow, shown);
	}
	vp_counters_overflow_close(overflow);
	vperf_counters_close(counters);
}

/* Its timer's own signal has to reach the thread. */
static void test_timer_is_blocked(void **state)
{
	const char *const events[] = {"page-faults"};
	const struct vperf_options options = {
	    .size = sizeof(options), .signal = SIGUSR1, .period = 100};
	struct vperf_counters *counters = open_set(events, 1, NULL);
	struct vp_counters_overflow *overflow;
	struct vperf_error error;
	sigset_t all, before;

	assert_int_equal(vperf_counters_start(counters), VPERF_OK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int status =
	    vp_counters_overflow_open(&counter_ops, counters, 1, &options, &overflow, &error);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(status, VPERF_E_ARGUMENT);
	assert_non_null(strstr(error.text, "blocks signal"));
	vperf_counters_close(counters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_names_of_one_event),
	    cmocka_unit_test(test_groups_that_lost_their_counters),
	    cmocka_unit_test(test_counts_page_faults),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_refuses),
	    cmocka_unit_test(test_fork),
	    cmocka_unit_test(test_view),
	    cmocka_unit_test(test_view_of_set),
	    cmocka_unit_test(test_family),
	    cmocka_unit_test(test_costs),
	    cmocka_unit_test(test_costs_with_woken_threads),
	    cmocka_unit_test(test_costs_beside_others),
	    cmocka_unit_test(test_calibrated),
	    cmocka_unit_test(test_calibrated_by_another_thread),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_overflow),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_timed_overflow),
	    cmocka_unit_test(test_slow_looks),
	    cmocka_unit_test(test_stopped_timer),
	    cmocka_unit_test(test_timer_is_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
