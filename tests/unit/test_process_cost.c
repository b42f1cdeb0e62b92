/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time of processes with children, as that of a recorder with its guest readers. */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/process_cost.h"

#define MS 1000000ULL

enum { WORK_MS = 200, TICK_MS = 10 };

static void work(void)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec < WORK_MS * 1000000L);
}

/* A process whose child works, then says so and either ends, and is reaped, or waits. */
static void be_parent(int said, bool ends)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid_t child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		if (ends)
			_exit(0);
		(void)!vp_write(said, "x", 1);
		for (;;)
			pause();
	}
	if (ends) {
		vp_waitpid(child, NULL, 0);
		(void)!vp_write(said, "x", 1);
	}
	for (;;)
		pause();
}

static void expect_work(bool ends)
{
	struct vp_process_cost cost = {0};
	int said[2];
	char byte;

	assert_int_equal(pipe(said), 0);
	pid_t parent = fork();
	if (!parent)
		be_parent(said[1], ends);
	assert_int_equal(vp_read(said[0], &byte, 1), 1);
	vp_process_cost_add(parent, &cost);
	assert_in_range(cost.cpu_ns, (WORK_MS - TICK_MS) * MS, 2 * WORK_MS * MS);
	assert_true(cost.memory > 0);
	kill(parent, SIGKILL);
	vp_waitpid(parent, NULL, 0);
	close(said[0]);
	close(said[1]);
}

static void test_running_children_count(void **state)
{
	expect_work(false);
}

static void test_children_that_ended_count(void **state)
{
	expect_work(true);
}

static void test_no_process(void **state)
{
	struct vp_process_cost cost = {0};
	pid_t ended = fork();

	if (!ended)
		_exit(0);
	vp_waitpid(ended, NULL, 0);
	vp_process_cost_add(ended, &cost);
	vp_process_cost_add(0, &cost);
	assert_int_equal(cost.cpu_ns, 0);
	assert_int_equal(cost.memory, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_running_children_count),
	    cmocka_unit_test(test_children_that_ended_count),
	    cmocka_unit_test(test_no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
