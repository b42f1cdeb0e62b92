/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that have a meaning beyond their own words: sizes of buffers, filters of events. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "cmd/common/options.h"

struct given {
	uint64_t pages, count, delay_ns;
	bool verbose, help;
	const char *trace;
	struct vp_texts events, filters;
};

static bool is_sets(const char *word)
{
	return !strcmp(word, "sched") || !strcmp(word, "sched,irq");
}

/* `rest`: where operands end options, they and what follows; else NULL. */
static struct vp_error *parse_with(struct given *given, int argc, char **argv,
				   struct vp_texts *rest)
{
	const struct vp_option options[] = {
	    {'n', "count", VP_OPTION_COUNT, &given->count, "N", ""},
	    {'d', "delay", VP_OPTION_SECONDS, &given->delay_ns, "S", ""},
	    {'v', "verbose", VP_OPTION_FLAG, &given->verbose, NULL, ""},
	    {'m', "mmap-pages", VP_OPTION_PAGES, &given->pages, "PAGES", ""},
	    {'t', "trace", VP_OPTION_MAYBE, &given->trace, "SETS", "", is_sets},
	    {'e', "event", VP_OPTION_TEXTS, &given->events, "EVENT", ""},
	    {0, "filter", VP_OPTION_OF_LAST, &given->filters, "FILTER", ""},
	};
	struct vp_texts operands = {0};

	*given = (struct given){0};
	struct vp_error *error =
	    vp_options_parse(options, VP_ARRAY_SIZE(options), argc, argv, rest != NULL,
			     rest ? rest : &operands, &given->help);
	vp_vec_deinit(&operands);
	return error;
}

static struct vp_error *parse(struct given *given, int argc, char **argv)
{
	return parse_with(given, argc, argv, NULL);
}

static uint64_t delay_of(const char *text)
{
	char *argv[] = {"top", "-d", (char *)text};
	struct given given;

	expect_no_error(parse(&given, 3, argv));
	return given.delay_ns;
}

static void expect_no_delay(const char *text)
{
	char *argv[] = {"top", "-d", (char *)text};
	struct given given;

	VP_AUTO_FREE char *message = vp_format(
	    "option --delay: expected a time such as 5, 0.3, 500ms or 10m, not '%s'", text);
	expect_error(parse(&given, 3, argv), message);
}

static void test_seconds(void **state)
{
	static const char *const wrong[] = {"",      "0",   "0.0",   "-1",  "1e3",    "0x5",
					    "1.2.3", "0,5", "s",     "5 s", "5sec",   "1000000001",
					    "nan",   "inf", "0.1ns", ".",   "300000h"};

	assert_int_equal(delay_of("5"), 5000000000);
	assert_int_equal(delay_of("0.3"), 300000000);
	assert_int_equal(delay_of(".5s"), 500000000);
	assert_int_equal(delay_of("500ms"), 500000000);
	assert_int_equal(delay_of("1.5us"), 1500);
	assert_int_equal(delay_of("7ns"), 7);
	assert_int_equal(delay_of("2m"), 120000000000);
	assert_int_equal(delay_of("2min"), 120000000000);
	assert_int_equal(delay_of("1h"), 3600000000000);
	assert_int_equal(delay_of("1000000000"), 1000000000000000000);
	for (size_t i = 0; i < VP_ARRAY_SIZE(wrong); i++)
		expect_no_delay(wrong[i]);
}

/* An unknown option names those that are spelled like it, letters that changed places included. */
static void test_suggestions(void **state)
{
	static const struct {
		const char *word, *message;
	} words[] = {{"--trcae=x", "unknown option '--trcae' (did you mean --trace?)"},
		     {"--verbos", "unknown option '--verbos' (did you mean --verbose?)"},
		     {"--hlep", "unknown option '--hlep' (did you mean --help?)"},
		     {"--zzzzzz", "unknown option '--zzzzzz'"}};
	struct given given;

	for (size_t i = 0; i < VP_ARRAY_SIZE(words); i++) {
		char *argv[] = {"top", (char *)words[i].word};
		struct vp_error *error = parse(&given, 2, argv);
		assert_non_null(error);
		assert_string_equal(vp_error_message(error), words[i].message);
		assert_int_equal(vp_error_kind(error), VP_ERROR_USAGE);
		vp_error_free(error);
	}
}

/* A number that is too large is printed as it was given. */
static void test_too_large(void **state)
{
	char *argv[] = {"record", "-n", "99999999999999999999"};
	struct given given;

	expect_error(parse(&given, 3, argv), "not '99999999999999999999'");
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

static void test_counts(void **state)
{
	static const struct {
		const char *text;
		uint64_t count;
	} good[] = {{"7", 7}, {"3k", 3000}, {"3K", 3000}, {"2M", 2000000}, {"1G", 1000000000}};
	static const char *const bad[] = {"0", "-1", "", "k", "1kB", "1kk", "1T", "20000000000G"};
	struct given given;

	for (size_t i = 0; i < VP_ARRAY_SIZE(good); i++) {
		char *argv[] = {"top", "-n", (char *)good[i].text};
		expect_no_error(parse(&given, 3, argv));
		assert_int_equal(given.count, good[i].count);
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(bad); i++) {
		char *argv[] = {"top", "--count", (char *)bad[i]};
		expect_error(parse(&given, 3, argv), "option --count: expected a positive number");
	}
}

static void test_missing_and_needless_values(void **state)
{
	char *missing[] = {"top", "-v", "--count", NULL};
	char *letter[] = {"top", "-vn", NULL};
	char *needless[] = {"top", "--verbose=yes"};
	char *joined[] = {"top", "-vn7"};
	struct given given;

	expect_error(parse(&given, 3, missing), "option --count requires an argument (N)");
	expect_error(parse(&given, 2, letter), "option --count requires an argument (N)");
	expect_error(parse(&given, 2, needless), "option --verbose takes no value");
	expect_no_error(parse(&given, 2, joined));
	assert_true(given.verbose);
	assert_int_equal(given.count, 7);
}

/* Behind the first operand, or behind "--", everything is the command's. */
static void test_operands(void **state)
{
	char *command[] = {"record", "-v", "sleep", "-n", "--help"};
	char *dashes[] = {"record", "--", "-v", "-n"};
	char *mixed[] = {"report", "DIR", "-v"};
	struct vp_texts rest = {0};
	struct given given;

	expect_no_error(parse_with(&given, 5, command, &rest));
	assert_true(given.verbose);
	assert_false(given.help);
	assert_int_equal(rest.count, 3);
	assert_string_equal(rest.at[2], "--help");
	rest.count = 0;
	expect_no_error(parse_with(&given, 4, dashes, &rest));
	assert_false(given.verbose);
	assert_int_equal(rest.count, 2);
	assert_string_equal(rest.at[0], "-v");
	vp_vec_deinit(&rest);
	expect_no_error(parse(&given, 3, mixed));
	assert_true(given.verbose);
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
	    cmocka_unit_test(test_seconds),
	    cmocka_unit_test(test_suggestions),
	    cmocka_unit_test(test_too_large),
	    cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_missing_and_needless_values),
	    cmocka_unit_test(test_operands),
	    cmocka_unit_test(test_optional_values_are_attached),
	    cmocka_unit_test(test_filters_are_of_the_last_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
