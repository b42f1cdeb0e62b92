/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bound on what long work costs the host, on a clock of the test's own. */
#include "unit.h"

#include "base/pace.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define MIB (1ULL << 20)

static struct {
	uint64_t wall, cpu, slept;
} times;

static uint64_t wall(void *context)
{
	return times.wall;
}

static uint64_t cpu(void *context)
{
	return times.cpu;
}

static void sleep_for(void *context, uint64_t ns)
{
	times.wall += ns;
	times.slept += ns;
}

static struct vp_throttle start_at(uint64_t now)
{
	const struct vp_throttle_clock clock = {.wall = wall, .cpu = cpu, .sleep = sleep_for};
	struct vp_throttle pace;

	times.wall = now;
	times.cpu = times.slept = 0;
	vp_throttle_init(&pace, &clock);
	return pace;
}

/* CPU time of `used` within that time. */
static void work(struct vp_throttle *pace, uint64_t used)
{
	times.wall += used;
	times.cpu += used;
	vp_throttle_update(pace, true);
}

/* 50 ms may be used at once; each further one is paid for with 50. */
static void test_cpu(void **state)
{
	struct vp_throttle pace = start_at(100 * SECOND);

	work(&pace, 50 * MS);
	assert_true(vp_throttle_wait(&pace, UINT64_MAX));
	assert_int_equal(times.slept, 0);
	work(&pace, 10 * MS);
	assert_true(vp_throttle_wait(&pace, UINT64_MAX));
	assert_int_equal(times.slept, 10 * MS * 50 - 60 * MS);
}

/* What was not used in an idle hour cannot be used afterwards. */
static void test_nothing_is_saved(void **state)
{
	struct vp_throttle pace = start_at(100 * SECOND);

	work(&pace, 1 * MS);
	times.wall += 3600 * SECOND;
	vp_throttle_update(&pace, true);
	work(&pace, 60 * MS);
	assert_true(vp_throttle_wait(&pace, UINT64_MAX));
	assert_int_equal(times.slept, 10 * MS * 50 - 60 * MS);
}

/* 16 MiB may be read at once, and 64 a second after that. */
static void test_bytes(void **state)
{
	struct vp_throttle pace = start_at(100 * SECOND);

	assert_true(vp_throttle_charge(&pace, 16 * MIB));
	assert_true(vp_throttle_wait(&pace, UINT64_MAX));
	assert_int_equal(times.slept, 0);
	assert_true(vp_throttle_charge(&pace, 32 * MIB));
	assert_true(vp_throttle_wait(&pace, UINT64_MAX));
	assert_int_equal(times.slept, SECOND / 2);
}

/* What is not charged costs nothing; a deadline ends the sleep, and that is reported. */
static void test_deadline(void **state)
{
	struct vp_throttle pace = start_at(100 * SECOND);

	times.cpu += SECOND;
	vp_throttle_update(&pace, false);
	assert_true(vp_throttle_wait(&pace, UINT64_MAX));
	assert_int_equal(times.slept, 0);
	work(&pace, 100 * MS);
	assert_false(vp_throttle_wait(&pace, times.wall + 7 * MS));
	assert_int_equal(times.slept, 7 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cpu),
	    cmocka_unit_test(test_nothing_is_saved),
	    cmocka_unit_test(test_bytes),
	    cmocka_unit_test(test_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
