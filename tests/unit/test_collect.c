/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the host's processes are told apart. */
#include "unit.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_process_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
