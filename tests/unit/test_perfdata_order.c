/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a perf.data by time: over perf's rounds, compressed, and with a damaged piece. */
#include "unit.h"

#include <linux/perf_event.h>
#include <zstd.h>

#include "import/perf/perfdata_order.h"

enum { COMPRESSED = 81 };

static void put_header(struct vp_buffer *out, uint32_t type, size_t body)
{
	const struct perf_event_header header = {.type = type,
						 .size = (uint16_t)(sizeof(header) + body)};

	vp_buffer_append(out, &header, sizeof(header));
}

static void put_sample(struct vp_buffer *out, uint64_t time)
{
	put_header(out, PERF_RECORD_SAMPLE, sizeof(time));
	vp_buffer_append(out, &time, sizeof(time));
}

/* A sample in a zstd frame of its own, or what is none. */
static void put_compressed(struct vp_buffer *out, uint64_t time, bool is_damaged)
{
	struct vp_buffer sample = {0};
	char frame[256] = {0};

	put_sample(&sample, time);
	size_t size = ZSTD_compress(frame, sizeof(frame), sample.bytes, sample.size, 1);
	assert_false(ZSTD_isError(size));
	vp_buffer_deinit(&sample);
	if (is_damaged)
		memset(frame, 'x', size);
	put_header(out, COMPRESSED, size);
	vp_buffer_append(out, frame, size);
}

/* The times of all samples, in the order in which they come; consumes `file`. `again`: they are
 * read a second time. */
static void expect_times(struct vp_buffer *file, const uint64_t *times, size_t count,
			 uint64_t malformed, bool again)
{
	struct vp_perfdata_events events = {0};
	struct vp_perfdata_order order = {.source = "made", .events = &events};
	struct vp_perfdata_record record;
	bool has;

	vp_vec_push(&events.attrs, ((struct vp_perfdata_attr){.sample_type = PERF_SAMPLE_TIME}));
	vp_vec_push(&order.data, ((struct vp_perfdata_data){.file = {file->bytes, file->size},
							    .to = file->size}));
	for (int round = 0; round <= again; round++) {
		order.malformed = 0;
		vp_perfdata_order_begin(&order);
		for (size_t i = 0; i < count; i++) {
			expect_no_error(vp_perfdata_order_next(&order, &record, &has));
			assert_true(has);
			assert_int_equal(record.type, PERF_RECORD_SAMPLE);
			assert_int_equal(record.time, times[i]);
		}
		expect_no_error(vp_perfdata_order_next(&order, &record, &has));
		assert_false(has);
		assert_int_equal(order.malformed, malformed);
	}
	vp_perfdata_order_deinit(&order);
	vp_perfdata_events_deinit(&events);
	vp_buffer_deinit(file);
}

/* What is newer than the round before waits for the next one. */
static void test_rounds(void **state)
{
	static const uint64_t times[] = {10, 20, 30, 35, 40};
	struct vp_buffer file = {0};

	put_sample(&file, 30);
	put_sample(&file, 10);
	put_header(&file, VP_PERFDATA_FINISHED_ROUND, 0);
	put_sample(&file, 40);
	put_sample(&file, 20);
	put_header(&file, VP_PERFDATA_FINISHED_ROUND, 0);
	put_sample(&file, 35);
	expect_times(&file, times, VP_ARRAY_SIZE(times), 0, false);
}

static void test_compressed_twice(void **state)
{
	static const uint64_t times[] = {10, 20, 30};
	struct vp_buffer file = {0};

	put_compressed(&file, 20, false);
	put_sample(&file, 10);
	put_header(&file, VP_PERFDATA_FINISHED_ROUND, 0);
	put_compressed(&file, 30, false);
	expect_times(&file, times, VP_ARRAY_SIZE(times), 0, true);
}

/* The stream of compressed records ends at a damaged one; what is not compressed goes on. */
static void test_damaged(void **state)
{
	static const uint64_t times[] = {10, 40};
	struct vp_buffer file = {0};

	put_compressed(&file, 10, false);
	put_compressed(&file, 20, true);
	put_compressed(&file, 30, false);
	put_sample(&file, 40);
	expect_times(&file, times, VP_ARRAY_SIZE(times), 1, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rounds),
	    cmocka_unit_test(test_compressed_twice),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
