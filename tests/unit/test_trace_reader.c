/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace's streams, read record by record, packet by packet, from their end and near a time. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "make_recording.h"
#include "schema/records.h"
#include "schema/trace_records.h"
#include "store/packet_zstd.h"
#include "store/trace_reader.h"

#define NAME "test_trace_reader.rec"
#define HOST NAME "/host"
#define STREAM HOST "/cpu3"

enum { PACKETS = 4, RECORDS = 10 };

/* Four packets of ten samples, one a tick, on pCPU 3; lost so far: 0, 2, 4, 6. */
static void make(void)
{
	struct made made;

	made_begin(&made, NAME, 0);
	for (uint64_t packet = 0; packet < PACKETS; packet++) {
		for (uint64_t i = 0; i < RECORDS; i++)
			made_idle(&made, 3, packet * RECORDS + i);
		vp_trace_flush(made.writer, vp_stream_of_pcpu(3), 2 * packet);
	}
	made.lost = 2 * (PACKETS - 1);
	made_end(&made, PACKETS * RECORDS);
}

static struct vp_stream_reader *open_stream(const char *path)
{
	struct vp_stream_reader *reader;

	expect_no_error(vp_stream_open(path, &reader));
	return reader;
}

static struct vp_buffer bytes_of(const char *path)
{
	struct vp_buffer bytes = {0};

	expect_no_error(vp_file_read(path, 16 << 20, &bytes));
	return bytes;
}

/* Reads on to the end; yields how many there were. */
static uint64_t read_on(struct vp_stream_reader *reader)
{
	uint64_t records = 0;

	while (vp_stream_next(reader))
		records++;
	assert_null(vp_stream_next(reader));
	return records;
}

/* The next record is the sample of that tick. */
static void expect_tick(struct vp_stream_reader *reader, uint64_t tick)
{
	const struct vp_record_header *record = vp_stream_next(reader);

	assert_non_null(record);
	assert_int_equal(record->id, VP_ID_host_sample);
	assert_int_equal(record->time, MADE_START + tick * MADE_PERIOD);
}

static void test_open(void **state)
{
	struct vp_stream_reader *reader;

	make();
	reader = open_stream(STREAM);
	assert_string_equal(vp_stream_path(reader), STREAM);
	assert_int_equal(vp_stream_class(reader), VP_STREAM_PCPU);
	assert_int_equal(vp_stream_cpu(reader), 3);
	struct vp_buffer bytes = bytes_of(STREAM);
	assert_int_equal(vp_stream_size(reader), bytes.size);
	/* Before the first record nothing is lost that is known of. */
	assert_int_equal(vp_stream_health(reader).lost, 0);
	for (uint64_t tick = 0; tick < PACKETS * RECORDS; tick++) {
		expect_tick(reader, tick);
		assert_int_equal(vp_stream_health(reader).records, tick + 1);
		assert_int_equal(vp_stream_health(reader).lost, tick / RECORDS * 2);
	}
	assert_null(vp_stream_next(reader));
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	assert_false(vp_stream_health(reader).cut_off);
	vp_stream_free(reader);
	/* What the name does not tell, the packets do; a name tells it before there are any. */
	temporary_file(HOST "/intervals-cpu12", bytes.bytes, bytes.size);
	reader = open_stream(HOST "/intervals-cpu12");
	assert_int_equal(vp_stream_class(reader), VP_STREAM_INTERVALS);
	assert_int_equal(vp_stream_cpu(reader), 12);
	assert_non_null(vp_stream_next(reader));
	assert_int_equal(vp_stream_cpu(reader), 3);
	vp_stream_free(reader);
	temporary_file("test_trace_reader.copy", bytes.bytes, bytes.size);
	reader = open_stream("test_trace_reader.copy");
	assert_int_equal(vp_stream_class(reader), VP_STREAM_PCPU);
	assert_int_equal(read_on(reader), PACKETS * RECORDS);
	assert_int_equal(vp_stream_cpu(reader), 3);
	vp_stream_free(reader);
	/* A file in this directory. */
	temporary_file("trace-cpu5", "", 0);
	reader = open_stream("trace-cpu5");
	assert_int_equal(vp_stream_class(reader), VP_STREAM_TRACE);
	assert_int_equal(vp_stream_cpu(reader), 5);
	assert_null(vp_stream_next(reader));
	assert_int_equal(vp_stream_size(reader), 0);
	vp_stream_free(reader);
	unlink("trace-cpu5");
	vp_stream_free(NULL);
	vp_buffer_deinit(&bytes);
	expect_error(vp_stream_open(HOST "/cpu99", &reader), "cannot open stream '" HOST "/cpu99'");
}

/* Two readers of a file do not share where they are, nor what they have seen. */
static void test_again(void **state)
{
	make();
	struct vp_stream_reader *first = open_stream(STREAM);
	for (uint64_t tick = 0; tick < 15; tick++)
		expect_tick(first, tick);
	struct vp_stream_reader *second = vp_stream_again(first);
	assert_string_equal(vp_stream_path(second), STREAM);
	assert_int_equal(vp_stream_class(second), VP_STREAM_PCPU);
	assert_int_equal(vp_stream_cpu(second), 3);
	assert_int_equal(vp_stream_size(second), vp_stream_size(first));
	expect_tick(second, 0);
	expect_tick(first, 15);
	expect_tick(second, 1);
	assert_int_equal(vp_stream_health(first).records, 16);
	assert_int_equal(vp_stream_health(second).records, 2);
	vp_stream_free(second);
	/* The descriptor is the first one's. */
	expect_tick(first, 16);
	assert_int_equal(read_on(first), PACKETS * RECORDS - 17);
	second = vp_stream_again(first);
	assert_int_equal(read_on(second), PACKETS * RECORDS);
	vp_stream_free(second);
	vp_stream_rewind(first);
	assert_int_equal(read_on(first), PACKETS * RECORDS);
	vp_stream_free(first);
}

/* A trusted packet is read without a look at its checksum; from the begin on none is. */
static void test_trust_and_rewind(void **state)
{
	make();
	struct vp_buffer bytes = bytes_of(STREAM);
	size_t packet = bytes.size / PACKETS;
	struct vp_host_sample *sample =
	    (void *)(bytes.bytes + packet + sizeof(struct vp_packet_header));

	/* In the second packet: its first record is of pid 77. */
	assert_int_equal(sample->pid, 0);
	sample->pid = 77;
	temporary_file(STREAM, bytes.bytes, bytes.size);
	struct vp_stream_reader *reader = open_stream(STREAM);
	assert_int_equal(read_on(reader), (PACKETS - 1) * RECORDS);
	struct vp_stream_health health = vp_stream_health(reader);
	assert_int_equal(health.damaged, packet);
	assert_int_equal(health.damaged_at, packet);
	assert_int_equal(health.records, (PACKETS - 1) * RECORDS);
	assert_int_equal(health.lost, 6);
	vp_stream_rewind(reader);
	health = vp_stream_health(reader);
	assert_int_equal(health.damaged, 0);
	assert_int_equal(health.damaged_at, 0);
	assert_int_equal(health.records, 0);
	assert_int_equal(health.lost, 0);
	vp_stream_trust(reader, true);
	for (uint64_t tick = 0; tick < RECORDS; tick++)
		expect_tick(reader, tick);
	const struct vp_host_sample *read = (const void *)vp_stream_next(reader);
	assert_int_equal(read->pid, 77);
	assert_int_equal(read_on(reader), (PACKETS - 1) * RECORDS - 1);
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_rewind(reader);
	assert_int_equal(read_on(reader), (PACKETS - 1) * RECORDS);
	vp_stream_rewind(reader);
	vp_stream_trust(reader, true);
	vp_stream_trust(reader, false);
	assert_int_equal(read_on(reader), (PACKETS - 1) * RECORDS);
	/* A second reader trusts nothing that the first one does. */
	vp_stream_trust(reader, true);
	struct vp_stream_reader *again = vp_stream_again(reader);
	assert_int_equal(read_on(again), (PACKETS - 1) * RECORDS);
	vp_stream_free(again);
	/* In the middle of a packet. */
	vp_stream_rewind(reader);
	expect_tick(reader, 0);
	expect_tick(reader, 1);
	vp_stream_rewind(reader);
	expect_tick(reader, 0);
	vp_stream_free(reader);
	vp_buffer_deinit(&bytes);
}

/* Trusted or not: what is no packet, or not all of one, is none. */
static void test_trust_in_damage(void **state)
{
	make();
	struct vp_buffer bytes = bytes_of(STREAM), other = {0};
	size_t packet = bytes.size / PACKETS;

	for (size_t i = 0; i < PACKETS; i++) {
		memset(vp_buffer_extend(&other, 300 + i), 'x', 300 + i);
		vp_buffer_append(&other, bytes.bytes + i * packet, packet);
	}
	for (int trusted = 0; trusted < 2; trusted++) {
		temporary_file(STREAM, other.bytes, other.size);
		struct vp_stream_reader *reader = open_stream(STREAM);
		vp_stream_trust(reader, trusted);
		assert_int_equal(read_on(reader), PACKETS * RECORDS);
		assert_int_equal(vp_stream_health(reader).damaged, 300 + 301 + 302 + 303);
		assert_int_equal(vp_stream_health(reader).damaged_at, 0);
		vp_stream_free(reader);
		temporary_file(STREAM, bytes.bytes, bytes.size - 1);
		reader = open_stream(STREAM);
		vp_stream_trust(reader, trusted);
		assert_int_equal(read_on(reader), (PACKETS - 1) * RECORDS);
		assert_int_equal(vp_stream_health(reader).damaged, packet - 1);
		assert_true(vp_stream_health(reader).cut_off);
		vp_stream_free(reader);
	}
	vp_buffer_deinit(&other);
	vp_buffer_deinit(&bytes);
}

/* A folder can be opened, and not be read: then there is nothing. */
static void test_unreadable(void **state)
{
	make();
	assert_int_equal(mkdir(HOST "/cpu5", 0755), 0);
	struct vp_stream_reader *reader = open_stream(HOST "/cpu5");
	assert_int_equal(read_on(reader), 0);
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_free(reader);
}

/* Packets as they are, compressed or not. */
static void expect_packets(const char *path)
{
	struct vp_stream_reader *reader = open_stream(path);
	const struct vp_packet_header *header;

	for (uint64_t packet = 0; packet < PACKETS; packet++) {
		header = vp_stream_next_packet(reader);
		assert_non_null(header);
		assert_int_equal(header->packet_seq_num, packet);
		assert_int_equal(header->cpu_id, 3);
		assert_int_equal(header->timestamp_begin,
				 MADE_START + packet * RECORDS * MADE_PERIOD);
		assert_int_equal(header->timestamp_end,
				 MADE_START + (packet * RECORDS + RECORDS - 1) * MADE_PERIOD);
		assert_int_equal(vp_packet_header_size(header),
				 sizeof(*header) + RECORDS * sizeof(struct vp_host_sample));
		const struct vp_host_sample *last =
		    (const void *)((const char *)(header + 1) + (RECORDS - 1) * sizeof(*last));
		assert_int_equal(last->time, header->timestamp_end);
	}
	assert_null(vp_stream_next_packet(reader));
	assert_null(vp_stream_next_packet(reader));
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_free(reader);
}

static void test_packets(void **state)
{
	struct made made;

	make();
	expect_packets(STREAM);
	made_begin(&made, NAME, 0);
	vp_trace_writer_compress(made.writer, 3);
	for (uint64_t tick = 0; tick < PACKETS * RECORDS; tick++) {
		made_idle(&made, 3, tick);
		if (tick % RECORDS == RECORDS - 1)
			vp_trace_flush(made.writer, vp_stream_of_pcpu(3), 0);
	}
	made_end(&made, PACKETS * RECORDS);
	expect_packets(STREAM ".zst");
}

/* Many times as much as is read at once, in packets of all sizes. */
static void test_long_stream(void **state)
{
	struct made made;
	uint64_t tick = 0;

	made_begin(&made, NAME, 0);
	for (uint64_t packet = 0; packet < 100; packet++) {
		uint64_t records = packet % 7 ? packet * 5 : 7000;
		for (uint64_t i = 0; i < records; i++)
			made_idle(&made, 3, tick++);
		vp_trace_flush(made.writer, vp_stream_of_pcpu(3), 0);
	}
	made_end(&made, tick);
	struct vp_stream_reader *reader = open_stream(STREAM);
	assert_true(vp_stream_size(reader) > 3 << 20);
	for (uint64_t i = 0; i < tick; i++)
		expect_tick(reader, i);
	assert_null(vp_stream_next(reader));
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_free(reader);
}

/* A good checksum over bytes of which some are no records. */
static void put_packet(const char *path, const void *records, size_t size)
{
	static const uint8_t uuid[16] = {1};
	struct vp_packet_header header = {.cpu_id = 3};
	struct vp_buffer bytes = {0};

	vp_packet_finish(&header, uuid, records, size);
	vp_buffer_append(&bytes, &header, sizeof(header));
	vp_buffer_append(&bytes, records, size);
	temporary_file(path, bytes.bytes, bytes.size);
	vp_buffer_deinit(&bytes);
}

static void expect_good(const char *path, uint64_t good, size_t damaged_at, size_t damaged)
{
	struct vp_stream_reader *reader = open_stream(path);

	assert_int_equal(read_on(reader), good);
	struct vp_stream_health health = vp_stream_health(reader);
	assert_int_equal(health.records, good);
	assert_int_equal(health.damaged, damaged);
	if (damaged)
		assert_int_equal(health.damaged_at, damaged_at);
	assert_false(health.cut_off);
	vp_stream_free(reader);
}

/* The rest of a packet from what is no record on, and what is good before it. */
static void test_no_records(void **state)
{
	struct vp_host_sample samples[3] = {{.id = VP_ID_host_sample, .time = 1},
					    {.id = VP_ID_host_sample, .time = 2},
					    {.id = VP_ID_host_sample, .time = 3}};
	const size_t head = sizeof(struct vp_packet_header), one = sizeof(*samples);

	make();
	put_packet(STREAM, samples, sizeof(samples));
	expect_good(STREAM, 3, 0, 0);
	put_packet(STREAM, samples, sizeof(samples) - 1);
	expect_good(STREAM, 2, head + 2 * one, one - 1);
	put_packet(STREAM, samples, 2 * one + sizeof(struct vp_record_header) - 1);
	expect_good(STREAM, 2, head + 2 * one, sizeof(struct vp_record_header) - 1);
	samples[1].id = VP_ID_MAX + 1;
	put_packet(STREAM, samples, sizeof(samples));
	expect_good(STREAM, 1, head + one, 2 * one);
	/* Of a class that is defined: not in a stream of samples. */
	samples[1].id = VP_ID_DEFINED;
	put_packet(STREAM, samples, sizeof(samples));
	expect_good(STREAM, 1, head + one, 2 * one);
	put_packet(STREAM, samples, 0);
	expect_good(STREAM, 0, 0, 0);
}

/* A defined record has as many bytes as it says, if there are that many, and at least its header.
 */
static void test_defined(void **state)
{
	static const struct {
		uint16_t size;
		size_t bytes; /* behind one that is good */
		bool good;
	} cases[] = {{12, 12, true}, {13, 13, true},  {20, 20, true},  {11, 20, false},
		     {0, 20, false}, {21, 20, false}, {12, 11, false}, {12, 10, false}};
	char records[64];

	make();
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_defined_record *record = (void *)records;
		memset(records, 0, sizeof(records));
		*record = (struct vp_defined_record){.time = 1, .id = VP_ID_DEFINED, .size = 16};
		record = (void *)(records + 16);
		*record = (struct vp_defined_record){
		    .time = 2, .id = VP_ID_DEFINED + 7, .size = cases[i].size};
		put_packet(HOST "/trace-cpu3", records, 16 + cases[i].bytes);
		bool good = cases[i].good;
		expect_good(HOST "/trace-cpu3", good ? 2 : 1, sizeof(struct vp_packet_header) + 16,
			    good ? 0 : cases[i].bytes);
		put_packet(HOST "/hypervisor", records, 16 + cases[i].bytes);
		expect_good(HOST "/hypervisor", good ? 2 : 1, sizeof(struct vp_packet_header) + 16,
			    good ? 0 : cases[i].bytes);
	}
}

/* States are packed: what is damaged in them is said of their packet. */
static void test_states(void **state)
{
	const struct vp_stream_id id = {VP_STREAM_STATES, VP_NO_PCPU};
	struct vp_vcpu_span span = {
	    .id = VP_ID_vcpu_span, .vm = 1000, .tid = 1001, .vendor = VP_VENDOR_AMD, .ns = 100};
	struct made made;

	made_begin(&made, NAME, 1);
	for (uint64_t i = 1; i <= 6; i++) {
		span.time = MADE_START + 100 * i;
		span.state = (uint16_t)i;
		vp_trace_append(made.writer, id, &span);
		if (i % 3 == 0)
			vp_trace_flush(made.writer, id, 0);
	}
	made_end(&made, 1);
	struct vp_stream_reader *reader = open_stream(HOST "/vcpus");
	assert_int_equal(vp_stream_class(reader), VP_STREAM_STATES);
	assert_int_equal(vp_stream_cpu(reader), VP_NO_PCPU);
	for (uint64_t i = 1; i <= 6; i++) {
		const struct vp_vcpu_span *read = (const void *)vp_stream_next(reader);
		assert_int_equal(read->id, VP_ID_vcpu_span);
		assert_int_equal(read->time, MADE_START + 100 * i);
		assert_int_equal(read->ns, 100);
		assert_int_equal(read->state, i);
		assert_int_equal(read->tid, 1001);
	}
	assert_null(vp_stream_next(reader));
	assert_int_equal(vp_stream_health(reader).records, 6);
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_free(reader);
	/* One that continues a vCPU which nothing names. */
	struct vp_vcpu_next next = {.id = VP_ID_vcpu_next, .time = 5};
	struct vp_buffer records = {0};
	span.time = 1000;
	vp_buffer_append(&records, &span, sizeof(span));
	next.which = 3;
	next.time = 2000;
	vp_buffer_append(&records, &next, sizeof(next));
	put_packet(HOST "/vcpus", records.bytes, records.size);
	expect_good(HOST "/vcpus", 1, 0, sizeof(struct vp_packet_header) + records.size);
	vp_buffer_deinit(&records);
}

/* From the end: where the first packet begins in these bytes. */
static void test_tail(void **state)
{
	make();
	struct vp_stream_reader *reader = open_stream(STREAM);
	uint64_t size = vp_stream_size(reader), packet = size / PACKETS;

	static const uint64_t left[] = {0, 1, 2, PACKETS};
	for (size_t i = 0; i < VP_ARRAY_SIZE(left); i++) {
		struct vp_stream_reader *tail = vp_stream_again(reader);
		vp_stream_seek_tail(tail, left[i] * packet);
		assert_int_equal(read_on(tail), left[i] * RECORDS);
		assert_int_equal(vp_stream_health(tail).damaged, 0);
		vp_stream_free(tail);
	}
	/* One byte less: it begins before. */
	struct vp_stream_reader *tail = vp_stream_again(reader);
	vp_stream_seek_tail(tail, 2 * packet - 1);
	assert_int_equal(read_on(tail), RECORDS);
	assert_int_equal(vp_stream_health(tail).damaged, packet - 1);
	assert_int_equal(vp_stream_health(tail).damaged_at, size - 2 * packet + 1);
	vp_stream_free(tail);
	tail = vp_stream_again(reader);
	vp_stream_seek_tail(tail, size + 1);
	assert_int_equal(read_on(tail), PACKETS * RECORDS);
	vp_stream_free(tail);
	vp_stream_free(reader);
	/* Of a file of one byte nothing is asked for. */
	temporary_file(STREAM, "x", 1);
	reader = open_stream(STREAM);
	vp_stream_seek_tail(reader, 0);
	assert_int_equal(read_on(reader), 0);
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_free(reader);
}

/* A packet that begins anywhere after damage, also where little is left of what is read at once. */
static void test_damage_before(void **state)
{
	make();
	struct vp_buffer bytes = bytes_of(STREAM), other = {0};
	const size_t window = 2 * (size_t)VP_ZSTD_PACKET_MAX;

	for (size_t size = window - 8; size <= window + 2; size++) {
		other.size = 0;
		memset(vp_buffer_extend(&other, size), 'C', size);
		vp_buffer_append(&other, bytes.bytes, bytes.size);
		temporary_file(STREAM, other.bytes, other.size);
		struct vp_stream_reader *reader = open_stream(STREAM);
		assert_int_equal(read_on(reader), PACKETS * RECORDS);
		assert_int_equal(vp_stream_health(reader).damaged, size);
		vp_stream_free(reader);
	}
	vp_buffer_deinit(&other);
	vp_buffer_deinit(&bytes);
}

static void expect_time(const struct vp_stream_reader *reader, uint64_t offset, double ticks)
{
	uint64_t time;

	assert_true(vp_stream_time_near(reader, offset, &time));
	assert_float_equal(((double)time - (double)MADE_START) / (double)MADE_PERIOD, ticks, 1e-3);
}

/* Within a packet by how far into it the byte is; a packet's records are nine ticks long. */
static void test_time_near(void **state)
{
	uint64_t time;

	make();
	struct vp_stream_reader *reader = open_stream(STREAM);
	uint64_t packet = vp_stream_size(reader) / PACKETS;

	for (uint64_t i = 0; i < PACKETS; i++) {
		double begin = (double)(i * RECORDS);
		expect_time(reader, i * packet, begin);
		expect_time(reader, i * packet + packet / 2, begin + 4.5);
		expect_time(reader, i * packet + packet / 4, begin + 2.25);
		expect_time(reader, i * packet + packet - 1, begin + 9 - 9.0 / (double)packet);
	}
	/* Beyond the last one it is that one's end. */
	expect_time(reader, PACKETS * packet, PACKETS * RECORDS - 1);
	expect_time(reader, PACKETS * packet + 100000, PACKETS * RECORDS - 1);
	/* Where the reader is does not change. */
	expect_tick(reader, 0);
	expect_time(reader, packet, RECORDS);
	expect_tick(reader, 1);
	vp_stream_free(reader);
	/* Damage in front: the first packet begins later, and all before is of its begin. */
	struct vp_buffer bytes = bytes_of(STREAM), other = {0};
	memset(vp_buffer_extend(&other, 100000), 'x', 100000);
	vp_buffer_append(&other, bytes.bytes, bytes.size);
	temporary_file(STREAM, other.bytes, other.size);
	reader = open_stream(STREAM);
	expect_time(reader, 0, 0);
	expect_time(reader, 100000, 0);
	expect_time(reader, 100000 + packet + packet / 2, RECORDS + 4.5);
	vp_stream_free(reader);
	/* One whose header lies across what is read at once. */
	for (size_t size = 65536 - 120; size < 65536 + 20; size += 7) {
		other.size = 0;
		memset(vp_buffer_extend(&other, size), 'x', size);
		vp_buffer_append(&other, bytes.bytes, bytes.size);
		temporary_file(STREAM, other.bytes, other.size);
		reader = open_stream(STREAM);
		expect_time(reader, 0, 0);
		vp_stream_free(reader);
	}
	/* A packet whose times are in no order lasts no time. */
	struct vp_packet_header *header = (void *)bytes.bytes;
	header->timestamp_end = header->timestamp_begin - 1;
	temporary_file(STREAM, bytes.bytes, packet);
	reader = open_stream(STREAM);
	expect_time(reader, packet / 2, 0);
	vp_stream_free(reader);
	temporary_file(STREAM, other.bytes, 60000);
	reader = open_stream(STREAM);
	assert_false(vp_stream_time_near(reader, 50, &time));
	vp_stream_free(reader);
	vp_buffer_deinit(&other);
	vp_buffer_deinit(&bytes);
}

/* A long stream: the packet is looked for in front of the byte, as far as one can be long. */
static void test_time_near_far(void **state)
{
	struct made made;
	uint64_t tick = 0;

	made_begin(&made, NAME, 0);
	for (uint64_t packet = 0; packet < 12; packet++) {
		for (uint64_t i = 0; i < 6000; i++)
			made_idle(&made, 3, tick++);
		vp_trace_flush(made.writer, vp_stream_of_pcpu(3), 0);
	}
	made_end(&made, tick);
	struct vp_stream_reader *reader = open_stream(STREAM);
	uint64_t packet = vp_stream_size(reader) / 12;
	assert_true(packet > 150000);
	for (uint64_t i = 0; i < 12; i++) {
		expect_time(reader, i * packet, (double)(i * 6000));
		expect_time(reader, i * packet + packet / 2, (double)(i * 6000) + 2999.5);
	}
	vp_stream_free(reader);
}

/* Packets that only continue the one that was read are skipped, but for the last one of them. */
static void test_skip(void **state)
{
	const uint64_t end = MADE_START + MADE_PERIOD * 10 * RECORDS;
	struct made made;
	uint64_t tick = 0;

	made_begin(&made, NAME, 0);
	for (uint64_t packet = 0; packet < 10; packet++) {
		for (uint64_t i = 0; i < RECORDS; i++, tick++)
			made_host(&made, 3, tick, packet < 6 ? 7 : 8, VP_MODE_USER);
		vp_trace_flush(made.writer, vp_stream_of_pcpu(3), 0);
	}
	made_end(&made, tick);
	struct vp_stream_reader *reader = open_stream(STREAM);
	uint64_t packet = vp_stream_size(reader) / 10;
	assert_int_equal(vp_stream_skip_continuing(reader, end), 0); /* nothing is read */
	expect_tick(reader, 0);
	assert_int_equal(vp_stream_skip_continuing(reader, end), 0); /* not at its end */
	for (uint64_t i = 1; i < RECORDS; i++)
		expect_tick(reader, i);
	/* packet 4 ends at the limit */
	assert_int_equal(
	    vp_stream_skip_continuing(reader, MADE_START + MADE_PERIOD * (5 * RECORDS - 1)), 2);
	assert_int_equal(vp_stream_position(reader), 3 * packet);
	assert_int_equal(vp_stream_packet(reader)->packet_seq_num, 0);
	vp_stream_seek(reader, packet);
	assert_int_equal(vp_stream_skip_continuing(reader, end), 4);
	expect_tick(reader, 5 * RECORDS);
	vp_stream_seek(reader, 6 * packet);
	expect_tick(reader, 6 * RECORDS);
	assert_int_equal(read_on(reader), 4 * RECORDS - 1);
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_count(reader, 1000);
	assert_int_equal(vp_stream_health(reader).records, 5 * RECORDS + 1 + 1000);
	vp_stream_free(reader);
}

/* Class after class, and in a class pCPU after pCPU, by number. */
static void test_trace(void **state)
{
	static const char *const files[] = {"cpu10",   "cpu2",     "trace-cpu1",   "trace-cpu0",
					    "account", "vcpus",    "metadata",     "cpu",
					    "cpu3x",   "cpu4.zst", "guest-samples"};
	static const struct {
		enum vp_stream_class kind;
		uint32_t cpu;
	} expected[] = {{VP_STREAM_PCPU, 2},
			{VP_STREAM_PCPU, 4},
			{VP_STREAM_PCPU, 10},
			{VP_STREAM_ACCOUNT, VP_NO_PCPU},
			{VP_STREAM_STATES, VP_NO_PCPU},
			{VP_STREAM_TRACE, 0},
			{VP_STREAM_TRACE, 1},
			{VP_STREAM_GUESTS, VP_NO_PCPU}};
	vp_stream_readers streams = {0};

	assert_int_equal(system("rm -rf " NAME " && mkdir -p " HOST), 0);
	for (size_t i = 0; i < VP_ARRAY_SIZE(files); i++) {
		VP_AUTO_FREE char *path = vp_format(HOST "/%s", files[i]);
		temporary_file(path, "", 0);
	}
	expect_no_error(vp_trace_open(HOST, VP_STREAMS_ALL, &streams));
	assert_int_equal(streams.count, VP_ARRAY_SIZE(expected));
	for (size_t i = 0; i < streams.count; i++) {
		assert_int_equal(vp_stream_class(streams.at[i]), expected[i].kind);
		assert_int_equal(vp_stream_cpu(streams.at[i]), expected[i].cpu);
	}
	assert_string_equal(vp_stream_path(streams.at[1]), HOST "/cpu4.zst");
	vp_trace_close(&streams);
	assert_int_equal(streams.count, 0);
	expect_no_error(vp_trace_open(
	    HOST, VP_STREAMS(VP_STREAM_TRACE) | VP_STREAMS(VP_STREAM_STATES), &streams));
	assert_int_equal(streams.count, 3);
	assert_int_equal(vp_stream_class(streams.at[0]), VP_STREAM_STATES);
	vp_trace_close(&streams);
	/* One that cannot be opened: then none is open. */
	assert_int_equal(symlink("nowhere", HOST "/cpu77"), 0);
	expect_error(vp_trace_open(HOST, VP_STREAMS_ALL, &streams),
		     "cannot open stream '" HOST "/cpu77'");
	assert_int_equal(streams.count, 0);
	expect_no_error(vp_trace_open(HOST, VP_STREAMS(VP_STREAM_INTERVALS), &streams));
	assert_int_equal(streams.count, 0);
	expect_error(vp_trace_open("nowhere", VP_STREAMS_ALL, &streams),
		     "cannot open trace directory 'nowhere'");
}

static void test_classes(void **state)
{
	static const char text[] = "vperf-events 1\nevent a:b\nfield t integer unsigned 4 0\n";
	vp_event_classes classes;

	make();
	classes.count = 5;
	expect_no_error(vp_trace_classes(HOST, &classes));
	assert_int_equal(classes.count, 0);
	temporary_file(HOST ".events", text, sizeof(text) - 1);
	struct vp_error *error = vp_trace_classes(HOST, &classes);
	expect_no_error(error);
	assert_int_equal(classes.count, 1);
	assert_string_equal(classes.at[0].name, "a:b");
	vp_event_classes_deinit(&classes);
	temporary_file(HOST ".events", text, sizeof(text) - 5);
	expect_error(vp_trace_classes(HOST, &classes), HOST ".events");
	unlink(HOST ".events");
	assert_int_equal(mkdir(HOST ".events", 0755), 0);
	expect_error(vp_trace_classes(HOST, &classes), HOST ".events");
	assert_int_equal(rmdir(HOST ".events"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_open),
	    cmocka_unit_test(test_again),
	    cmocka_unit_test(test_trust_and_rewind),
	    cmocka_unit_test(test_trust_in_damage),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_packets),
	    cmocka_unit_test(test_long_stream),
	    cmocka_unit_test(test_no_records),
	    cmocka_unit_test(test_defined),
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_tail),
	    cmocka_unit_test(test_damage_before),
	    cmocka_unit_test(test_time_near),
	    cmocka_unit_test(test_time_near_far),
	    cmocka_unit_test(test_skip),
	    cmocka_unit_test(test_trace),
	    cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
