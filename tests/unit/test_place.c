/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of a recording: an older one makes way, what is no recording or in use does not. */
#include "unit.h"

#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "session/control.h"
#include "store/directory.h"

#define NAME "test_place.rec"
#define OLD NAME ".old"
#define FIRST_LINE "vperf-recording 1\n" /* older formats are recordings, too */

static void clean(void)
{
	(void)!system("rm -rf " NAME " " OLD);
}

static void place_and_close(const char *path)
{
	struct vp_recording_dir place;

	expect_no_error(vp_recording_dir_claim(path, &place));
	assert_true(place.lock >= 0);
	expect_no_error(vp_recording_dir_publish(&place));
	vp_recording_dir_leave(&place);
}

/* Nothing is left of a claim that is not published. */
static void expect_refused(const char *path, const char *why)
{
	struct vp_recording_dir place;
	glob_t found;

	expect_error(vp_recording_dir_claim(path, &place), why);
	assert_int_equal(place.lock, -1);
	assert_int_equal(glob(NAME ".*.new", 0, NULL, &found), GLOB_NOMATCH);
}

static void make_recording(const char *path)
{
	char file[64];

	snprintf(file, sizeof(file), "%s/recording", path);
	temporary_file(file, FIRST_LINE "tool 1\n", strlen(FIRST_LINE "tool 1\n"));
}

/* With all that vperf writes, and what is left where it was killed while it wrote. */
static void make_whole(const char *path)
{
	static const char *const names[] = {
	    "vms",
	    "cgroups",
	    "recipe",
	    "host.maps",
	    "guest-a b.maps",
	    "agent-a b.maps",
	    "guest-x.orc",
	    "vms.tmp",
	    "host/metadata",
	    "host/cpu12",
	    "host/vcpus",
	    "host/account",
	    "host/intervals-cpu3",
	    "host.events",
	    "guest-x.events",
	    "guest-x/metadata",
	    "guest-x/trace-cpu0",
	    "host/tracepoints-cpu1",
	    "packs/a0.pack",
	    "packs/b1.pack.0123456789abcdef.tmp",
	};
	static const char *const folders[] = {"host", "packs", "guest-x"};
	char name[128];

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, folders[i]);
		mkdir(name, 0755);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		temporary_file(name, "1", 1);
	}
	make_recording(path);
}

static void test_older_makes_way(void **state)
{
	clean();
	place_and_close(NAME);
	make_whole(NAME);
	place_and_close(NAME "//"); /* a slash at the end changes nothing */
	assert_int_equal(access(OLD "/host/cpu12", F_OK), 0);
	assert_int_not_equal(access(NAME "/host", F_OK), 0);
	make_recording(NAME);
	place_and_close(NAME);
	assert_int_not_equal(access(OLD "/host", F_OK), 0);
	assert_int_equal(access(OLD "/recording", F_OK), 0);
}

static void test_others_do_not(void **state)
{
	clean();
	mkdir(NAME, 0755);
	temporary_file(NAME "/precious", "1", 1);
	expect_refused(NAME, "is not a recording");
	expect_refused(NAME "/precious", "not a directory");
	assert_int_equal(access(NAME "/precious", F_OK), 0);
}

/* A directory of somebody else's may have a file of that name. */
static void test_name_alone_does_not(void **state)
{
	clean();
	mkdir(NAME, 0755);
	temporary_file(NAME "/recording", "of a concert", 12);
	expect_refused(NAME, "is not a recording");
	assert_int_equal(access(NAME "/recording", F_OK), 0);
	assert_int_equal(unlink(NAME "/recording"), 0);
	temporary_file("test_place.elsewhere", FIRST_LINE, strlen(FIRST_LINE));
	assert_int_equal(symlink("../test_place.elsewhere", NAME "/recording"), 0);
	expect_refused(NAME, "is not a recording");
}

static void expect_old_stays(const char *why)
{
	expect_refused(NAME, why);
	assert_int_equal(access(NAME "/recording", F_OK), 0);
	assert_int_equal(access(OLD "/recording", F_OK), 0);
	assert_int_equal(access(OLD "/host/cpu12", F_OK), 0);
}

/* What vperf did not write is not removed, and then nothing is. */
static void test_old_with_others_stays(void **state)
{
	clean();
	place_and_close(NAME);
	make_whole(NAME);
	place_and_close(NAME);
	make_recording(NAME);
	temporary_file(OLD "/precious", "1", 1);
	expect_old_stays("precious");
	assert_int_equal(unlink(OLD "/precious"), 0);
	temporary_file(OLD "/packs/precious", "1", 1);
	expect_old_stays("packs/precious");
	assert_int_equal(unlink(OLD "/packs/precious"), 0);
	mkdir("test_place.elsewhere.d", 0755);
	temporary_file("test_place.elsewhere.d/a.pack", "1", 1);
	assert_int_equal(rename(OLD "/packs", OLD ".packs"), 0);
	assert_int_equal(symlink("../test_place.elsewhere.d", OLD "/packs"), 0);
	expect_old_stays("cannot read directory");
	assert_int_equal(access("test_place.elsewhere.d/a.pack", F_OK), 0);
	assert_int_equal(unlink(OLD "/packs"), 0);
	place_and_close(NAME);
	(void)!system("rm -rf " OLD ".packs test_place.elsewhere.d");
	clean();
}

/* Until it is published, a new recording leaves older ones as they are. */
static void test_claim_moves_nothing(void **state)
{
	struct vp_recording_dir place;
	char now[128];

	clean();
	place_and_close(NAME);
	make_whole(NAME);
	place_and_close(NAME);
	make_recording(NAME);
	expect_no_error(vp_recording_dir_claim(NAME, &place));
	snprintf(now, sizeof(now), "%s", place.now);
	make_whole(place.now);
	assert_int_equal(access(NAME "/recording", F_OK), 0);
	assert_int_equal(access(OLD "/host/cpu12", F_OK), 0);
	vp_recording_dir_leave(&place);
	assert_int_not_equal(access(now, F_OK), 0);
	assert_int_equal(access(NAME "/recording", F_OK), 0);
	assert_int_equal(access(OLD "/host/cpu12", F_OK), 0);
	clean();
}

/* A directory that somebody else made meanwhile stays. */
static void test_name_is_taken_meanwhile(void **state)
{
	struct vp_recording_dir place;

	clean();
	expect_no_error(vp_recording_dir_claim(NAME, &place));
	mkdir(NAME, 0755);
	expect_error(vp_recording_dir_publish(&place), "cannot rename");
	vp_recording_dir_leave(&place);
	assert_int_equal(rmdir(NAME), 0);
}

static void test_not_to_standard_output(void **state)
{
	expect_refused("-", "a recording is a directory");
	assert_int_not_equal(access("-", F_OK), 0);
}

static void test_one_recorder_at_a_time(void **state)
{
	struct vp_recording_dir place;

	clean();
	expect_no_error(vp_recording_dir_claim(NAME, &place));
	expect_no_error(vp_recording_dir_publish(&place));
	expect_refused(NAME, "another 'vperf record'");
	make_recording(NAME);
	expect_refused(NAME, "another 'vperf record'");
	vp_recording_dir_leave(&place);
	expect_no_error(vp_recording_dir_claim(NAME, &place)); /* from the claim on */
	expect_error(vp_recording_dir_claim(NAME, &(struct vp_recording_dir){0}),
		     "another 'vperf record'");
	expect_no_error(vp_recording_dir_publish(&place));
	vp_recording_dir_leave(&place);
	clean();
}

/* A flight recorder that was killed left its socket; a file of that name is not vperf's. */
static void test_socket_left(void **state)
{
	int listener;

	clean();
	assert_int_equal(mkdir(NAME, 0755), 0);
	make_recording(NAME);
	expect_no_error(vp_control_listen(NAME, &listener));
	close(listener);
	place_and_close(NAME);
	make_recording(NAME);
	place_and_close(NAME);
	assert_int_equal(access(OLD "/control", F_OK), -1);
	assert_int_equal(access(OLD "/recording", F_OK), 0);
	temporary_file(OLD "/control", "", 0);
	make_recording(NAME);
	expect_refused(NAME, "control");
	clean();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_older_makes_way),
	    cmocka_unit_test(test_others_do_not),
	    cmocka_unit_test(test_name_alone_does_not),
	    cmocka_unit_test(test_old_with_others_stays),
	    cmocka_unit_test(test_claim_moves_nothing),
	    cmocka_unit_test(test_name_is_taken_meanwhile),
	    cmocka_unit_test(test_not_to_standard_output),
	    cmocka_unit_test(test_one_recorder_at_a_time),
	    cmocka_unit_test(test_socket_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
