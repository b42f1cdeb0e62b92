/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pictures are made of: periods by track within a bound, intervals in bins. */
#include <math.h>
#include <stdio.h>

#include "unit.h"

#include "analyze/model/interval_bins.h"
#include "analyze/trace/track_store.h"
#include "render/page_parts.h"

enum { VM = 1000 };

static struct vp_track_slice of_vcpu(uint64_t begin, uint64_t end, enum vp_track_state state)
{
	return (struct vp_track_slice){.track = VP_TRACK_VCPU,
				       .state = state,
				       .begin = begin,
				       .end = end,
				       .pcpu = 1,
				       .has_vcpu = true,
				       .vm = VM};
}

static uint64_t time_of(const struct vp_stored_track *track)
{
	uint64_t ret = 0;

	vp_vec_each (&track->slices, slice)
		ret += slice->end - slice->begin;
	return ret;
}

/* Ten thousand short periods, and a long one in the midst. */
static void test_tracks_keep_to_their_bound(void **state)
{
	struct vp_track_store store;
	uint64_t now = 5000, all = 0, merged = 0, host = 0, host_kept = 0;
	bool found = false;

	vp_track_store_init(&store, 100);
	for (int i = 0; i < 10000; i++) {
		bool is_long = i == 5000;
		struct vp_track_slice period =
		    of_vcpu(now, now + (is_long ? 50000000 : 3000 + i % 7),
			    is_long ? VP_TRACK_PREEMPTED
			    : i % 4 ? VP_TRACK_GUEST
				    : VP_TRACK_WORK);
		vp_track_store_take(&store, &period);
		all += period.end - period.begin;
		host += period.state == VP_TRACK_WORK ? period.end - period.begin : 0;
		now = period.end;
	}
	vp_track_store_close(&store);
	assert_int_equal(store.tracks.count, 1);
	const struct vp_stored_track *track = &store.tracks.at[0];
	assert_int_equal(track->slices.count, store.slices);
	assert_true(store.slices <= 100 && store.shortest > 3000);
	assert_int_equal(time_of(track), all);
	vp_vec_each (&track->slices, slice) {
		bool is_long = slice->end - slice->begin == 50000000;
		found |= is_long;
		merged += slice->merged;
		assert_int_equal(slice->state, is_long ? VP_TRACK_PREEMPTED : VP_TRACK_GUEST);
		assert_true(slice->main <= slice->end - slice->begin);
		host_kept += slice->merged > 1 ? (uint64_t)slice->parts[VP_TRACK_WORK] : 0;
	}
	assert_true(found);
	assert_int_equal(merged, 10000);
	/* What is not the main state of a merged slice is still known. */
	assert_int_equal(host_kept, host);
	vp_track_store_deinit(&store);
}

static void test_tracks_of_threads_are_bounded(void **state)
{
	struct vp_track_store store;

	vp_track_store_init(&store, 1 << 20);
	for (uint32_t tid = 1; tid <= 10000; tid++) {
		struct vp_track_slice period = of_vcpu(tid * 10, tid * 10 + 10, VP_TRACK_GUEST);
		period.has_guest = true;
		period.guest_tid = tid;
		period.guest_comm = "x";
		vp_track_store_take(&store, &period);
	}
	vp_track_store_close(&store);
	assert_true(store.left_out);
	assert_true(store.threads < 10000 && store.tracks.count == store.threads + 1);
	assert_int_equal(time_of(&store.tracks.at[0]), 100000);
	vp_track_store_deinit(&store);
}

/* One that came late, and says that it began before the last one ended. */
static void test_slices_do_not_overlap(void **state)
{
	struct vp_track_store store;
	struct vp_track_slice periods[] = {of_vcpu(100, 200, VP_TRACK_GUEST),
					   of_vcpu(150, 300, VP_TRACK_WORK),
					   of_vcpu(120, 180, VP_TRACK_GUEST)};

	vp_track_store_init(&store, 100);
	for (size_t i = 0; i < VP_ARRAY_SIZE(periods); i++)
		vp_track_store_take(&store, &periods[i]);
	vp_track_store_close(&store);
	assert_int_equal(store.slices, 2);
	assert_int_equal(store.tracks.at[0].slices.at[1].begin, 200);
	vp_track_store_deinit(&store);
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
	for (uint32_t i = 0; i < 2; i++) /* of as many intervals, that which came first */
		assert_int_equal(bins.subjects.at[i].name, i);
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

/* Of more subjects than there is room for, those with most intervals, by what each counted. */
static void test_bins_of_many_subjects(void **state)
{
	enum { SUBJECTS = 70, MAX = 64 };
	static const char text[] = "interval time 1ms\nper pcpu\ncount exits\n";
	struct vp_interval_recording rec = {0};
	struct vp_interval_bins bins;

	expect_no_error(vp_recipe_parse("text", text, sizeof(text) - 1, &rec.recipe));
	/* pCPU 3 has one interval, pCPU 4 has two, ...; after 69, pCPUs 0 to 2 have more. */
	for (uint64_t i = 0; i < SUBJECTS; i++)
		for (uint64_t n = 0; n <= (i + SUBJECTS - 3) % SUBJECTS; n++) {
			struct vp_interval_row row = {.cells = rec.cells.count};
			row.head.vcpu = (uint16_t)i;
			row.head.begin = 1000 + n * 10;
			row.head.time = row.head.begin + 10;
			vp_vec_push(&rec.rows, row);
			vp_vec_push(&rec.cells, ((struct vp_interval_cell){(double)(i + 1), 1}));
		}
	vp_interval_bins_make(&rec, 100000, &bins);
	assert_int_equal(bins.subjects.count, MAX);
	assert_int_equal(bins.left_out, SUBJECTS - MAX);
	assert_int_equal(bins.begin, 1000);
	assert_int_equal(bins.count, 100000 / (MAX * 2));
	for (size_t i = 0; i < MAX; i++) {
		const struct vp_interval_bins_subject *subject = &bins.subjects.at[i];
		uint64_t intervals = SUBJECTS - i, pcpu = (intervals + 2) % SUBJECTS;
		double sum = 0, length = 0;
		for (size_t bin = 0; bin < bins.count; bin++) {
			double value = bins.values.at[subject->first + 2 * bin];
			sum += isnan(value) ? 0 : value;
			value = bins.values.at[subject->first + 2 * bin + 1];
			length += isnan(value) ? 0 : value;
		}
		assert_int_equal(subject->intervals, intervals);
		assert_true(fabs(sum - (double)(intervals * (pcpu + 1))) < 1e-6);
		assert_true(fabs(length - (double)(intervals * 10)) < 1e-6);
	}
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

/* A report of two VMs, as far as the page's profile is concerned. */
static struct vp_report report_of_two_vms(void)
{
	struct vp_report report = {.path = "rec", .recording = {.by_time = true}};

	for (uint32_t i = 0; i < 2; i++) {
		struct vp_vm vm = {.pid = 2000 - 1000 * i, .name = vp_format("vm%u", i)};
		vp_vec_push(&report.vms, vm);
	}
	return report;
}

static void free_report(struct vp_report *report)
{
	vp_vms_deinit(&report->vms);
	vp_intern_deinit(&report->profile.texts);
	vp_vec_deinit(&report->profile.parts);
	vp_vec_deinit(&report->profile.rows);
	vp_vec_deinit(&report->profile.nodes);
}

/* In base64, by packing the same numbers. */
static char *packed(const uint64_t *numbers, size_t count)
{
	struct vp_buffer bytes = {0}, out = {0};
	struct vp_json json = vp_json_to(&out);

	for (size_t i = 0; i < count; i++)
		vp_page_pack(&bytes, numbers[i]);
	vp_json_object(&json, NULL);
	vp_page_put_packed(&json, "x", &bytes);
	vp_json_object_end(&json);
	char *text = vp_strdup(vp_buffer_text(&out) + strlen("{\"x\": "));
	text[strlen(text) - 1] = 0;
	vp_buffer_deinit(&out);
	return text;
}

static void expect_part(const char *text, const char *key, const uint64_t *numbers, size_t count)
{
	VP_AUTO_FREE char *data = packed(numbers, count);
	VP_AUTO_FREE char *part = vp_format("\"%s\": %s", key, data);

	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

/* Each row is its VM's, process's and function's; a node says which row it is of, and how far
 * before it its caller is. */
static void test_profile_of_two_vms(void **state)
{
	struct vp_report report = report_of_two_vms();
	struct vp_profile *profile = &report.profile;
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);
	static const struct vp_profile_row rows[] = {
	    {.kind = 3,
	     .function = 0,
	     .module = VP_NONE,
	     .process = VP_NONE,
	     .vm = VP_NONE,
	     .samples = 5},
	    {.kind = 4, .function = 1, .module = 3, .process = 2, .vm = 0, .samples = 6},
	    {.kind = VP_NONE,
	     .function = VP_NONE,
	     .module = 1,
	     .process = 3,
	     .vm = 1,
	     .samples = 700},
	};
	static const struct vp_profile_node nodes[] = {{.parent = VP_NONE, .row = 2, .samples = 0},
						       {.parent = 0, .row = 1, .samples = 6},
						       {.parent = VP_NONE, .row = 0, .samples = 5},
						       {.parent = 1, .row = 2, .samples = 700}};
	static const uint64_t row_data[] = {4, 1, 0, 0, 0, 5, 5, 2, 4, 3, 1, 6, 0, 0, 2, 4, 2, 700};
	static const uint64_t node_data[] = {0, 2, 0, 1, 1, 6, 0, 0, 5, 2, 2, 700};

	for (const char *c = "abcd"; *c; c++)
		vp_intern_string(&profile->texts, (char[]){*c, 0});
	for (size_t i = 0; i < VP_ARRAY_SIZE(rows); i++)
		vp_vec_push(&profile->rows, rows[i]);
	for (size_t i = 0; i < VP_ARRAY_SIZE(nodes); i++)
		vp_vec_push(&profile->nodes, nodes[i]);
	vp_vec_push(&profile->parts, ((struct vp_profile_part){.samples = 11}));
	vp_vec_push(&profile->parts, ((struct vp_profile_part){.samples = 700}));
	vp_json_object(&json, NULL);
	vp_page_put_profile(&report, "profile", &json);
	vp_json_object_end(&json);
	const char *text = vp_buffer_text(&out);
	assert_non_null(strstr(text, "\"samples\": 711,"));
	assert_non_null(strstr(text, "\"rows\": 3,"));
	assert_non_null(strstr(text, "\"nodes\": 4,"));
	assert_non_null(strstr(text, "\"leastSamples\": 1,"));
	assert_non_null(strstr(text, "\"vms\": [\"vm0\", \"vm1\"]"));
	assert_non_null(strstr(text, "\"texts\": [\"a\", \"b\", \"c\", \"d\"]"));
	expect_part(text, "rowData", row_data, VP_ARRAY_SIZE(row_data));
	expect_part(text, "nodeData", node_data, VP_ARRAY_SIZE(node_data));
	vp_buffer_deinit(&out);
	free_report(&report);
}

static struct vp_track_slice of(enum vp_track track, uint32_t pcpu, uint32_t vm, uint32_t vcpu,
				uint64_t begin, uint64_t end, enum vp_track_state state)
{
	struct vp_track_slice period = of_vcpu(begin, end, state);

	period.track = track;
	period.pcpu = pcpu;
	period.vm = vm;
	period.vcpu = (uint16_t)vcpu;
	period.tid = vm + 1 + vcpu;
	return period;
}

/* Lanes of two VMs of two vCPUs each, and of a pCPU: each is called by its VM's place in the list,
 * and has its own slices. */
static void test_tracks_of_two_vms(void **state)
{
	struct vp_report report = report_of_two_vms();
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);
	struct vp_track_store store;
	static const uint64_t begins[2][2] = {{3, 0}, {10, 5}},
			      ends[2][2] = {{301, 302}, {390, 304}};

	vp_track_store_init(&store, 100);
	for (uint32_t vm = 0; vm < 2; vm++)
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
			uint64_t begin = 500 + begins[vm][vcpu];
			struct vp_track_slice first =
			    of(VP_TRACK_VCPU, 2 * vm + vcpu, 2000 - 1000 * vm, vcpu, begin,
			       begin + 100, VP_TRACK_GUEST);
			struct vp_track_slice second =
			    of(VP_TRACK_VCPU, VP_NO_PCPU, 2000 - 1000 * vm, vcpu, begin + 107,
			       begin + ends[vm][vcpu], VP_TRACK_HALTED);
			vp_track_store_take(&store, &first);
			vp_track_store_take(&store, &second);
		}
	vp_track_store_close(&store);
	vp_json_object(&json, NULL);
	vp_page_put_tracks(&store, &report, &json);
	vp_json_object_end(&json);
	const char *text = vp_buffer_text(&out);
	assert_non_null(strstr(text, "\"beginNs\": 500,"));
	assert_non_null(strstr(text, "\"lengthNs\": 400,"));
	for (uint32_t vm = 0; vm < 2; vm++)
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
			VP_AUTO_FREE char *head = vp_format(
			    "{\"kind\": \"vcpu\", \"number\": %u, \"vm\": %u, ", vcpu, vm + 1);
			const char *track = strstr(text, head);
			if (!track)
				fail_msg("'%s' is not in '%s'", head, text);
			const uint64_t data[] = {begins[vm][vcpu],
						 100,
						 VP_TRACK_GUEST,
						 0,
						 2 * vm + vcpu + 1,
						 0,
						 7,
						 ends[vm][vcpu] - 107,
						 VP_TRACK_HALTED,
						 0,
						 0,
						 0};
			VP_AUTO_FREE char *rest =
			    vp_strndup(track, (size_t)(strchr(track, '}') - track));
			assert_non_null(strstr(rest, "\"slices\": 2,"));
			expect_part(rest, "data", data, VP_ARRAY_SIZE(data));
		}
	vp_buffer_deinit(&out);
	vp_track_store_deinit(&store);
	free_report(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tracks_keep_to_their_bound),
	    cmocka_unit_test(test_tracks_of_threads_are_bounded),
	    cmocka_unit_test(test_slices_do_not_overlap),
	    cmocka_unit_test(test_bins_keep_what_was_counted),
	    cmocka_unit_test(test_bins_of_many_subjects),
	    cmocka_unit_test(test_numbers_are_packed),
	    cmocka_unit_test(test_profile_of_two_vms),
	    cmocka_unit_test(test_tracks_of_two_vms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
