/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include "base/buffer.h"
#include "base/macros.h"
#include "base/text_wrap.h"

static void expect_wrapped(const char *text, size_t width, bool all, const char *expected)
{
	struct vp_buffer from = {0}, to = {0};

	vp_buffer_string(&from, text);
	vp_text_wrap(&from, width, all, &to);
	assert_string_equal(vp_buffer_text(&to), expected);
	vp_buffer_deinit(&from);
	vp_buffer_deinit(&to);
}

/* Rows of tables stay whole; the rest of a note is a note. */
static void test_notes(void **state)
{
	expect_wrapped(
	    "# one two three\nVM  vCPU  Time  1 2 3\n(narrow: without a, b)\n", 12, false,
	    "# one two\n#   three\nVM  vCPU  Time  1 2 3\n(narrow:\n    without\n    a, b)\n");
	expect_wrapped("# one two three\n", 0, false, "# one two three\n");
	expect_wrapped("# one two three\n", 15, false, "# one two three\n");
	expect_wrapped("# one two three\n", 14, false, "# one two\n#   three\n");
}

/* The rest of a line begins where its text does. */
static void test_indent(void **state)
{
	expect_wrapped("1. VM g1 loses time\n", 12, true, "1. VM g1\n   loses\n   time\n");
	expect_wrapped("   try:    move it away\n", 20, true,
		       "   try:    move it\n           away\n");
	expect_wrapped("   verify: move it away\n", 20, true,
		       "   verify: move it\n           away\n");
	expect_wrapped("   many times: 1\n", 14, true, "   many times:\n    1\n");
	expect_wrapped("no   KVM       neither of them\n", 23, true,
		       "no   KVM       neither\n               of them\n");
}

/* A word that is wider than the terminal is not divided, and no line is empty. */
static void test_long_words(void **state)
{
	expect_wrapped("# see /a/long/path and more\n", 10, false,
		       "# see\n#   /a/long/path\n#   and\n#   more\n");
	expect_wrapped("/a/long/path\n\nx\n", 5, true, "/a/long/path\n\nx\n");
	expect_wrapped("# a\xc2\xb1 b\xc2\xb1\n", 7, false, "# a\xc2\xb1 b\xc2\xb1\n");
	expect_wrapped("# a b", 80, false, "# a b\n");
	expect_wrapped("", 80, false, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_notes),
	    cmocka_unit_test(test_indent),
	    cmocka_unit_test(test_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
