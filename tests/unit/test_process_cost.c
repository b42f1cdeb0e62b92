/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of a process with children that have children, as vperfd with recorders and their guest
 * readers. */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "export/process_cost.h"

#define MS 1000000ULL
#define MIB (1ULL << 20)

enum { WORK_MS = 200, TICK_MS = 10, BLOCK = 64 << 20 };

struct pipes {
	int said[2], told[2];
};

static void work(void)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec < WORK_MS * 1000000L);
}

static void say(const struct pipes *pipes)
{
	(void)!vp_write(pipes->said[1], "x", 1);
}

static void await(int from)
{
	char byte;

	(void)!vp_read(from, &byte, 1);
}

static void wait_for_end(void)
{
	for (;;)
		pause();
}

/* A process whose child works, then says so and either ends, and is reaped, or waits. */
static void be_parent_of_worker(const struct pipes *pipes, bool ends)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		if (ends)
			_exit(0);
		say(pipes);
		wait_for_end();
	}
	if (ends) {
		vp_waitpid(child, NULL, 0);
		say(pipes);
	}
}

static void be_parent_of_living(const struct pipes *pipes)
{
	be_parent_of_worker(pipes, false);
}

static void be_parent_of_ended(const struct pipes *pipes)
{
	be_parent_of_worker(pipes, true);
}

/* Nobody reads the block: without the barrier, compilers leave the writes out. */
static void fill(char *block, int value)
{
	memset(block, value, BLOCK);
	__asm__ volatile("" : : "r"(block) : "memory");
}

/* A process that writes to a block of memory; then a child has the block, too; then the child
 * writes to it. */
static void be_parent_of_copy(const struct pipes *pipes)
{
	char *block = malloc(BLOCK);

	fill(block, 1);
	say(pipes);
	await(pipes->told[0]);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		say(pipes);
		await(pipes->told[0]);
		fill(block, 2);
		say(pipes);
		wait_for_end();
	}
	wait_for_end();
}

static pid_t start(void (*be)(const struct pipes *pipes), struct pipes *pipes)
{
	assert_int_equal(pipe(pipes->said), 0);
	assert_int_equal(pipe(pipes->told), 0);
	pid_t process = fork();
	if (!process) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be(pipes);
		wait_for_end();
	}
	return process;
}

static void end(pid_t process, const struct pipes *pipes)
{
	kill(process, SIGKILL);
	vp_waitpid(process, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(pipes->said[i]);
		close(pipes->told[i]);
	}
}

static struct vp_process_cost read_cost(void)
{
	struct vp_process_cost cost = {0};

	vp_process_cost_update(&cost);
	return cost;
}

static void expect_work(void (*be)(const struct pipes *pipes))
{
	uint64_t before = read_cost().cpu_ns;
	struct pipes pipes;
	pid_t parent = start(be, &pipes);

	await(pipes.said[0]);
	assert_in_range(read_cost().cpu_ns - before, (WORK_MS - TICK_MS) * MS, 2 * WORK_MS * MS);
	end(parent, &pipes);
}

static void test_running_descendants_count(void **state)
{
	expect_work(be_parent_of_living);
}

static void test_descendants_that_ended_count(void **state)
{
	expect_work(be_parent_of_ended);
}

/* What a killed process had used of ticks is not known any more. */
static void test_cpu_time_never_decreases(void **state)
{
	struct vp_process_cost cost = {.cpu_ns = 1000000 * MS};

	vp_process_cost_update(&cost);
	assert_int_equal(cost.cpu_ns, 1000000 * MS);
	assert_true(cost.memory > 0);
}

static void test_memory_of_descendants(void **state)
{
	uint64_t before = read_cost().memory, memory[3];
	struct pipes pipes;
	pid_t parent = start(be_parent_of_copy, &pipes);

	for (int i = 0; i < 3; i++) {
		await(pipes.said[0]);
		memory[i] = read_cost().memory;
		(void)!vp_write(pipes.told[1], "x", 1);
	}
	assert_in_range(memory[0] - before, BLOCK - MIB, BLOCK + 16 * MIB);
	assert_in_range(memory[1] - before, BLOCK - MIB, BLOCK + 16 * MIB);
	assert_in_range(memory[2] - before, 2 * BLOCK - MIB, 2 * BLOCK + 16 * MIB);
	end(parent, &pipes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_running_descendants_count),
	    cmocka_unit_test(test_descendants_that_ended_count),
	    cmocka_unit_test(test_cpu_time_never_decreases),
	    cmocka_unit_test(test_memory_of_descendants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
