/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf's events as a group: how the kernel, in whose place the test is, is asked for each. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/macros.h"
#include "counters/counters_event.h"
#include "counters/set.h"
#include "perf_open.h"

enum { MAX = 8 };

static const struct vp_counters_event events[] = {
    {.name = "cycles", .type = PERF_TYPE_HARDWARE, .config = 0, .exclude_kernel = true},
    {.name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = 2, .exclude_user = true},
    {.name = "raw", .type = PERF_TYPE_RAW, .config = 0x1234}};

/* The last try for each event. */
static struct asked {
	struct perf_event_attr attr;
	int pid, cpu, leader, fd;
	unsigned long flags;
	unsigned tries;
} asked[MAX];
static unsigned n_asked;
static int refuses; /* errno for the event of that number … */
static unsigned refused;
static uint64_t config1_allowed = UINT64_MAX; /* more is refused */

static unsigned number_of(const struct perf_event_attr *attr)
{
	unsigned number = 0;

	while (events[number].type != attr->type || events[number].config != attr->config)
		assert_in_range(++number, 0, VP_ARRAY_SIZE(events) - 1);
	return number;
}

static long open_event(const struct perf_event_attr *attr, const long *words)
{
	unsigned number = number_of(attr);
	struct asked *one = &asked[number];

	n_asked = number + 1;
	*one = (struct asked){.attr = *attr,
			      .pid = (int)words[1],
			      .cpu = (int)words[2],
			      .leader = (int)words[3],
			      .flags = (unsigned long)words[4],
			      .tries = one->tries + 1};
	if ((number == refused && refuses) || attr->config1 > config1_allowed) {
		errno = refuses ? refuses : EINVAL;
		return one->fd = -1;
	}
	/* One that can be signalled for. */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[1]);
	return one->fd = ends[0];
}

/* Requests to the events, in the kernel's place. */
static struct request {
	int fd;
	unsigned long number;
	uint64_t period; /* of PERF_EVENT_IOC_PERIOD */
} requests[MAX];
static unsigned n_requests;

int __wrap_ioctl(int fd, unsigned long number, ...);

int __wrap_ioctl(int fd, unsigned long number, ...)
{
	struct request *one = &requests[n_requests++];
	va_list arguments;

	assert_in_range(n_requests, 1, MAX);
	*one = (struct request){.fd = fd, .number = number};
	va_start(arguments, number);
	if (number == PERF_EVENT_IOC_PERIOD)
		one->period = *va_arg(arguments, const uint64_t *);
	va_end(arguments);
	return 0;
}

static int open_group(unsigned n, const struct vperf_options *options,
		      struct vp_counters_group *group, struct vperf_error *error)
{
	n_asked = 0;
	memset(asked, 0, sizeof(asked));
	return vp_counters_group_open(events, n, options, group, error);
}

/* All events follow the leader, which has its counters all the time or not at all. */
static void test_group(void **state)
{
	static const struct vperf_options options = {.event = 0};
	struct vp_counters_group group;
	struct vperf_error error;

	assert_int_equal(open_group(3, &options, &group, &error), VPERF_OK);
	assert_int_equal(n_asked, 3);
	assert_int_equal(group.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct asked *one = &asked[i];
		assert_int_equal(one->pid, 0);
		assert_int_equal(one->cpu, -1);
		assert_int_equal(one->leader, i ? group.fds[0] : -1);
		assert_int_equal(one->flags, PERF_FLAG_FD_CLOEXEC);
		assert_int_equal(one->fd, group.fds[i]);
		assert_null(group.pages[i]);
		assert_int_equal(one->attr.size, sizeof(one->attr));
		assert_int_equal(one->attr.type, events[i].type);
		assert_int_equal(one->attr.config, events[i].config);
		assert_int_equal(one->attr.exclude_kernel, events[i].exclude_kernel);
		assert_int_equal(one->attr.exclude_user, events[i].exclude_user);
		assert_int_equal(one->attr.pinned, i == 0);
		assert_int_equal(one->attr.disabled, i == 0);
		assert_int_equal(one->attr.read_format, PERF_FORMAT_GROUP |
							    PERF_FORMAT_TOTAL_TIME_ENABLED |
							    PERF_FORMAT_TOTAL_TIME_RUNNING);
		assert_int_equal(one->attr.sample_period, 0);
		assert_int_equal(one->attr.wakeup_events, 0);
	}
	vp_counters_group_close(&group);
	assert_int_equal(group.n, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fcntl(asked[i].fd, F_GETFD), -1);
}

/* One alone is read without a group's head. */
static void test_single(void **state)
{
	static const struct vperf_options options = {.event = 0};
	struct vp_counters_group group;
	struct vperf_error error;

	assert_int_equal(open_group(1, &options, &group, &error), VPERF_OK);
	assert_int_equal(n_asked, 1);
	assert_true(asked[0].attr.pinned && asked[0].attr.disabled);
	assert_int_equal(asked[0].attr.read_format,
			 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	vp_counters_group_close(&group);
}

/* Overflows of one event, whichever it is, are signalled to this thread. */
static void test_signal(void **state)
{
	const struct vperf_options options = {.signal = SIGUSR1, .event = 1, .period = 777};
	struct vp_counters_group group;
	struct vperf_error error;
	struct f_owner_ex owner;

	assert_int_equal(open_group(3, &options, &group, &error), VPERF_OK);
	for (unsigned i = 0; i < 3; i++) {
		bool is_it = i == 1;
		assert_int_equal(asked[i].attr.sample_period, is_it ? 777 : 0);
		assert_int_equal(asked[i].attr.wakeup_events, is_it);
		assert_int_equal(asked[i].attr.pinned, i == 0);
		assert_int_equal(fcntl(group.fds[i], F_GETSIG), is_it ? SIGUSR1 : 0);
	}
	assert_int_equal(fcntl(group.fds[1], F_GETOWN_EX, &owner), 0);
	assert_int_equal(owner.type, F_OWNER_TID);
	assert_int_equal(owner.pid, gettid());
	vp_counters_group_close(&group);
}

static void check_async(const struct vp_counters_group *group, int async)
{
	for (unsigned i = 0; i < group->n; i++)
		assert_int_equal(fcntl(group->fds[i], F_GETFL) & O_ASYNC, i == 1 ? async : 0);
}

/* Events that are enabled before the start, to time reads, send no signal, and their counts are not
 * part of the first period. */
static void test_first_period(void **state)
{
	const struct vperf_options options = {.signal = SIGUSR1, .event = 1, .period = 777};
	struct vp_counters_group group;
	struct vperf_error error;

	assert_int_equal(open_group(3, &options, &group, &error), VPERF_OK);
	n_requests = 0;
	assert_int_equal(vp_counters_group_enable(&group, true), VPERF_OK);
	assert_int_equal(vp_counters_group_enable(&group, false), VPERF_OK);
	assert_int_equal(n_requests, 2);
	check_async(&group, 0);
	for (int start = 0; start < 2; start++) {
		n_requests = 0;
		assert_int_equal(vp_counters_group_start(&group), VPERF_OK);
		assert_int_equal(n_requests, 2);
		assert_int_equal(requests[0].number, PERF_EVENT_IOC_PERIOD);
		assert_int_equal(requests[0].fd, group.fds[1]);
		assert_int_equal(requests[0].period, 777);
		assert_int_equal(requests[1].number, PERF_EVENT_IOC_ENABLE);
		assert_int_equal(requests[1].fd, group.fds[0]);
		check_async(&group, O_ASYNC);
	}
	vp_counters_group_close(&group);
}

/* What cannot be counted is said of the event that it is; those before it are closed. */
static void test_refusals(void **state)
{
	static const struct vperf_options options = {.event = 0};
	static const struct {
		int refuses;
		unsigned refused;
		int status;
		const char *text;
	} cases[] = {
	    {EACCES, 0, VPERF_E_RIGHTS,
	     "this user has no permission to count 'cycles': see kernel.perf_event_paranoid"},
	    {EPERM, 2, VPERF_E_RIGHTS,
	     "this user has no permission to count 'raw': see kernel.perf_event_paranoid; user "
	     "space only, with ':u', is allowed"},
	    {ENOENT, 0, VPERF_E_NO_COUNTER, "this machine has no counter for 'cycles'"},
	    {EOPNOTSUPP, 1, VPERF_E_NO_COUNTER, "this machine has no counter for 'page-faults'"},
	    {EINVAL, 0, VPERF_E_NO_COUNTER, "this machine cannot count 'cycles'"},
	    {EINVAL, 1, VPERF_E_TOO_MANY, "there is no counter left for 'page-faults'"},
	    {ENOSPC, 2, VPERF_E_TOO_MANY, "there is no counter left for 'raw'"},
	    {ENOSYS, 0, VPERF_E_NO_COUNTER, "this kernel has no perf events"},
	    {EMFILE, 1, VPERF_E_SYSTEM, "cannot open 'page-faults': Too many open files"}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_counters_group group;
		struct vperf_error error;
		refuses = cases[i].refuses;
		refused = cases[i].refused;
		assert_int_equal(open_group(3, &options, &group, &error), cases[i].status);
		assert_string_equal(error.text, cases[i].text);
		assert_int_equal(group.n, 0);
		for (unsigned j = 0; j < cases[i].refused; j++)
			assert_int_equal(fcntl(asked[j].fd, F_GETFD), -1);
	}
	refuses = 0;
}

/* On 64-bit Arm, hardware events are asked for with what can be read in user space first: 64 bits,
 * then 32. On other processors these bits have another meaning. Overflows are counted without them.
 */
static void test_user_reads(void **state)
{
#ifdef __aarch64__
	static const uint64_t granted[][2] = {{3, 1}, {2, 2}, {0, 3}}; /* by the number of tries */
#else
	static const uint64_t granted[][2] = {{0, 1}, {0, 1}, {0, 1}};
#endif
	static const uint64_t allowed[] = {UINT64_MAX, 2, 0};

	for (size_t i = 0; i < VP_ARRAY_SIZE(allowed); i++) {
		const struct vperf_options options = {.signal = SIGUSR1, .event = 2, .period = 777};
		struct vp_counters_group group;
		struct vperf_error error;
		config1_allowed = allowed[i];
		assert_int_equal(open_group(3, &options, &group, &error), VPERF_OK);
		assert_int_equal(asked[0].attr.config1, granted[i][0]);
		assert_int_equal(asked[0].tries, granted[i][1]);
		for (unsigned other = 1; other < 3; other++) {
			assert_int_equal(asked[other].attr.config1, 0);
			assert_int_equal(asked[other].tries, 1);
		}
		vp_counters_group_close(&group);
	}
	config1_allowed = UINT64_MAX;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_group),    cmocka_unit_test(test_single),
	    cmocka_unit_test(test_signal),   cmocka_unit_test(test_first_period),
	    cmocka_unit_test(test_refusals), cmocka_unit_test(test_user_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
