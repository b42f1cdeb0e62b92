/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single records of a perf.data: the fields of samples, ids at the end of others, sizes. */
#include "unit.h"

#include <linux/perf_event.h>

#include "base/buffer.h"
#include "import/perf/perfdata_record.h"

static struct vp_buffer bytes;

static void put32(uint32_t value)
{
	vp_buffer_append(&bytes, &value, sizeof(value));
}

static void put64(uint64_t value)
{
	vp_buffer_append(&bytes, &value, sizeof(value));
}

static void put32_twice(uint32_t first, uint32_t second)
{
	put32(first);
	put32(second);
}

/* A new record; its size is set when it is read. */
static void begin(uint32_t type)
{
	bytes.size = 0;
	put32(type);
	put32(5); /* misc, and a size of 0 */
}

static uint16_t end(void)
{
	uint16_t size = (uint16_t)bytes.size;

	memcpy(bytes.bytes + 6, &size, sizeof(size));
	return size;
}

static bool record_is_read(const struct vp_perfdata_events *events, struct vp_perfdata_record *ret)
{
	return vp_perfdata_record_read(events, (struct vp_slice){bytes.bytes, end()}, ret);
}

/* Two events, of the ids 700 and 701; the samples of 701 are of the vCPU 3 of process 40. */
static struct vp_perfdata_events two_events(uint64_t type, uint64_t format)
{
	struct vp_perfdata_events events = {0};
	bool inserted;

	vp_vec_push(
	    &events.attrs,
	    ((struct vp_perfdata_attr){
		.period = 1000, .sample_type = type, .read_format = format, .all_have_ids = true}));
	vp_vec_push(&events.attrs,
		    ((struct vp_perfdata_attr){
			.period = 2000, .sample_type = type, .read_format = format}));
	vp_map_insert(&events.attr_of_id, 700, 0, &inserted);
	vp_map_insert(&events.attr_of_id, 701, 1, &inserted);
	vp_vec_push(&events.vcpus, ((struct vp_perfdata_vcpu){40, 3, 44}));
	vp_map_insert(&events.vcpu_of_id, 701, 0, &inserted);
	return events;
}

enum {
	ALL_FIELDS = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
		     PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		     PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW
};

/* A sample with all fields, up to its chain. */
static void put_sample(uint64_t id, uint32_t cpu)
{
	begin(PERF_RECORD_SAMPLE);
	put64(0x401000);
	put32_twice(11, 12);
	put64(99);
	put64(0xadd);
	put64(id);
	put64(0x5e);
	put32_twice(cpu, 0);
	put64(333);
	put64(1); /* the value that was read, with its id and its losses */
	put64(id);
	put64(0);
}

static void test_sample(void **state)
{
	static const uint64_t chain[] = {0xc1, 0xc2};
	struct vp_perfdata_events events =
	    two_events(ALL_FIELDS, PERF_FORMAT_ID | PERF_FORMAT_LOST);
	struct vp_perfdata_record record;

	put_sample(701, 8191);
	put64(2);
	put64(chain[0]);
	put64(chain[1]);
	put32(4);
	put32(0x7a77);
	assert_true(record_is_read(&events, &record));
	assert_ptr_equal(record.attr, &events.attrs.at[1]);
	assert_int_equal(record.misc, 5);
	assert_int_equal(record.ip, 0x401000);
	assert_int_equal(record.pid, 11);
	assert_int_equal(record.tid, 12);
	assert_true(record.has_time);
	assert_int_equal(record.time, 99);
	assert_int_equal(record.cpu, 8191);
	assert_int_equal(record.period, 333);
	assert_int_equal(record.chain.size, sizeof(chain));
	assert_memory_equal(record.chain.bytes, chain, sizeof(chain));
	assert_int_equal(record.raw.size, 4);
	assert_memory_equal(record.raw.bytes, &(uint32_t){0x7a77}, 4);
	assert_ptr_equal(record.vcpu, &events.vcpus.at[0]);

	/* The other event has no vCPU; an unknown one is an error, no id the first event. */
	memcpy(bytes.bytes + 40, &(uint64_t){700}, 8);
	assert_true(record_is_read(&events, &record));
	assert_ptr_equal(record.attr, &events.attrs.at[0]);
	assert_null(record.vcpu);
	memcpy(bytes.bytes + 40, &(uint64_t){702}, 8);
	assert_false(record_is_read(&events, &record));
	memcpy(bytes.bytes + 40, &(uint64_t){0}, 8);
	assert_true(record_is_read(&events, &record));
	assert_ptr_equal(record.attr, &events.attrs.at[0]);

	/* No kernel has a CPU 8192; one that is not known is not one. */
	memcpy(bytes.bytes + 56, &(uint32_t){8192}, 4);
	assert_false(record_is_read(&events, &record));
	memcpy(bytes.bytes + 56, &(uint32_t){UINT32_MAX}, 4);
	assert_true(record_is_read(&events, &record));
	vp_perfdata_events_deinit(&events);
}

/* Counts whose bytes overflow, or are more than the record has, make it malformed. */
static void test_counts(void **state)
{
	static const uint64_t wrong[] = {3, UINT64_MAX, UINT64_MAX / 8 + 1, 1ULL << 61, 1ULL << 32};
	static const uint64_t value[] = {1234, 700};
	struct vp_perfdata_events events =
	    two_events(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN,
		       PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING);
	struct vp_perfdata_record record;

	for (size_t i = 0; i <= VP_ARRAY_SIZE(wrong); i++) {
		begin(PERF_RECORD_SAMPLE);
		put64(700);
		put64(0);
		put64(21);
		put64(22);
		put64(i ? wrong[i - 1] : 2);
		put64(0xc1);
		put64(0xc2);
		assert_int_equal(record_is_read(&events, &record), !i);
	}
	for (size_t i = 0; i <= VP_ARRAY_SIZE(wrong); i++) {
		begin(PERF_RECORD_SAMPLE);
		put64(700);
		put64(i ? wrong[i - 1] : 1);
		put64(21);
		put64(22);
		put64(value[0]);
		put64(value[1]);
		put64(0);
		assert_int_equal(record_is_read(&events, &record), !i);
		if (i)
			continue;
		assert_int_equal(record.value_size, 16);
		assert_int_equal(record.values.size, sizeof(value));
		assert_memory_equal(record.values.bytes, value, sizeof(value));
		/* Without a period of its own it has its event's. */
		assert_int_equal(record.period, 1000);
		assert_false(record.has_time);
		assert_int_equal(record.cpu, VP_PERFDATA_NO_CPU);
	}
	vp_perfdata_events_deinit(&events);
}

/* Other records have time and id at their end, if the first event says so. */
static void test_ids_at_the_end(void **state)
{
	struct vp_perfdata_events events =
	    two_events(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			   PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
		       0);
	struct vp_perfdata_record record;
	uint32_t tid = 0;

	begin(PERF_RECORD_COMM);
	put32_twice(70, 71);
	vp_buffer_append(&bytes, "name\0\0\0", 8);
	put32_twice(70, 71);
	put64(98);
	put64(700);
	put64(1);
	put32_twice(6, 0);
	put64(701);
	assert_true(record_is_read(&events, &record));
	assert_true(record.has_time);
	assert_int_equal(record.time, 98);
	assert_int_equal(record.id, 701);
	assert_ptr_equal(record.vcpu, &events.vcpus.at[0]);
	struct vp_slice name = vp_perfdata_comm(&record, &tid);
	assert_int_equal(tid, 71);
	assert_int_equal(name.size, 4);
	assert_memory_equal(name.bytes, "name", 4);

	events.attrs.at[0].all_have_ids = false;
	assert_true(record_is_read(&events, &record));
	assert_false(record.has_time);
	assert_int_equal(record.id, 0);
	/* Shorter than its ids: it has none. */
	events.attrs.at[0].all_have_ids = true;
	begin(PERF_RECORD_COMM);
	put32_twice(70, 71);
	assert_true(record_is_read(&events, &record));
	assert_false(record.has_time);
	vp_perfdata_events_deinit(&events);
}

static uint64_t size_of(size_t there)
{
	const struct vp_perfdata_events events = {0};

	return vp_perfdata_record_size(&events, (struct vp_slice){bytes.bytes, there});
}

/* Data behind a record belong to its size: AUX data, and the descriptions of tracepoints, which are
 * padded to whole words. */
static void test_sizes(void **state)
{
	static const struct {
		uint32_t bytes;
		uint64_t padded;
	} tracing[] = {{0, 0}, {1, 8}, {8, 8}, {9, 16}, {16, 16}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(tracing); i++) {
		begin(VP_PERFDATA_HEADER_TRACING);
		put32(tracing[i].bytes);
		uint16_t header = end();
		memset(vp_buffer_extend(&bytes, 64), 0, 64);
		assert_int_equal(size_of(header + 64), header + tracing[i].padded);
		assert_int_equal(size_of(header + tracing[i].padded), header + tracing[i].padded);
		if (tracing[i].padded)
			assert_int_equal(size_of(header + tracing[i].padded - 1), 0);
	}
	begin(VP_PERFDATA_AUXTRACE);
	put64(5);
	end();
	put64(0);
	assert_int_equal(size_of(24), 21);
	assert_int_equal(size_of(20), 0);
	begin(PERF_RECORD_COMM);
	put64(5);
	end();
	assert_int_equal(size_of(16), 16);
	assert_int_equal(size_of(15), 0);
	/* Smaller than its own header. */
	memcpy(bytes.bytes + 6, &(uint16_t){7}, 2);
	assert_int_equal(size_of(16), 0);
	memcpy(bytes.bytes + 6, &(uint16_t){8}, 2);
	assert_int_equal(size_of(16), 8);
}

/* In pipe mode a record of the kernel's before any event cannot be understood. */
static void test_before_events(void **state)
{
	const struct vp_perfdata_events events = {0};
	struct vp_perfdata_record record;

	begin(PERF_RECORD_COMM);
	put32_twice(70, 71);
	assert_false(record_is_read(&events, &record));
	begin(VP_PERFDATA_FIRST_OF_PERF);
	assert_true(record_is_read(&events, &record));
	assert_int_equal(record.body.size, 0);
}

static int free_bytes(void **state)
{
	vp_buffer_deinit(&bytes);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sample),         cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_ids_at_the_end), cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_before_events),
	};

	return cmocka_run_group_tests(tests, NULL, free_bytes);
}
