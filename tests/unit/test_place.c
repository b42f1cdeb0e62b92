/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of a recording: an older one makes way, what is no recording or in use does not. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "recording/place.h"

#define NAME "test_place.rec"
#define OLD NAME ".old"

static void clean(void)
{
	(void)!system("rm -rf " NAME " " OLD);
}

static void place_and_close(const char *path)
{
	int lock = -1;

	expect_no_error(vp_recording_place(path, &lock));
	assert_true(lock >= 0);
	close(lock);
}

static void test_older_makes_way(void **state)
{
	clean();
	place_and_close(NAME);
	temporary_file(NAME "/recording", "1", 1);
	temporary_file(NAME "/first", "1", 1);
	place_and_close(NAME "//"); /* a slash at the end changes nothing */
	assert_int_equal(access(OLD "/first", F_OK), 0);
	assert_int_not_equal(access(NAME "/first", F_OK), 0);
	temporary_file(NAME "/recording", "2", 1);
	place_and_close(NAME);
	assert_int_not_equal(access(OLD "/first", F_OK), 0);
	assert_int_equal(access(OLD "/recording", F_OK), 0);
}

static void test_others_do_not(void **state)
{
	int lock = -1;

	clean();
	mkdir(NAME, 0755);
	temporary_file(NAME "/precious", "1", 1);
	expect_error(vp_recording_place(NAME, &lock), "is not a recording");
	expect_error(vp_recording_place(NAME "/precious", &lock), "not a directory");
	assert_int_equal(lock, -1);
	assert_int_equal(access(NAME "/precious", F_OK), 0);
}

static void test_one_recorder_at_a_time(void **state)
{
	int lock = -1, second = -1;

	clean();
	expect_no_error(vp_recording_place(NAME, &lock));
	expect_error(vp_recording_place(NAME, &second), "another 'vperf record'");
	temporary_file(NAME "/recording", "1", 1);
	expect_error(vp_recording_place(NAME, &second), "another 'vperf record'");
	assert_int_equal(second, -1);
	close(lock);
	place_and_close(NAME);
	clean();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_older_makes_way),
	    cmocka_unit_test(test_others_do_not),
	    cmocka_unit_test(test_one_recorder_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
