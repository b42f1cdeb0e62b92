/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of hosts: the same each time, spread over the period, and the moments that they mean. */
#include "unit.h"

#include <stdio.h>

#include "base/stagger.h"

enum { HOSTS = 2000, PERIOD = 52631578, PARTS = 10 };

static void test_spread(void **state)
{
	unsigned parts[PARTS] = {0}, alike = 0;
	char id[40];

	for (int host = 0; host < HOSTS; host++) {
		snprintf(id, sizeof(id), "%032x\n", host);
		uint64_t offset = vp_stagger_of(id, "samples", PERIOD);
		assert_in_range(offset, 0, PERIOD - 1);
		assert_int_equal(offset, vp_stagger_of(id, "samples", PERIOD));
		alike += offset == vp_stagger_of(id, "rotation", PERIOD);
		parts[offset * PARTS / PERIOD]++;
	}
	/* Binomial: 200 each, with a deviation of 13.4; six of them. */
	for (int part = 0; part < PARTS; part++)
		assert_in_range(parts[part], 120, 280);
	assert_in_range(alike, 0, 2);
	assert_int_equal(vp_stagger_of("x", "samples", 0), 0);
	assert_int_equal(vp_stagger_here("samples", PERIOD), vp_stagger_here("samples", PERIOD));
}

static void test_wait(void **state)
{
	assert_int_equal(vp_stagger_wait(1000, 100, 30), 30);
	assert_int_equal(vp_stagger_wait(1030, 100, 30), 0);
	assert_int_equal(vp_stagger_wait(1031, 100, 30), 99);
	assert_int_equal(vp_stagger_wait(1099, 100, 30), 31);
	assert_int_equal(vp_stagger_wait(1000, 100, 230), 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread),
					   cmocka_unit_test(test_wait)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
