/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --time: all forms of a bound, of a recording that began in the evening, in two time zones. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "cmd/common/time_options.h"
#include "store/recording.h"
#include "store/trace_writer.h"

#define NAME "test_time_options.rec"
#define SECOND 1000000000ULL
#define START (1000 * SECOND)

/* Of the European Union, as POSIX has it: no file is needed. */
#define EUROPE "CET-1CEST,M3.5.0,M10.5.0/3"

static uint64_t seconds_of(const char *utc)
{
	struct tm parts = {0};

	assert_non_null(strptime(utc, "%Y-%m-%d %H:%M:%S", &parts));
	return (uint64_t)timegm(&parts);
}

/* Twelve hours, from that time on; 0: the clock is not known. */
static void make(const char *utc)
{
	static const uint8_t uuid[16] = {1};
	struct vp_ctf_trace trace = {uuid, "made", "host", 0};
	struct vp_recording about = {.tool = (char *)"test",
				     .hostname = (char *)"made",
				     .kernel = (char *)"6.1",
				     .instruments = (char *)"profile",
				     .trigger = (char *)"cpu-clock",
				     .command = (char *)"",
				     .note = (char *)"",
				     .period_ns = 1000000,
				     .by_time = true,
				     .pcpus = 1,
				     .start = START,
				     .end = START + 12 * 3600 * SECOND};
	struct vp_trace_writer *writer;

	assert_int_equal(system("rm -rf " NAME " && mkdir " NAME), 0);
	trace.realtime_offset_ns = utc ? (int64_t)(seconds_of(utc) * SECOND - START) : 0;
	expect_no_error(vp_trace_writer_create(NAME "/host", &trace, &writer));
	vp_trace_writer_free(writer);
	expect_no_error(vp_recording_write(NAME, &about));
}

static void set_zone(const char *zone)
{
	assert_int_equal(setenv("TZ", zone, 1), 0);
	tzset();
}

/* Seconds since the start; NAN: not given. */
static void expect_window(const char *text, double from, double to)
{
	uint64_t first, last;

	expect_no_error(vp_time_option_parse(text, NAME, &first, &last));
	if (isnan(from))
		assert_int_equal(first, 0);
	else if ((int64_t)(first - START) != (int64_t)(from * 1e9))
		fail_msg("'%s' begins at %lld ns", text, (long long)(first - START));
	if (isnan(to))
		assert_true(last == UINT64_MAX);
	else if ((int64_t)(last - START) != (int64_t)(to * 1e9))
		fail_msg("'%s' ends at %lld ns", text, (long long)(last - START));
}

static void expect_refused(const char *text, const char *part)
{
	uint64_t first, last;

	expect_error(vp_time_option_parse(text, NAME, &first, &last), part);
}

static void test_clock_and_offsets(void **state)
{
	uint64_t first = 1, last = 1;

	make("2026-07-01 21:30:00");
	expect_no_error(vp_time_option_parse(NULL, "nowhere", &first, &last));
	assert_int_equal(first, 0);
	assert_true(last == UINT64_MAX);
	expect_window("1000,1001", 0, 1);
	expect_window("1000.000000001,1000.25", 1e-9, 0.25);
	expect_window("+0.5,+1", 0.5, 1);
	expect_window("+0.5,1002", 0.5, 2);
	expect_window("+1,", 1, NAN);
	expect_window("+500ms,+1s", 0.5, 1);
	expect_window("+0.5s,+2m", 0.5, 120);
	expect_window(",+1", NAN, 1);
	expect_window(",", NAN, NAN);
	expect_window("1000.5,1000.5", 0.5, 0.5);
	expect_refused("+2,+1", "FROM is after TO in '+2,+1'");
	expect_refused("1,2", "'1,2' is outside of the recording, which covers "
			      "1000.000000000,44200.000000000");
	expect_refused("+50000,", "which covers +0.000000000,+43200.000000000");
	expect_refused("2026-07-02T21:30:00Z,", "which covers 2026-07-01T21:30:00.000000000+00:00,"
						"2026-07-02T09:30:00.000000000+00:00");
	expect_refused("44201,", "outside of the recording");
	expect_window("1,1000", 0 - 999.0, 0);
	expect_window("44200,", 43200, NAN);
	static const char *const malformed[] = {"1",      "x,2",         "1,x", "1.0000000001,2",
						"1..2,3", ".,2",         "+,2", "1e3,",
						"-1,2",   "18446744074,"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(malformed); i++)
		expect_refused(malformed[i], "expected FROM,TO such as 12.5,13");
	expect_error(vp_time_option_parse("1,2", "nowhere", &first, &last), "nowhere");
}

/* In summer, two hours east of Greenwich. */
static void test_times_of_day(void **state)
{
	make("2026-07-01 21:30:00");
	set_zone(EUROPE);
	expect_window("23:30:01,23:30:02", 1, 2);
	expect_window("23:30,23:31", 0, 60);
	expect_window("23:29:59.5,23:30:00.25", -0.5, 0.25);
	/* After midnight. */
	expect_window("23:59:59,00:00:10", 1799, 1810);
	expect_window("0:00:10,0:30", 1810, 3600);
	expect_window("11:29:59,11:30", 12 * 3600 - 1, 12 * 3600);
	/* Before the start, which is nearer than the same time of the next day. */
	expect_window("23:15:01,23:31", -15 * 60 + 1.0, 60);
	static const char *const malformed[] = {"24:00,",      "23:60,",     "23:30:61,",
						"23:30:01.,x", "23:30x,",    "-1:30,",
						"23:30:5:,",   "23:30:01.,", "23:30.,"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(malformed); i++)
		expect_refused(malformed[i], "expected FROM,TO such as 12.5,13");
	/* In winter it is one hour. */
	make("2026-01-01 21:30:00");
	expect_window("22:30:01,22:30:02", 1, 2);
	set_zone("UTC0");
	expect_window("21:30:01,21:30:02", 1, 2);
	/* Five and a half hours west. */
	set_zone("XXX5:30");
	expect_window("16:00:01,16:00:02", 1, 2);
}

static void test_dates(void **state)
{
	make("2026-07-01 21:30:00");
	set_zone(EUROPE);
	expect_window("2026-07-01T21:30:01Z,2026-07-01T21:30:02z", 1, 2);
	expect_window("2026-07-01T23:30:01+02:00,2026-07-01T18:00:02.5-03:30", 1, 2.5);
	expect_window("2026-07-02T03:15:01+05:45,", 1, NAN);
	/* Without a zone in the reader's. */
	expect_window("2026-07-01T23:30:01,2026-07-01 23:30:02.125", 1, 2.125);
	expect_window("2026-07-02T00:00:00,2026-07-02t00:00:01", 1800, 1801);
	set_zone("UTC0");
	expect_window("2026-07-01T21:30:01,2026-07-01T21:30:02", 1, 2);
	expect_window("2026-07-01T23:30:01+02:00,", 1, NAN);
	expect_refused("2026-07-01T21:29:58Z,2026-07-01T21:29:59Z", "outside of the recording");
	static const char *const malformed[] = {"2026-07-01T21:30:01+02,",
						"2026-07-01T21:30:01*02:00,",
						"2026-07-01T21:30:01Zx,",
						"2026-07-01T21:30:01+02:00x,",
						"2026-07-01,",
						"2026-07-01T21:30:01.x,"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(malformed); i++)
		expect_refused(malformed[i], "expected FROM,TO such as 12.5,13");
}

/* Where the recording does not know what time it was, only its own clock and offsets do. */
static void test_unknown_clock(void **state)
{
	make(NULL);
	set_zone("UTC0");
	expect_window("1001,+2", 1, 2);
	expect_refused("21:30,", "expected FROM,TO");
	expect_refused("2026-07-01T21:30:01Z,", "expected FROM,TO");
}

/* A store from noon of one day to 09:00 of the next but one, in two time zones. */
static void expect_of_store(const char *text, const char *from, const char *to)
{
	uint64_t first = seconds_of("2026-07-01 12:00:00") * SECOND,
		 last = seconds_of("2026-07-03 09:00:00") * SECOND, begin, end;

	expect_no_error(vp_time_option_of_store(text, first, last, &begin, &end));
	assert_int_equal(begin, seconds_of(from) * SECOND);
	assert_int_equal(end, seconds_of(to) * SECOND);
}

static void test_of_store(void **state)
{
	uint64_t first = seconds_of("2026-07-01 12:00:00") * SECOND, from, to;

	set_zone("UTC0");
	expect_of_store(NULL, "2026-07-01 12:00:00", "2026-07-03 09:00:00");
	expect_of_store("08:00,08:30:10", "2026-07-03 08:00:00", "2026-07-03 08:30:10");
	expect_of_store("23:00,01:00", "2026-07-02 23:00:00", "2026-07-03 01:00:00");
	expect_of_store("08:59,09:01", "2026-07-03 08:59:00", "2026-07-03 09:01:00");
	expect_of_store("22:00,23:00", "2026-07-02 22:00:00", "2026-07-02 23:00:00");
	expect_of_store("+60,+3600", "2026-07-01 12:01:00", "2026-07-01 13:00:00");
	expect_of_store("2026-07-01T14:00:00+02:00,", "2026-07-01 12:00:00", "2026-07-03 09:00:00");
	set_zone(EUROPE);
	expect_of_store("10:00,10:30", "2026-07-03 08:00:00", "2026-07-03 08:30:00");
	set_zone("UTC0");
	expect_error(vp_time_option_of_store("12.5,13", first, first + 60 * SECOND, &from, &to),
		     "expected FROM,TO as times of day");
	expect_error(
	    vp_time_option_of_store("2026-07-02T00:00,", first, first + 60 * SECOND, &from, &to),
	    "RFC 3339 times, such as 2026-11-26T16:49:05Z");
	expect_error(vp_time_option_of_store("08:00", first, first + 60 * SECOND, &from, &to),
		     "expected FROM,TO as times of day");
	expect_error(vp_time_option_of_store("2026-07-02T00:00:00Z,2026-07-01T00:00:00Z", first,
					     first + 60 * SECOND, &from, &to),
		     "FROM is after TO");
	expect_error(vp_time_option_of_store("08:00,09:00", first, first + 60 * SECOND, &from, &to),
		     "outside of the store, which covers 2026-07-01T12:00:00");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_clock_and_offsets),
	    cmocka_unit_test(test_times_of_day),
	    cmocka_unit_test(test_dates),
	    cmocka_unit_test(test_unknown_clock),
	    cmocka_unit_test(test_of_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
