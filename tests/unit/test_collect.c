/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the host's processes are told apart, and one of its own is confined. */
#include "unit.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/confine.h"
#include "collect/guest_state.h"
#include "maps/proc.h"

/* A pid is given to another process when the first has ended. */
static void test_process_is_the_same(void **state)
{
	struct vp_guest_state guest = {.pid = (uint32_t)getpid()};

	expect_error(vp_guest_state_expect_same(&guest), "is not the one any more");
	prctl(PR_SET_NAME, "a) R 1 2 (3");
	guest.started = vp_proc_start_time(guest.pid);
	assert_true(guest.started > 1);
	expect_no_error(vp_guest_state_expect_same(&guest));
	guest.started--;
	expect_error(vp_guest_state_expect_same(&guest), "is not the one any more");
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	guest = (struct vp_guest_state){(uint32_t)child, vp_proc_start_time((uint32_t)child)};
	assert_true(guest.started > 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(vp_proc_start_time((uint32_t)child), 0);
	expect_error(vp_guest_state_expect_same(&guest), "is not the one any more");
}

static VP_NORETURN void say_confined(int kept)
{
	static const int others[] = {STDOUT_FILENO, STDERR_FILENO};

	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		if (dup2(kept, others[i]) < 0)
			_exit(1);
	if (!vp_confine(&kept, 1))
		_exit(1);
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		if (write(others[i], "bad", 3) != 3)
			_exit(1);
	_exit(write(kept, "good", 4) != 4);
}

/* What it says elsewhere than it is heard is nobody's to read: a terminal does as it is told. */
static void test_confined_is_heard_only_where_asked(void **state)
{
	int ends[2];
	char heard[64];

	if (geteuid() != 0)
		skip();
	unsetenv("VPERF_DEBUG");
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0)
		say_confined(ends[1]);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(ends[0], heard, sizeof(heard)), 4);
	assert_memory_equal(heard, "good", 4);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_process_is_the_same),
	    cmocka_unit_test(test_confined_is_heard_only_where_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
