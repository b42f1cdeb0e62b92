/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that have a meaning beyond their own words: sizes of buffers, filters of events. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "cmd/options.h"

struct given {
	uint64_t pages;
	const char *trace;
	struct vp_texts events, filters;
};

static bool is_sets(const char *word)
{
	return !strcmp(word, "sched") || !strcmp(word, "sched,irq");
}

static struct vp_error *parse(struct given *given, int argc, char **argv)
{
	const struct vp_option options[] = {
	    {'m', "mmap-pages", VP_OPTION_PAGES, &given->pages, "PAGES", ""},
	    {'t', "trace", VP_OPTION_MAYBE, &given->trace, "SETS", "", is_sets},
	    {'e', "event", VP_OPTION_TEXTS, &given->events, "EVENT", ""},
	    {0, "filter", VP_OPTION_OF_LAST, &given->filters, "FILTER", ""},
	};
	struct vp_texts rest = {0};
	bool help;

	*given = (struct given){0};
	struct vp_error *error =
	    vp_options_parse(options, VP_ARRAY_SIZE(options), argc, argv, false, &rest, &help);
	vp_vec_deinit(&rest);
	return error;
}

static uint64_t pages_of(const char *text)
{
	char *argv[] = {"record", "-m", (char *)text};
	struct given given;

	expect_no_error(parse(&given, 3, argv));
	return given.pages;
}

static void test_pages(void **state)
{
	uint64_t page = (uint64_t)getpagesize();

	assert_int_equal(pages_of("5"), 5);
	assert_int_equal(pages_of("1B"), 1);
	assert_int_equal(pages_of("64M") * page, 64 << 20);
	assert_int_equal(pages_of("65M") * page, 128 << 20);
	assert_int_equal(pages_of("1G") * page, 1 << 30);
	static const char *const bad[] = {"0", "-1", "M", "1MB", "1T", "20000000000G", "x"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(bad); i++) {
		char *argv[] = {"record", "-m", (char *)bad[i]};
		struct given given;
		expect_error(parse(&given, 3, argv), "option --mmap-pages: expected");
	}
}

/* A value behind a blank would be taken for the command to run. */
static void test_optional_values_are_attached(void **state)
{
	char *apart[] = {"record", "--trace", "sched", "-m", "5"};
	char *letter[] = {"record", "-t", "sched,irq", "-m", "5"};
	char *attached[] = {"record", "--trace=sched", "-m", "5"};
	char *command[] = {"record", "--trace", "sleep", "5"};
	struct given given;

	expect_error(parse(&given, 5, apart), "must be attached: --trace=sched");
	expect_error(parse(&given, 5, letter), "must be attached: --trace=sched,irq");
	expect_no_error(parse(&given, 4, attached));
	assert_string_equal(given.trace, "sched");
	expect_no_error(parse(&given, 4, command));
	assert_string_equal(given.trace, "");
}

static void test_filters_are_of_the_last_event(void **state)
{
	char *argv[] = {"record", "-e", "a:b", "-e", "c:d", "--filter", "x", "-e", "e:f"};
	struct given given;

	expect_no_error(parse(&given, 9, argv));
	assert_int_equal(given.events.count, 3);
	assert_int_equal(given.filters.count, 2);
	assert_null(given.filters.at[0]);
	assert_string_equal(given.filters.at[1], "x");
	vp_vec_deinit(&given.events);
	vp_vec_deinit(&given.filters);
	char *first[] = {"record", "--filter", "x", "-e", "a:b"};
	expect_error(parse(&given, 5, first), "option --filter: expected --event before it");
	vp_vec_deinit(&given.events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_optional_values_are_attached),
	    cmocka_unit_test(test_filters_are_of_the_last_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
