/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timer of overflow signals, with a thread's time and count that the test sets: signals are
 * hardly late, whatever is stolen from the thread. */
#include "unit.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counters/overflow.h"

enum { PERIOD = 1000000 };

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_ioctl(int fd, unsigned long request, ...);

/* The thread's time, its count, the part of that while signals were stopped, and the interval that
 * the timer was set to. */
static uint64_t passed, counted, paused, interval;
static uint64_t n_signals, latest;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (clock != CLOCK_THREAD_CPUTIME_ID)
		return __real_clock_gettime(clock, ret);
	*ret = (struct timespec){.tv_sec = (time_t)(passed / 1000000000),
				 .tv_nsec = (long)(passed % 1000000000)};
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	if (request == PERF_EVENT_IOC_PERIOD)
		interval = *va_arg(arguments, uint64_t *);
	va_end(arguments);
	return 0;
}

static bool read_count(void *context, uint64_t *values)
{
	values[0] = counted;
	return true;
}

static void take_off(void *context, const uint64_t *values)
{
	assert_int_equal(values[0], 0);
}

static bool note_signal(void *context, const void *interrupted)
{
	uint64_t late = counted - paused - ++n_signals * PERIOD;

	latest = late > latest ? late : latest;
	return true;
}

static void ignore(int number)
{
}

/* The timer's interval passes, of which a part was stolen: that is time of the thread, too. */
static void pass(int fd, uint64_t stolen, uint64_t speed)
{
	siginfo_t info = {.si_signo = SIGRTMAX, .si_code = POLL_IN};
	uint64_t ran = stolen ? interval / 2 : interval;

	info.si_fd = fd;
	passed += ran + stolen;
	counted += ran * speed;
	assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMAX, &info), 0);
}

static struct vp_counters_overflow *start(void)
{
	static const struct vp_counters_overflow_ops ops = {
	    .read = read_count, .take_off = take_off, .notify = note_signal};
	const struct vperf_options options = {
	    .size = sizeof(options), .signal = SIGRTMIN + 3, .period = PERIOD};
	struct vp_counters_overflow *overflow;
	struct vperf_error error;

	signal(SIGRTMIN + 3, ignore);
	passed = counted = paused = n_signals = latest = 0;
	if (vp_counters_overflow_open(&ops, NULL, 1, &options, &overflow, &error))
		fail_msg("%s", error.text);
	assert_int_equal(vp_counters_overflow_start(overflow, 0), VPERF_OK);
	return overflow;
}

static void end(struct vp_counters_overflow *overflow)
{
	vp_counters_overflow_stop(overflow, counted);
	assert_int_equal(n_signals, (counted - paused) / PERIOD);
	vp_counters_overflow_close(overflow);
}

/* Nothing is stolen; then several intervals in a row, each of 5 ms; then each third one. */
static void test_steal(void **state)
{
	struct vp_counters_overflow *overflow = start();
	int fd = vp_counters_overflow_fd(overflow);

	for (int i = 0; i < 300; i++)
		pass(fd, 0, 1);
	assert_in_range(latest, 1, PERIOD / 20);
	for (int i = 0; i < 100; i++)
		pass(fd, i % 10 < 4 ? 5000000 : 0, 1);
	assert_in_range(latest, 1, PERIOD / 20);
	for (int i = 0; i < 300; i++)
		pass(fd, i % 3 ? 0 : 5000000, 1);
	assert_in_range(latest, 1, PERIOD / 20);
	assert_true(n_signals > 100);
	end(overflow);
}

/* A thread that becomes slower, without steal: the timer follows, and does not fire in vain. */
static void test_slower(void **state)
{
	struct vp_counters_overflow *overflow = start();
	int fd = vp_counters_overflow_fd(overflow);

	for (int i = 0; i < 100; i++)
		pass(fd, 0, 8);
	uint64_t before = n_signals;
	for (int i = 0; i < 200; i++)
		pass(fd, 0, 1);
	assert_true(n_signals - before > 100);
	end(overflow);
}

/* What is counted while signals are stopped is in no period, however often they are. */
static void test_pauses(void **state)
{
	struct vp_counters_overflow *overflow = start();
	int fd = vp_counters_overflow_fd(overflow);

	for (uint64_t pause = 0; pause < 5; pause++) {
		for (int i = 0; i < 40; i++)
			pass(fd, 0, 1);
		vp_counters_overflow_stop(overflow, counted);
		uint64_t before = n_signals;
		counted += (3 + pause) * PERIOD + PERIOD / 3;
		paused += (3 + pause) * PERIOD + PERIOD / 3;
		assert_int_equal(vp_counters_overflow_resume(overflow, counted), VPERF_OK);
		assert_int_equal(n_signals, before);
	}
	assert_in_range(latest, 1, PERIOD / 20);
	assert_true(n_signals > 20);
	end(overflow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steal),
	    cmocka_unit_test(test_slower),
	    cmocka_unit_test(test_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
