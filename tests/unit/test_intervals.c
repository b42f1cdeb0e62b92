/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings of intervals, read again: sums, data sets, what is missing in them. */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "analyze/model/intervals.h"
#include "make_recording.h"
#include "render/render_intervals.h"
#include "table/reader.h"

#define NAME "test_intervals.rec"
#define ALL VP_LIVE_ALL

static void begin(struct made *made, const char *recipe)
{
	made_begin(made, NAME, 2);
	temporary_file(NAME "/recipe", recipe, strlen(recipe));
}

/*
 * Three intervals of vCPU vm0/0, one of vm1/1. LLC-load-misses are live half of the time, then a
 * quarter, then never; wakeups always. The last interval of vm0/0 ends too early.
 */
static void record_some(void)
{
	static const uint32_t half[] = {ALL, ALL, ALL / 2, ALL},
			      quarter[] = {ALL, ALL, ALL / 4, ALL};
	static const uint32_t never[] = {ALL, ALL, 0, ALL};
	struct made made;

	begin(&made, "interval instructions 1000\ncount instructions cycles\n"
		     "set LLC-load-misses\ncount wakeups\n");
	made_interval(&made, 0, 1, 3, 0, 0, 0, 4, (const uint64_t[]){1000, 1500, 10, 2}, half);
	made_interval(&made, 0, 3, 4, 0, 0, 0, 4, (const uint64_t[]){1000, 3000, 10, 4}, quarter);
	made_interval(&made, 1, 2, 6, 1, 1, 0, 4, (const uint64_t[]){1000, 2000, 0, 6}, never);
	made_interval(&made, 0, 4, 5, 0, 0, VP_INTERVAL_PARTIAL, 4,
		      (const uint64_t[]){500, 500, 0, 0}, half);
	made_end(&made, 9);
}

static void test_book(void **state)
{
	struct vp_interval_recording rec;

	record_some();
	assert_true(vp_recording_has_intervals(NAME));
	expect_no_error(vp_interval_recording_open(NAME, &rec));
	assert_int_equal(rec.rows.count, 4);
	/* In order of their end, whatever the stream. */
	assert_int_equal(rec.rows.at[3].pcpu, 1);
	VP_AUTO_FREE char *first = vp_interval_subject(&rec, &rec.rows.at[0]);
	VP_AUTO_FREE char *last = vp_interval_subject(&rec, &rec.rows.at[3]);
	assert_string_equal(first, "vm0/0");
	assert_string_equal(last, "vm1/1");
	struct vp_interval_total total = vp_interval_total(&rec, 0);
	assert_true(total.estimate == 3500 && total.live == 1 && total.min_live == 1);
	total = vp_interval_total(&rec, 2);
	assert_true(total.counted == 20 && total.estimate == 60 && total.min_live == 0);
	/* Lengths 2, 1, 1, 4 ticks. */
	assert_true(fabs(total.live - (2 * 0.5 + 0.25 + 0.5) / 8) < 1e-12);
	vp_interval_recording_close(&rec);
}

/* Counts of adjoining windows sum to the whole; an interval that is cut is a partial one. */
static void test_windows(void **state)
{
	const uint64_t borders[] = {0, MADE_START + 3 * MADE_PERIOD,
				    MADE_START + 4 * MADE_PERIOD + MADE_PERIOD / 4, UINT64_MAX};
	struct vp_interval_recording rec;
	double whole[4], sums[4] = {0};

	record_some();
	expect_no_error(vp_interval_recording_open(NAME, &rec));
	for (size_t i = 0; i < 4; i++)
		whole[i] = vp_interval_total(&rec, i).counted;
	vp_interval_recording_close(&rec);
	for (size_t window = 0; window + 1 < VP_ARRAY_SIZE(borders); window++) {
		expect_no_error(vp_interval_recording_open(NAME, &rec));
		vp_interval_recording_cut(
		    &rec, &(struct vp_window){borders[window], borders[window + 1]});
		for (size_t i = 0; i < 4; i++)
			sums[i] += vp_interval_total(&rec, i).counted;
		if (window == 0) {
			/* The first whole, and a quarter of that of pCPU 1. */
			assert_int_equal(rec.rows.count, 2);
			assert_int_equal(vp_interval_partial(&rec), 1);
			assert_true(vp_interval_total(&rec, 0).counted == 1250);
			assert_non_null(strstr(rec.notes.at[0], "1 intervals were cut by --time"));
		}
		vp_interval_recording_close(&rec);
	}
	for (size_t i = 0; i < 4; i++)
		assert_true(fabs(sums[i] - whole[i]) < 1e-9 * (1 + whole[i]));
}

static void assert_csv(const struct vp_interval_choice *choice, const char *expected)
{
	struct vp_interval_recording rec;
	struct vp_buffer out = {0};
	struct vp_data data;

	expect_no_error(vp_interval_recording_open(NAME, &rec));
	expect_no_error(vp_interval_data(&rec, choice, &data));
	vp_dataset_write_csv(&data, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_data_deinit(&data);
	vp_interval_recording_close(&rec);
}

static void test_data(void **state)
{
	record_some();
	assert_csv(&(struct vp_interval_choice){.base = "instructions", .per = 1},
		   "\"LLC-load-misses\",\"wakeups\",\"cpi\"\n"
		   "0.02,0.002,1.5\n0.04,0.004,3\n,0.006,2\n");
	assert_csv(&(struct vp_interval_choice){.base = "instructions", .per = 1000, .vm = "vm0"},
		   "\"LLC-load-misses\",\"wakeups\",\"cpi\"\n20,2,1.5\n40,4,3\n");
	assert_csv(&(struct vp_interval_choice){.partial = true, .subjects = true},
		   "\"subject\",\"instructions\",\"cycles\",\"LLC-load-misses\",\"wakeups\"\n"
		   "\"vm0/0\",1000,1500,20,2\n\"vm0/0\",1000,3000,40,4\n\"vm0/0\",500,500,0,0\n"
		   "\"vm1/1\",1000,2000,,6\n");
	assert_csv(
	    &(struct vp_interval_choice){.base = "cycles", .per = 1, .vm = "vm1", .live = true},
	    "\"instructions\",\"instructions.live\",\"LLC-load-misses\","
	    "\"LLC-load-misses.live\",\"wakeups\",\"wakeups.live\"\n0.5,1,,0,0.003,1\n");
}

static void test_no_data(void **state)
{
	struct vp_interval_recording rec;
	struct vp_data data;

	record_some();
	expect_no_error(vp_interval_recording_open(NAME, &rec));
	expect_error(
	    vp_interval_data(&rec, &(struct vp_interval_choice){.base = "branches"}, &data),
	    "has no counts of 'branches'");
	expect_error(vp_interval_data(&rec, &(struct vp_interval_choice){.vm = "vm9"}, &data),
		     "there is no VM 'vm9'");
	vp_interval_recording_close(&rec);
}

/* A value that no event has, one before any interval, and an interval without values. */
static void test_strange_records(void **state)
{
	static const uint32_t live[] = {ALL, ALL, ALL};
	struct vp_interval_recording rec;
	struct made made;

	begin(&made, "interval time 1ms\ncount time exits\n");
	union vp_any_record stray = {
	    .interval_value = {
		.time = MADE_START, .id = VP_ID_interval_value, .value = 77, .live = ALL}};
	vp_trace_append(made.writer, (struct vp_stream_id){VP_STREAM_INTERVALS, 0}, &stray);
	made_interval(&made, 0, 1, 2, 0, 0, 0, 3, (const uint64_t[]){5, 6, 7}, live);
	made_interval(&made, 0, 2, 3, 0, 0, 0, 0, NULL, NULL);
	made_end(&made, 9);
	expect_no_error(vp_interval_recording_open(NAME, &rec));
	assert_int_equal(rec.rows.count, 2);
	assert_true(vp_interval_total(&rec, 0).counted == 5);
	assert_true(vp_interval_total(&rec, 1).min_live == 0);
	assert_null(vp_interval_usual_base(&rec));
	vp_interval_recording_close(&rec);
}

static void test_rendered(void **state)
{
	struct vp_interval_recording rec;
	struct vp_buffer text = {0}, json = {0}, arff = {0};
	struct vp_data data, again;

	record_some();
	expect_no_error(vp_interval_recording_open(NAME, &rec));
	vp_render_intervals_text(&rec, "instructions", 1000, 0, &text);
	assert_non_null(strstr(vp_buffer_text(&text), "4 intervals of 1000 instructions per vCPU; "
						      "1 ended early"));
	assert_non_null(strstr(vp_buffer_text(&text), "17.1429     21.88%      0.00%"));
	vp_render_intervals_json(&rec, &json);
	assert_non_null(
	    strstr(vp_buffer_text(&json), "\"LLC-load-misses\": {\"sum\": 60, \"counted\": 20"));
	assert_non_null(strstr(vp_buffer_text(&json), "\"LLC-load-misses\": {\"counted\": 10, "
						      "\"live\": 0.25}"));
	/* What is written as ARFF is read as it was. */
	expect_no_error(vp_interval_data(
	    &rec, &(struct vp_interval_choice){.subjects = true, .base = "instructions", .per = 1},
	    &data));
	vp_dataset_write_arff(&data, &arff);
	expect_no_error(
	    vp_dataset_read(temporary_file(NAME "/arff", arff.bytes, arff.size), &again));
	assert_int_equal(again.rows, 3);
	assert_string_equal(again.columns.at[0].labels.at[1], "vm1/1");
	assert_string_equal(again.columns.at[3].name, "cpi");
	assert_true(again.columns.at[3].values[1] == 3 && isnan(again.columns.at[1].values[2]));
	vp_data_deinit(&again);
	vp_data_deinit(&data);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&json);
	vp_buffer_deinit(&arff);
	vp_interval_recording_close(&rec);
}

static void test_other_recordings(void **state)
{
	struct vp_interval_recording rec;
	struct made made;

	made_begin(&made, NAME, 0);
	made_end(&made, 9);
	assert_false(vp_recording_has_intervals(NAME));
	expect_error(vp_interval_recording_open(NAME, &rec), "is not an interval recording");
	temporary_file(NAME "/recipe", "count exits\nset", 15);
	expect_error(vp_interval_recording_open(NAME, &rec), NAME "/recipe:2:4: expected the name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_book),
	    cmocka_unit_test(test_windows),
	    cmocka_unit_test(test_data),
	    cmocka_unit_test(test_no_data),
	    cmocka_unit_test(test_strange_records),
	    cmocka_unit_test(test_rendered),
	    cmocka_unit_test(test_other_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
