/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../packaging/libelf_search.h"

static int compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static int freed;

static void count_freed(void *node)
{
	(void)node;
	freed++;
}

/* The calls that libelf makes for chunks of a file: add, find again, remove, destroy. */
static void test_chunks_are_found_again(void **state)
{
	struct eu_search_tree tree = {&tree};
	int keys[] = {3, 1, 2}, same = 1, other = 4;

	eu_search_tree_init(&tree);
	assert_null(eu_tfind(&same, &tree, compare));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(*(int **)eu_tsearch(&keys[i], &tree, compare), &keys[i]);
	assert_ptr_equal(*(int **)eu_tsearch(&same, &tree, compare), &keys[1]);
	assert_ptr_equal(*(int **)eu_tfind(&same, &tree, compare), &keys[1]);
	assert_null(eu_tdelete(&other, &tree, compare));
	assert_non_null(eu_tdelete(&same, &tree, compare));
	assert_null(eu_tfind(&same, &tree, compare));
	eu_search_tree_fini(&tree, count_freed);
	assert_int_equal(freed, 2);
	assert_null(tree.root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_chunks_are_found_again)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
