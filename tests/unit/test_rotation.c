/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings one after another, with recorders and a clock of the test's own. */
#include "unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "daemon/rotation.h"

#define SECOND 1000000000ULL

/* Recorder N is process N and writes to "rec-N". */
static struct {
	int started;
	bool fails, records[100], asked[100], killed[100], ended[100], failed[100];
	int closed[100];
	uint64_t bytes;
} host;

static struct vp_error *start(void *context, const char *path, pid_t *ret)
{
	if (host.fails)
		return vp_error_new("no processes");
	*ret = ++host.started;
	return NULL;
}

static void stop(void *context, pid_t recorder, bool kills)
{
	(kills ? host.killed : host.asked)[recorder] = true;
}

static bool has_ended(void *context, pid_t recorder, bool *failed)
{
	*failed = host.failed[recorder];
	return host.ended[recorder];
}

static bool is_recorded(void *context, const char *path)
{
	return host.records[atoi(path + 4)];
}

static uint64_t bytes(void *context, const char *path)
{
	return host.bytes;
}

static char *path(void *context, uint64_t realtime)
{
	return vp_format("rec-%d", host.started + 1);
}

static void closed(void *context, const char *path)
{
	host.closed[atoi(path + 4)]++;
}

static const struct vp_rotation_ops ops = {start, stop, has_ended, is_recorded,
					   bytes, path, closed};
static vp_notices notices;

static struct vp_rotation begin(void)
{
	memset(&host, 0, sizeof(host));
	return (struct vp_rotation){
	    .ops = &ops, .rotate_ns = 100 * SECOND, .rotate_bytes = 1000, .notices = &notices};
}

static void step(struct vp_rotation *rotation, uint64_t second)
{
	vp_rotation_step(rotation, (1000 + second) * SECOND, second * SECOND);
}

static void expect_notice(const char *part)
{
	VP_AUTO_FREE char *notice = vp_notices_take(&notices);

	assert_non_null(notice);
	if (!strstr(notice, part))
		fail_msg("'%s' does not say '%s'", notice, part);
}

static void end(struct vp_rotation *rotation)
{
	VP_AUTO_FREE char *notice = vp_notices_take(&notices);

	assert_null(notice);
	vp_rotation_deinit(rotation);
	vp_notices_deinit(&notices);
}

/* The next one records before the last is asked to end. */
static void test_overlap(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	assert_int_equal(host.started, 1);
	assert_int_equal(rotation.open.process, 0);
	host.records[1] = true;
	step(&rotation, 1);
	assert_string_equal(rotation.open.path, "rec-1");
	step(&rotation, 100);
	assert_int_equal(host.started, 1);
	step(&rotation, 101);
	assert_int_equal(host.started, 2);
	step(&rotation, 102);
	assert_int_equal(rotation.open.process, 1);
	assert_false(host.asked[1]);
	host.records[2] = true;
	step(&rotation, 103);
	assert_int_equal(rotation.open.process, 2);
	assert_true(host.asked[1]);
	assert_false(host.asked[2]);
	assert_int_equal(rotation.ending.count, 1);
	host.ended[1] = true;
	step(&rotation, 104);
	assert_int_equal(rotation.ending.count, 0);
	end(&rotation);
}

/* Hosts that start together do not rotate together: the first recording is shorter, the others are
 * not. */
static void test_early(void **state)
{
	struct vp_rotation rotation = begin();

	rotation.early_ns = 40 * SECOND;
	step(&rotation, 0);
	host.records[1] = true;
	step(&rotation, 1);
	step(&rotation, 60);
	assert_int_equal(host.started, 1);
	step(&rotation, 61);
	assert_int_equal(host.started, 2);
	host.records[2] = true;
	step(&rotation, 62);
	host.ended[1] = true;
	step(&rotation, 161);
	assert_int_equal(host.started, 2);
	step(&rotation, 162);
	assert_int_equal(host.started, 3);
	end(&rotation);
}

static void test_by_size(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	host.records[1] = true;
	step(&rotation, 1);
	host.bytes = 999;
	step(&rotation, 2);
	assert_int_equal(host.started, 1);
	host.bytes = 1000;
	step(&rotation, 3);
	assert_int_equal(host.started, 2);
	host.bytes = 0;
	host.records[2] = true;
	step(&rotation, 4);
	step(&rotation, 5);
	assert_int_equal(host.started, 2);
	vp_rotation_ask(&rotation);
	step(&rotation, 6);
	assert_int_equal(host.started, 3);
	end(&rotation);
}

/* A recorder that was killed is followed by another at once. */
static void test_killed(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	host.records[1] = true;
	step(&rotation, 1);
	host.ended[1] = true;
	step(&rotation, 2);
	expect_notice("recorder of 'rec-1' exited unexpectedly");
	assert_int_equal(host.started, 2);
	assert_int_equal(rotation.open.process, 0);
	host.records[2] = true;
	step(&rotation, 3);
	assert_string_equal(rotation.open.path, "rec-2");
	end(&rotation);
}

/* A recorder that is killed while it completes its recording is reported, one that was asked to end
 * is not. */
static void test_killed_at_end(void **state)
{
	for (int failed = 0; failed <= 1; failed++) {
		struct vp_rotation rotation = begin();

		step(&rotation, 0);
		host.records[1] = true;
		step(&rotation, 1);
		step(&rotation, 101);
		host.records[2] = true;
		step(&rotation, 102);
		host.ended[1] = true;
		host.failed[1] = failed;
		step(&rotation, 103);
		if (failed)
			expect_notice("recorder of 'rec-1' exited unexpectedly");
		assert_string_equal(rotation.open.path, "rec-2");
		assert_int_equal(host.closed[1], 1);
		end(&rotation);
	}
}

/* A recorder that is killed as soon as it records, before the next step, leaves a recording. */
static void test_killed_at_start(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	host.records[1] = true;
	host.ended[1] = true;
	step(&rotation, 1);
	expect_notice("recorder of 'rec-1' exited unexpectedly");
	assert_int_equal(host.closed[1], 1);
	assert_int_equal(rotation.open.process, 0);
	step(&rotation, 2);
	assert_int_equal(host.started, 2);
	end(&rotation);
}

/* Those that fail are started again, later each time; the open one goes on meanwhile. */
static void test_backoff(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	host.ended[1] = true;
	step(&rotation, 1);
	expect_notice("'rec-1' exited before it recorded");
	assert_int_equal(host.started, 1);
	step(&rotation, 2);
	assert_int_equal(host.started, 2);
	host.ended[2] = true;
	step(&rotation, 3);
	expect_notice("'rec-2' exited before it recorded");
	step(&rotation, 4);
	assert_int_equal(host.started, 2);
	step(&rotation, 5);
	assert_int_equal(host.started, 3);
	host.records[3] = true;
	step(&rotation, 6);
	assert_int_equal(rotation.open.process, 3);
	host.fails = true;
	step(&rotation, 200);
	expect_notice("cannot start a recorder: no processes");
	assert_int_equal(rotation.open.process, 3);
	assert_false(host.asked[3]);
	host.fails = false;
	step(&rotation, 201);
	assert_int_equal(host.started, 4);
	end(&rotation);
}

/* One that neither records nor ends is killed. */
static void test_stuck(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	step(&rotation, VP_ROTATION_START_S);
	assert_false(host.killed[1]);
	step(&rotation, VP_ROTATION_START_S + 1);
	assert_true(host.killed[1]);
	expect_notice("'rec-1' did not start in time");
	host.ended[1] = host.failed[1] = true;
	step(&rotation, VP_ROTATION_START_S + 3);
	assert_int_equal(host.started, 2);
	end(&rotation);
}

static void test_stop(void **state)
{
	struct vp_rotation rotation = begin();

	step(&rotation, 0);
	host.records[1] = true;
	step(&rotation, 1);
	vp_rotation_ask(&rotation);
	step(&rotation, 2);
	vp_rotation_stop(&rotation, 1003 * SECOND);
	assert_true(host.asked[1] && host.asked[2]);
	host.ended[1] = true;
	assert_false(vp_rotation_has_stopped(&rotation, 1004 * SECOND));
	assert_false(vp_rotation_has_stopped(&rotation, (1004 + VP_ROTATION_END_S) * SECOND));
	assert_true(host.killed[2]);
	expect_notice("'rec-2' did not exit in time: killed");
	host.ended[2] = host.failed[2] = true;
	assert_true(vp_rotation_has_stopped(&rotation, 2000 * SECOND));
	end(&rotation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_overlap),
	    cmocka_unit_test(test_early),
	    cmocka_unit_test(test_by_size),
	    cmocka_unit_test(test_killed),
	    cmocka_unit_test(test_backoff),
	    cmocka_unit_test(test_stuck),
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_killed_at_end),
	    cmocka_unit_test(test_killed_at_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
