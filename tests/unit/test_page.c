/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pictures are made of: periods by lane within a bound, intervals in bins. */
#include <math.h>
#include <stdio.h>

#include "unit.h"

#include "analyze/interval_bins.h"
#include "analyze/lane_store.h"
#include "render/page_parts.h"

enum { VM = 1000 };

static struct vp_period of_vcpu(uint64_t begin, uint64_t end, enum vp_lane_state state)
{
	return (struct vp_period){.lane = VP_LANE_VCPU,
				  .state = state,
				  .begin = begin,
				  .end = end,
				  .pcpu = 1,
				  .has_vcpu = true,
				  .vm = VM};
}

static uint64_t time_of(const struct vp_stored_lane *lane)
{
	uint64_t ret = 0;

	vp_vec_each (&lane->slices, slice)
		ret += slice->end - slice->begin;
	return ret;
}

/* Ten thousand short periods, and a long one in the midst. */
static void test_lanes_keep_to_their_bound(void **state)
{
	struct vp_lane_store store;
	uint64_t now = 5000, all = 0, merged = 0;
	bool found = false;

	vp_lane_store_init(&store, 100);
	for (int i = 0; i < 10000; i++) {
		bool is_long = i == 5000;
		struct vp_period period = of_vcpu(now, now + (is_long ? 50000000 : 3000 + i % 7),
						  is_long ? VP_LANE_STOLEN
						  : i % 4 ? VP_LANE_GUEST
							  : VP_LANE_HOST);
		vp_lane_store_take(&store, &period);
		all += period.end - period.begin;
		now = period.end;
	}
	vp_lane_store_close(&store);
	assert_int_equal(store.lanes.count, 1);
	const struct vp_stored_lane *lane = &store.lanes.at[0];
	assert_int_equal(lane->slices.count, store.slices);
	assert_true(store.slices <= 100 && store.shortest > 3000);
	assert_int_equal(time_of(lane), all);
	vp_vec_each (&lane->slices, slice) {
		bool is_long = slice->end - slice->begin == 50000000;
		found |= is_long;
		merged += slice->merged;
		assert_int_equal(slice->state, is_long ? VP_LANE_STOLEN : VP_LANE_GUEST);
		assert_true(slice->main <= slice->end - slice->begin);
	}
	assert_true(found);
	assert_int_equal(merged, 10000);
	vp_lane_store_deinit(&store);
}

static void test_lanes_of_threads_are_bounded(void **state)
{
	struct vp_lane_store store;

	vp_lane_store_init(&store, 1 << 20);
	for (uint32_t tid = 1; tid <= 10000; tid++) {
		struct vp_period period = of_vcpu(tid * 10, tid * 10 + 10, VP_LANE_GUEST);
		period.has_guest = true;
		period.guest_tid = tid;
		period.guest_comm = "x";
		vp_lane_store_take(&store, &period);
	}
	vp_lane_store_close(&store);
	assert_true(store.left_out);
	assert_true(store.threads < 10000 && store.lanes.count == store.threads + 1);
	assert_int_equal(time_of(&store.lanes.at[0]), 100000);
	vp_lane_store_deinit(&store);
}

/* One that came late, and says that it began before the last one ended. */
static void test_slices_do_not_overlap(void **state)
{
	struct vp_lane_store store;
	struct vp_period periods[] = {of_vcpu(100, 200, VP_LANE_GUEST),
				      of_vcpu(150, 300, VP_LANE_HOST),
				      of_vcpu(120, 180, VP_LANE_GUEST)};

	vp_lane_store_init(&store, 100);
	for (size_t i = 0; i < VP_ARRAY_SIZE(periods); i++)
		vp_lane_store_take(&store, &periods[i]);
	vp_lane_store_close(&store);
	assert_int_equal(store.slices, 2);
	assert_int_equal(store.lanes.at[0].slices.at[1].begin, 200);
	vp_lane_store_deinit(&store);
}

static void test_bins_keep_what_was_counted(void **state)
{
	static const char text[] = "interval time 1ms\nper pcpu\ncount exits time\n";
	struct vp_interval_recording rec = {0};
	struct vp_interval_bins bins;
	double sums[3] = {0};

	expect_no_error(vp_recipe_parse("text", text, sizeof(text) - 1, &rec.recipe));
	for (uint64_t i = 0; i < 5000; i++) {
		struct vp_interval_row row = {.cells = rec.cells.count};
		row.head.vcpu = i & 1;
		row.head.begin = 1000000 * i;
		row.head.time = 1000000 * (i + 1);
		vp_vec_push(&rec.rows, row);
		vp_vec_push(&rec.cells, ((struct vp_interval_cell){(double)i, 0.5}));
		vp_vec_push(&rec.cells, ((struct vp_interval_cell){1, i == 7 ? 0 : 1}));
	}
	vp_interval_bins_make(&rec, 6000, &bins);
	assert_int_equal(bins.subjects.count, 2);
	assert_true(bins.values.count <= 6000);
	for (size_t i = 0; i < bins.values.count; i++)
		sums[i % 3] += isnan(bins.values.at[i]) ? 0 : bins.values.at[i];
	assert_true(fabs(sums[0] - 2 * 4999.0 * 5000 / 2) < 1e-3); /* counted half of the time */
	assert_true(fabs(sums[1] - 4999) < 1e-3);
	assert_true(fabs(sums[2] - 5000e6) < 1e-3);
	vp_interval_bins_deinit(&bins);
	vp_recipe_deinit(&rec.recipe);
	vp_vec_deinit(&rec.rows);
	vp_vec_deinit(&rec.cells);
}

static void test_numbers_are_packed(void **state)
{
	struct vp_buffer packed = {0}, out = {0};
	struct vp_json json = vp_json_to(&out);

	vp_json_object(&json, NULL);
	vp_page_pack(&packed, 0);
	vp_page_pack(&packed, 300);
	vp_page_pack(&packed, UINT64_MAX);
	vp_page_put_packed(&json, "n", &packed);
	vp_page_put_packed(&json, "none", &packed);
	vp_json_object_end(&json);
	/* 00 | ac 02 | nine times ff, 01 */
	assert_string_equal(vp_buffer_text(&out),
			    "{\"n\": \"AKwC////////////AQ==\", \"none\": \"\"}");
	vp_buffer_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lanes_keep_to_their_bound),
	    cmocka_unit_test(test_lanes_of_threads_are_bounded),
	    cmocka_unit_test(test_slices_do_not_overlap),
	    cmocka_unit_test(test_bins_keep_what_was_counted),
	    cmocka_unit_test(test_numbers_are_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
