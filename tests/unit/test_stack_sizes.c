/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much is copied of stacks, by what they needed. */
#include "unit.h"

#include "collect/programs/stack_sizes.h"

enum { ROOT = 0x12344000, OTHER = ROOT + 0x2000, STACKS = 200 };

static struct vp_stack_sizes sizes;
static uint8_t units[VP_STACK_SIZES];

static uint32_t copied(uint64_t root)
{
	return units[VP_STACK_SIZE_OF(root)] * VP_STACK_UNIT;
}

static void take(uint64_t root, uint32_t needed, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		vp_stack_sizes_take(&sizes, units, root, needed);
}

static void begin(void)
{
	memset(&sizes, 0, sizeof(sizes));
	memset(units, 0, sizeof(units));
}

static void test_first(void **state)
{
	(void)state;
	begin();
	assert_int_equal(copied(ROOT), 0); /* not known: the largest copies */
	take(ROOT, 10, 1);
	assert_int_equal(copied(ROOT), VP_USER_STACK_LEAST);
	take(ROOT + 0x1000, 5000, 1); /* the same process, with page-table isolation */
	assert_int_equal(copied(ROOT), 5632);
	assert_int_equal(copied(OTHER), 0);
	take(OTHER, 40 << 10, 1);
	assert_int_equal(copied(OTHER), VP_USER_STACK_BYTES);
	take(OTHER, UINT32_MAX, 1);
	assert_int_equal(copied(OTHER), VP_USER_STACK_BYTES);
}

/* Larger at once, smaller after a number of stacks. */
static void test_changes(void **state)
{
	(void)state;
	begin();
	take(ROOT, 2000, 10);
	assert_int_equal(copied(ROOT), 2560);
	take(ROOT, 9000, 1);
	assert_int_equal(copied(ROOT), 10240);
	take(ROOT, 2000, STACKS - 11);
	assert_int_equal(copied(ROOT), 10240); /* one of these needed it */
	take(ROOT, 3000, 1);
	take(ROOT, 2000, STACKS - 2);
	assert_int_equal(copied(ROOT), 10240);
	take(ROOT, 2000, 1);
	assert_int_equal(copied(ROOT), 3584);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_first),
	    cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
