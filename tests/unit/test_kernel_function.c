/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a function of the host's kernel is, by a list of symbols. */
#include "unit.h"

#include <string.h>

#include "host/kernel_function.h"

static bool find(const char *symbols, const char *name, struct vp_kernel_function *ret)
{
	return vp_kernel_function_find(
	    temporary_file("test_kernel_function.kallsyms", symbols, strlen(symbols)), name, ret);
}

/* A function ends where the next symbol is, in whatever order they are listed. */
static void test_range(void **state)
{
	static const char symbols[] = "ffff800080010400 T next\n"
				      "ffff800080010000 T before\n"
				      "ffff800080010100 T kvm_run\n"
				      "ffff800080010100 t alias_of_it\n"
				      "ffff800080020000 t later\t[kvm]\n"
				      "ffff800080010200 t middle\t[kvm]\n";
	struct vp_kernel_function found;

	assert_true(find(symbols, "kvm_run", &found));
	assert_int_equal(found.begin, 0xffff800080010100);
	assert_int_equal(found.end, 0xffff800080010200);
	assert_true(find(symbols, "middle", &found));
	assert_int_equal(found.end, 0xffff800080010400);
}

/* The last symbol has no end; hidden addresses are zeros; a name has to be the whole name. */
static void test_unknown(void **state)
{
	static const char hidden[] = "0000000000000000 T kvm_run\n0000000000000000 T next\n";
	static const char longer[] = "ffff800080010100 T kvm_run_it\nffff800080010200 T next\n";
	struct vp_kernel_function found;

	assert_false(find(longer, "next", &found));
	assert_false(find(longer, "kvm_run", &found));
	assert_false(find(hidden, "kvm_run", &found));
	assert_false(find("", "kvm_run", &found));
	assert_false(find("no address\n\n", "address", &found));
	assert_false(vp_kernel_function_find("/nowhere/kallsyms", "kvm_run", &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_range),
	    cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
