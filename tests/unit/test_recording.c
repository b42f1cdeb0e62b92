/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams as written are read back; damage anywhere costs the packets it hit, and is counted. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/report/report_make.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/macros.h"
#include "make_recording.h"
#include "schema/event_class.h"
#include "store/decompress.h"
#include "store/packet_zstd.h"
#include "store/trace_reader.h"

#define NAME "test_recording.rec"
#define OTHER "test_recording.other"
#define STREAM NAME "/host/cpu0"
#define DAMAGED NAME "/host/damaged"
#define COMPRESSED NAME "/host/cpu0.zst"
#define DAMAGED_COMPRESSED NAME "/host/damaged.zst"

enum { PACKETS = 5, RECORDS = 6 /* per packet */ };

/* Five packets of six idle samples each, compressed if that is a level; yields the stream's bytes.
 */
static struct vp_buffer make_stream_at(int level)
{
	struct vp_buffer bytes = {0};
	struct made made;

	made_begin(&made, NAME, 0);
	if (level)
		vp_trace_writer_compress(made.writer, level);
	for (uint64_t packet = 0; packet < PACKETS; packet++) {
		for (uint64_t i = 0; i < RECORDS; i++)
			made_idle(&made, 0, packet * RECORDS + i);
		vp_trace_flush(made.writer, vp_stream_of_pcpu(0), 0);
	}
	made_end(&made, PACKETS * RECORDS);
	expect_no_error(vp_file_read(level ? COMPRESSED : STREAM, 1 << 20, &bytes));
	return bytes;
}

static struct vp_buffer make_stream(void)
{
	return make_stream_at(0);
}

/* Reads a stream of these bytes in a file of that name; yields the number of records and how it
 * went. */
static uint64_t read_file(const char *path, const void *bytes, size_t size,
			  struct vp_stream_health *health)
{
	struct vp_stream_reader *reader;
	const struct vp_record_header *record;
	uint64_t records = 0, last = 0;

	temporary_file(path, bytes, size);
	expect_no_error(vp_stream_open(path, &reader));
	while ((record = vp_stream_next(reader))) {
		assert_int_equal(record->id, VP_ID_host_sample);
		assert_true(record->time >= last);
		last = record->time;
		records++;
	}
	*health = vp_stream_health(reader);
	vp_stream_free(reader);
	return records;
}

static uint64_t read_stream(const void *bytes, size_t size, struct vp_stream_health *health)
{
	return read_file(DAMAGED, bytes, size, health);
}

static void test_whole_stream(void **state)
{
	struct vp_buffer bytes = make_stream();
	struct vp_stream_health health;

	assert_int_equal(read_stream(bytes.bytes, bytes.size, &health), PACKETS * RECORDS);
	assert_int_equal(health.records, PACKETS * RECORDS);
	assert_int_equal(health.damaged, 0);
	assert_false(health.cut_off);
	vp_buffer_deinit(&bytes);
}

static void test_truncation_at_every_offset(void **state)
{
	struct vp_buffer bytes = make_stream();
	size_t packet = bytes.size / PACKETS;

	for (size_t size = 0; size < bytes.size; size++) {
		struct vp_stream_health health;
		uint64_t whole = size / packet;
		assert_int_equal(read_stream(bytes.bytes, size, &health), whole * RECORDS);
		assert_int_equal(health.damaged, size - whole * packet);
		assert_int_equal(health.cut_off, size % packet != 0);
	}
	vp_buffer_deinit(&bytes);
}

/* A flipped bit costs its own packet, no other, wherever it is. */
static void test_every_bit_flipped(void **state)
{
	struct vp_buffer bytes = make_stream();
	size_t packet = bytes.size / PACKETS;

	for (size_t bit = 0; bit < 8 * bytes.size; bit += 3) {
		struct vp_stream_health health;
		bytes.bytes[bit / 8] ^= (char)(1 << bit % 8);
		assert_int_equal(read_stream(bytes.bytes, bytes.size, &health),
				 (PACKETS - 1) * RECORDS);
		assert_int_equal(health.damaged, packet);
		assert_int_equal(health.damaged_at, bit / 8 / packet * packet);
		bytes.bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	vp_buffer_deinit(&bytes);
}

static void test_garbage_between_packets(void **state)
{
	struct vp_buffer bytes = make_stream(), mixed = {0};
	size_t packet = bytes.size / PACKETS;
	const uint32_t magic = VP_PACKET_MAGIC;
	struct vp_stream_health health;

	for (size_t i = 0; i < PACKETS; i++) {
		vp_buffer_append(&mixed, &magic, sizeof(magic));
		vp_buffer_string(&mixed, "what is this");
		vp_buffer_append(&mixed, bytes.bytes + i * packet, packet);
	}
	assert_int_equal(read_stream(mixed.bytes, mixed.size, &health), PACKETS * RECORDS);
	assert_int_equal(health.damaged, PACKETS * 16);
	vp_buffer_deinit(&mixed);
	vp_buffer_deinit(&bytes);
}

/* A packet that begins in the last bytes that are looked at in one go. */
static void test_packet_behind_much_garbage(void **state)
{
	struct vp_buffer bytes = make_stream();
	const size_t window = 2 * (size_t)VP_ZSTD_PACKET_MAX;

	for (size_t size = window - 5; size <= window + 1; size++) {
		struct vp_buffer mixed = {0};
		struct vp_stream_health health;
		memset(vp_buffer_extend(&mixed, size), 'x', size);
		vp_buffer_append(&mixed, bytes.bytes, bytes.size);
		assert_int_equal(read_stream(mixed.bytes, mixed.size, &health), PACKETS * RECORDS);
		assert_int_equal(health.damaged, size);
		assert_int_equal(health.damaged_at, 0);
		vp_buffer_deinit(&mixed);
	}
	vp_buffer_deinit(&bytes);
}

/* Where the compressed packets begin, and where the last one ends. */
static void find_packets(const struct vp_buffer *bytes, size_t starts[PACKETS + 1])
{
	size_t at = 0;

	for (size_t i = 0; i < PACKETS; i++) {
		struct vp_zstd_lead lead;
		memcpy(&lead, bytes->bytes + at, sizeof(lead));
		assert_true(vp_zstd_packet_size(&lead) > 0);
		starts[i] = at;
		at += vp_zstd_packet_size(&lead);
	}
	assert_int_equal(at, bytes->size);
	starts[PACKETS] = at;
}

/* Without its compression a recording is what it would have been without. */
static void test_compressed_is_the_same(void **state)
{
	struct vp_buffer plain = make_stream(), decompressed = {0};
	struct vp_buffer bytes = make_stream_at(1);
	struct vp_stream_health health;
	struct vp_recording recording;
	uint64_t damaged;

	assert_int_equal(read_file(DAMAGED_COMPRESSED, bytes.bytes, bytes.size, &health),
			 PACKETS * RECORDS);
	assert_int_equal(health.damaged, 0);
	assert_true(bytes.size < plain.size);
	unlink(DAMAGED_COMPRESSED);
	assert_int_equal(system("rm -rf " OTHER " && mkdir " OTHER), 0);
	expect_no_error(vp_recording_decompress(NAME, OTHER, &damaged));
	assert_int_equal(damaged, 0);
	expect_no_error(vp_file_read(OTHER "/host/cpu0", 1 << 20, &decompressed));
	assert_int_equal(decompressed.size, plain.size);
	assert_memory_equal(decompressed.bytes, plain.bytes, plain.size);
	expect_no_error(vp_recording_read(OTHER, &recording));
	assert_int_equal(recording.compression, 0);
	vp_recording_deinit(&recording);
	vp_buffer_deinit(&decompressed);
	vp_buffer_deinit(&plain);
	vp_buffer_deinit(&bytes);
}

/* Times that stand still, go on by little or by much, and what is no time of a stream. */
static void test_split(void **state)
{
	static const uint64_t times[] = {5, 5, 300, 1ULL << 40, 1ULL << 63, UINT64_MAX, 4};
	struct vp_host_sample records[VP_ARRAY_SIZE(times)], joined[VP_ARRAY_SIZE(times)];
	struct vp_splitter *splitter = vp_alloc(sizeof(*splitter));
	/* Of the difference that has most. */
	static const uint32_t bytes[] = {0, 0, 2, 5, 8, 8, 8};

	for (size_t n = 1; n <= VP_ARRAY_SIZE(times); n++) {
		size_t size = n * sizeof(*records);
		for (size_t i = 0; i < n; i++)
			records[i] = (struct vp_host_sample){
			    .time = times[i], .id = VP_ID_host_sample, .ip = i};
		struct vp_split split = vp_records_split(splitter, (char *)records, size, 5);
		assert_int_equal(split.count, n);
		assert_int_equal(split.bytes, bytes[n - 1]);
		assert_true(vp_records_join(split, splitter->bytes, splitter->size, 5,
					    (char *)joined, size));
		assert_memory_equal(joined, records, size);
		split.bytes = 9;
		assert_false(vp_records_join(split, splitter->bytes, splitter->size, 5,
					     (char *)joined, size));
	}
	assert_int_equal(vp_records_split(splitter, (char *)records, sizeof(records) - 1, 5).count,
			 0);
	/* Its size would be partly in the next record. */
	memcpy(records, &(struct vp_defined_record){.id = VP_ID_DEFINED, .size = 11}, 11);
	assert_int_equal(vp_records_split(splitter, (char *)records, 11, 0).count, 0);
	assert_false(vp_records_join((struct vp_split){.count = 100, .bytes = 1}, splitter->bytes,
				     50, 5, (char *)joined, 50));
	free(splitter);
}

enum { SAMPLES = 600 };

/* Samples of `processes` processes; every fifth record is another type: 24 bytes, or 32. */
static size_t make_samples(struct vp_buffer *records, uint32_t processes)
{
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint64_t time = 1000 + 70000 * i;
		if (i % 10 == 5)
			vp_buffer_append(records,
					 &(struct vp_sample_period){.time = time,
								    .id = VP_ID_sample_period,
								    .events = ~0ULL - i},
					 sizeof(struct vp_sample_period));
		else if (i % 10 == 9)
			vp_buffer_append(records,
					 &(struct vp_vcpu_in){.time = time,
							      .id = VP_ID_vcpu_in,
							      .exit_reason = i,
							      .other_tid = i % 3},
					 sizeof(struct vp_vcpu_in));
		else
			vp_buffer_append(records,
					 &(struct vp_guest_sample){.time = time,
								   .id = VP_ID_guest_sample,
								   .as_root = i % processes,
								   .ip = 0xffffffff81000000 + i * i,
								   .guest_tid = 7},
					 sizeof(struct vp_guest_sample));
	}
	return records->size;
}

/* Splits and joins the records; returns the number of templates, and the split size. */
static uint32_t templates_of(const struct vp_buffer *records, size_t *split_size)
{
	struct vp_splitter *splitter = vp_alloc(sizeof(*splitter));
	VP_AUTO_FREE char *joined = vp_alloc(records->size);
	struct vp_split split = vp_records_split(splitter, records->bytes, records->size, 5);

	assert_true(
	    vp_records_join(split, splitter->bytes, splitter->size, 5, joined, records->size));
	assert_memory_equal(joined, records->bytes, records->size);
	*split_size = splitter->size;
	free(splitter);
	return split.templates;
}

/* Samples of few processes are an index, an address and a time each. Those of many have no
 * templates, and neither have records with large ones among them, nor other records. */
static void test_split_templates(void **state)
{
	struct vp_buffer few = {0}, many = {0};
	struct vp_vcpu_out event = {.time = UINT64_MAX, .id = VP_ID_vcpu_out};
	struct vp_chain_frames chain = {.time = UINT64_MAX, .id = VP_ID_chain_frames};
	size_t size, whole;

	make_samples(&few, 4);
	/* Of 4 processes, periods, and switches from 3 threads. */
	assert_int_equal(templates_of(&few, &size), 8);
	whole = 4 * (sizeof(struct vp_guest_sample) - 8) + (sizeof(struct vp_sample_period) - 8) +
		3 * (sizeof(struct vp_vcpu_in) - 8);
	assert_int_equal(size, whole + SAMPLES * (1 + 4 + 3));
	whole = make_samples(&many, SAMPLES);
	assert_int_equal(templates_of(&many, &size), 0);
	assert_int_equal(size, whole - SAMPLES * (8 - 3));
	for (size_t i = 0; i < SAMPLES / 5 * 3 + 1; i++)
		vp_buffer_append(&few, &event, sizeof(event));
	assert_int_equal(templates_of(&few, &size), 0);
	few.size -= sizeof(event);
	assert_int_equal(templates_of(&few, &size), 9);
	vp_buffer_append(&few, &chain, sizeof(chain));
	assert_int_equal(templates_of(&few, &size), 0);
	vp_buffer_deinit(&few);
	vp_buffer_deinit(&many);
}

static bool joins(struct vp_split split, const struct vp_buffer *from, size_t size)
{
	VP_AUTO_FREE char *bytes = vp_alloc(from->size), *joined = vp_alloc(size);

	/* Both are exactly as large, so that a byte outside is found. */
	memcpy(bytes, from->bytes, from->size);
	return vp_records_join(split, bytes, from->size, 5, joined, size);
}

/* Indices, sizes and numbers of templates are not believed. */
static void test_split_templates_lie(void **state)
{
	struct vp_splitter *splitter = vp_alloc(sizeof(*splitter));
	struct vp_buffer records = {0}, bytes = {0};
	struct vp_host_sample sample = {.id = VP_ID_host_sample};
	struct vp_split split, lie;

	size_t size = make_samples(&records, 4);
	split = vp_records_split(splitter, records.bytes, size, 5);
	vp_buffer_append(&bytes, splitter->bytes, splitter->size);
	size_t indices = splitter->size - SAMPLES * 8;
	assert_true(joins(split, &bytes, size));
	for (size_t i = 0; i < SAMPLES; i += 50) {
		bytes.bytes[indices + i] = (char)split.templates;
		assert_false(joins(split, &bytes, size));
		bytes.bytes[indices + i] = splitter->bytes[indices + i];
	}
	assert_false(joins(split, &bytes, size - 8));
	assert_false(joins(split, &bytes, size + 8));
	for (uint32_t count = 1; count < 300; count++) {
		lie = split;
		lie.templates = (uint16_t)count;
		assert_true(joins(lie, &bytes, size) == (count == split.templates));
	}
	lie = split;
	lie.reserved = 1;
	assert_false(joins(lie, &bytes, size));
	bytes.size--;
	assert_false(joins(split, &bytes, size));
	bytes.size = 3;
	assert_false(joins(split, &bytes, size));
	/* One template more than there may be. */
	bytes.size = 0;
	for (size_t i = 0; i <= VP_TEMPLATES_MAX; i++)
		vp_buffer_append(&bytes, (char *)&sample + 8, sizeof(sample) - 8);
	memset(vp_buffer_extend(&bytes, 5), 0, 5);
	lie = (struct vp_split){.count = 1, .templates = VP_TEMPLATES_MAX + 1};
	assert_false(joins(lie, &bytes, sizeof(sample)));
	vp_buffer_deinit(&records);
	vp_buffer_deinit(&bytes);
	free(splitter);
}

static void test_compressed_truncated(void **state)
{
	struct vp_buffer bytes = make_stream_at(19);
	size_t starts[PACKETS + 1], whole = 0;

	find_packets(&bytes, starts);
	for (size_t size = 0; size < bytes.size; size += 13) {
		struct vp_stream_health health;
		while (starts[whole + 1] <= size)
			whole++;
		assert_int_equal(read_file(DAMAGED_COMPRESSED, bytes.bytes, size, &health),
				 whole * RECORDS);
		assert_int_equal(health.damaged, size - starts[whole]);
		assert_int_equal(health.cut_off, size != starts[whole]);
	}
	vp_buffer_deinit(&bytes);
}

/* It costs its own packet, or, behind the lead, nothing: some bits of zstd's frames say nothing. */
static void test_compressed_with_bits_flipped(void **state)
{
	struct vp_buffer bytes = make_stream_at(1);
	size_t starts[PACKETS + 1];

	find_packets(&bytes, starts);
	for (size_t bit = 0; bit < 8 * bytes.size; bit += 37) {
		struct vp_stream_health health;
		size_t packet = 0;
		while (starts[packet + 1] <= bit / 8)
			packet++;
		bytes.bytes[bit / 8] ^= (char)(1 << bit % 8);
		uint64_t records = read_file(DAMAGED_COMPRESSED, bytes.bytes, bytes.size, &health);
		if (health.damaged) {
			assert_int_equal(records, (PACKETS - 1) * RECORDS);
			assert_int_equal(health.damaged, starts[packet + 1] - starts[packet]);
			assert_int_equal(health.damaged_at, starts[packet]);
		} else {
			assert_int_equal(records, PACKETS * RECORDS);
			assert_true(bit / 8 >= starts[packet] + sizeof(struct vp_zstd_lead));
		}
		bytes.bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	vp_buffer_deinit(&bytes);
}

/* What a lead says of the frame behind it is not believed. */
static void test_compressed_lies(void **state)
{
	struct vp_buffer bytes = make_stream_at(1);
	struct vp_stream_health health;
	struct vp_zstd_lead lead;

	memcpy(&lead, bytes.bytes, sizeof(lead));
	lead.header.content_size = lead.header.packet_size = 8 * VP_PACKET_MAX;
	memcpy(bytes.bytes, &lead, sizeof(lead));
	assert_int_equal(read_file(DAMAGED_COMPRESSED, bytes.bytes, bytes.size, &health),
			 (PACKETS - 1) * RECORDS);
	lead.compressed = UINT32_MAX;
	memcpy(bytes.bytes, &lead, sizeof(lead));
	assert_int_equal(read_file(DAMAGED_COMPRESSED, bytes.bytes, bytes.size, &health),
			 (PACKETS - 1) * RECORDS);
	vp_buffer_deinit(&bytes);
}

static void test_compressed_time_near(void **state)
{
	struct vp_buffer bytes = make_stream_at(1);
	struct vp_stream_reader *reader;
	size_t starts[PACKETS + 1];
	uint64_t time;

	find_packets(&bytes, starts);
	expect_no_error(vp_stream_open(COMPRESSED, &reader));
	for (size_t packet = 0; packet < PACKETS; packet++) {
		assert_true(vp_stream_time_near(reader, starts[packet], &time));
		assert_int_equal(time, MADE_START + packet * RECORDS * MADE_PERIOD);
	}
	vp_stream_seek_tail(reader, bytes.size - starts[PACKETS - 2] + 3);
	uint64_t records = 0;
	while (vp_stream_next(reader))
		records++;
	assert_int_equal(records, 2 * RECORDS);
	vp_stream_free(reader);
	vp_buffer_deinit(&bytes);
}

static void test_tail(void **state)
{
	struct vp_buffer bytes = make_stream();
	struct vp_stream_reader *reader;
	uint64_t records = 0;

	expect_no_error(vp_stream_open(STREAM, &reader));
	vp_stream_seek_tail(reader, bytes.size / PACKETS * 2 + 7);
	while (vp_stream_next(reader))
		records++;
	assert_int_equal(records, 2 * RECORDS);
	vp_stream_seek_tail(reader, UINT64_MAX);
	while (vp_stream_next(reader))
		records++;
	assert_int_equal(records, 7 * RECORDS);
	vp_stream_free(reader);
	vp_buffer_deinit(&bytes);
}

static struct vp_error *report_on(struct vp_report *report)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options options = {.view = VP_VIEW_HOST};

	return vp_report_make(&naming, &options, report);
}

static bool is_noted(const struct vp_report *report, const char *part)
{
	vp_vec_each (&report->notes, note)
		if (strstr(*note, part))
			return true;
	return false;
}

static void test_report_says_what_is_missing(void **state)
{
	struct vp_buffer bytes = make_stream();
	struct vp_report report;

	bytes.bytes[bytes.size / 2] ^= 1;
	temporary_file(STREAM, bytes.bytes, bytes.size);
	expect_no_error(report_on(&report));
	assert_true(is_noted(&report, "is damaged"));
	assert_true(is_noted(&report, "are missing from the streams"));
	assert_int_equal(report.profile.parts.at[0].samples, (PACKETS - 1) * RECORDS);
	vp_report_deinit(&report);
	vp_buffer_deinit(&bytes);
}

static void test_lost_and_interrupted(void **state)
{
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 1);
	made_idle(&made, 0, 1);
	vp_trace_flush(made.writer, vp_stream_of_pcpu(0), 42);
	made_idle(&made, 0, 2);
	made.lost = 43;
	made_end(&made, 0);
	expect_no_error(report_on(&report));
	assert_int_equal(report.lost, 43);
	assert_true(is_noted(&report, "43 records were lost"));
	assert_true(is_noted(&report, "interrupted"));
	vp_report_deinit(&report);
}

static void test_missing_files(void **state)
{
	struct vp_report report;
	struct vp_buffer bytes = make_stream();

	vp_buffer_deinit(&bytes);
	unlink(NAME "/vms");
	expect_no_error(report_on(&report));
	assert_true(is_noted(&report, "/vms"));
	vp_report_deinit(&report);

	temporary_file(NAME "/vms", "vperf-vms 6\nvm what\n", 20);
	expect_no_error(report_on(&report));
	assert_true(is_noted(&report, "line 2"));
	vp_report_deinit(&report);

	temporary_file(NAME "/recording", "vperf-recording 6\nstart 1\n", 26);
	expect_error(report_on(&report), "period_ns");
	temporary_file(NAME "/recording", "vperf-recording 1\nstart 1\n", 26);
	expect_error(report_on(&report),
		     "is in recording format 1, this vperf reads formats 6 to 8");
	temporary_file(NAME "/recording", "vperf-recording 10\nstart 1\n", 27);
	expect_error(report_on(&report), "is in recording format 10");
	temporary_file(NAME "/recording", "vperf-record", 12);
	expect_error(report_on(&report), "is not part of a recording");
	temporary_file(NAME "/recording", "", 0);
	expect_error(report_on(&report), "/recording");
	unlink(NAME "/recording");
	expect_error(report_on(&report), "'" NAME "' is not a recording");
	unlink(NAME "/host/cpu0");
	expect_error(report_on(&report), "'" NAME "' is not a recording");
}

/* A VM's name and uuid are what somebody wrote on a command line. */
static void test_vms_are_read_back(void **state)
{
	static const char *const texts[] = {
	    "plain",
	    "",
	    "-",
	    " two words ",
	    "a\nvcpu 7 7\nvm 1 1 0 1 3 - other",
	    "100%2d",
	    "\t\r\x1b[2J\x7f",
	    "\xff",
	};
	vp_vms written = {0}, read = {0};

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		vp_vec_push(&written,
			    ((struct vp_vm){.pid = 1,
					    .name = vp_strdup(texts[i]),
					    .uuid = vp_strdup(texts[VP_ARRAY_SIZE(texts) - 1 - i]),
					    .agent = vp_strdup("no\nvcpu 9 9"),
					    .guest_events = 7 * i,
					    .guest_events_lost = i}));
	mkdir(NAME, 0755);
	expect_no_error(vp_vms_write(NAME, &written));
	expect_no_error(vp_vms_read(NAME, &read));
	assert_int_equal(read.count, written.count);
	for (size_t i = 0; i < read.count; i++) {
		assert_string_equal(read.at[i].name, written.at[i].name);
		assert_string_equal(read.at[i].uuid, written.at[i].uuid);
		assert_string_equal(read.at[i].agent, "no vcpu 9 9");
		assert_int_equal(read.at[i].guest_events, 7 * i);
		assert_int_equal(read.at[i].guest_events_lost, i);
		assert_int_equal(read.at[i].vcpus.count, 0);
	}
	vp_vms_deinit(&written);
	vp_vms_deinit(&read);
}

static void expect_maps(const vp_vms *vms, size_t vm, const char *expected)
{
	char *path = vp_recording_maps_path("d", vms, &vms->at[vm]);

	assert_string_equal(path, expected);
	free(path);
}

/* What is written of one VM is not written over by another, nor taken for its. */
static void test_vms_have_files_of_their_own(void **state)
{
	struct vp_vm all[] = {{.pid = 1, .name = "a b"},
			      {.pid = 2, .name = "a_b"},
			      {.pid = 3, .name = "a\nb"},
			      {.pid = 4, .name = "a"},
			      {.pid = 5, .name = "a b"}};
	vp_vms vms = {.at = all, .count = VP_ARRAY_SIZE(all)};

	expect_maps(&vms, 0, "d/guest-a_b.maps");
	expect_maps(&vms, 1, "d/guest-a_b-2.maps");
	expect_maps(&vms, 2, "d/guest-a_b-3.maps");
	expect_maps(&vms, 3, "d/guest-a.maps");
	expect_maps(&vms, 4, "d/guest-a_b-5.maps");
	VP_AUTO_FREE char *agent = vp_recording_agent_path("d", &vms, &vms.at[1]);
	assert_string_equal(agent, "d/agent-a_b-2.maps");
}

/* Nor where one is called as another one's file is, or has the number of its process. */
static void test_names_like_files(void **state)
{
	char longest[1000];
	struct vp_vm all[] = {{.pid = 1, .name = "x"},           {.pid = 2, .name = "x"},
			      {.pid = 3, .name = "x-2"},         {.pid = 1, .nth = 1, .name = "x"},
			      {.pid = 1, .nth = 2, .name = "x"}, {.pid = 6, .name = "x.maps"},
			      {.pid = 7, .name = "../y"},        {.pid = 8, .name = longest},
			      {.pid = 9, .name = longest}};
	vp_vms vms = {.at = all, .count = VP_ARRAY_SIZE(all)};

	memset(longest, 'n', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	expect_maps(&vms, 0, "d/guest-x.maps");
	expect_maps(&vms, 1, "d/guest-x-2.maps");
	expect_maps(&vms, 2, "d/guest-x-2-3.maps");
	expect_maps(&vms, 3, "d/guest-x-1.maps");
	expect_maps(&vms, 4, "d/guest-x-1-2.maps");
	expect_maps(&vms, 5, "d/guest-x_maps.maps");
	expect_maps(&vms, 6, "d/guest-.._y.maps");
	VP_AUTO_FREE char *eighth = vp_vm_part(&vms, &all[7]);
	VP_AUTO_FREE char *ninth = vp_vm_part(&vms, &all[8]);
	assert_string_not_equal(eighth, ninth);
	assert_true(strlen(ninth) < 250); /* with what is behind it, a name of a file */
}

/* A process's number that was used again is another VM's. */
static void test_numbers_of_vms(void **state)
{
	vp_vms written = {0}, read = {0};

	for (uint32_t nth = 0; nth < 3; nth++) {
		struct vp_vm vm = {.pid = 77, .nth = nth, .started = 1000 + nth};
		vm.name = vp_strdup("x");
		vm.uuid = vp_strdup("");
		vm.start = 10 * nth + 1;
		vm.end = nth < 2 ? 10 * nth + 9 : 0;
		vp_vm_vcpu(&vm, 0)->tid = 78 + nth % 2;
		vp_vec_push(&written, vm);
	}
	mkdir(NAME, 0755);
	expect_no_error(vp_vms_write(NAME, &written));
	expect_no_error(vp_vms_read(NAME, &read));
	assert_int_equal(read.count, 3);
	for (uint32_t nth = 0; nth < 3; nth++) {
		const struct vp_vm *vm = vp_vms_find(&read, 77 + nth * (1 << VP_PID_BITS));
		assert_ptr_equal(vm, &read.at[nth]);
		assert_int_equal(vm->pid, 77);
		assert_int_equal(vm->nth, nth);
		assert_int_equal(vm->started, 1000 + nth);
		assert_int_equal(vm->start, 10 * nth + 1);
	}
	assert_ptr_equal(vp_vms_latest(&read, 77), &read.at[2]);
	assert_ptr_equal(vp_vms_of_thread(&read, 77, 79), &read.at[2]); /* that one has ended */
	read.at[2].end = 99;
	assert_ptr_equal(vp_vms_of_thread(&read, 77, 79), &read.at[1]);
	assert_ptr_equal(vp_vms_of_thread(&read, 77, 78), &read.at[2]);
	assert_ptr_equal(vp_vms_of_thread(&read, 77, 99), &read.at[2]);
	assert_null(vp_vms_find(&read, 78));
	assert_null(vp_vms_of_thread(&read, 78, 78));
	vp_vms_deinit(&written);
	vp_vms_deinit(&read);
	/* A number that is not its process's is damage. */
	static const char wrong[] = "vperf-vms 6\nvm 4194382 77 0 1 0 1 0 - x\n";
	temporary_file(NAME "/vms", wrong, strlen(wrong));
	expect_error(vp_vms_read(NAME, &read), "line 2");
}

static void test_no_streams(void **state)
{
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 0);
	made_end(&made, 1);
	expect_no_error(report_on(&report));
	assert_int_equal(report.profile.parts.at[0].samples, 0);
	vp_report_deinit(&report);
}

/* What cannot be written is lost and said so, with the reason; what comes later is written when it
 * can be. */
static void test_stream_cannot_be_created(void **state)
{
	struct vp_stream_health health;
	struct vp_buffer bytes = {0};
	struct made made;

	made_begin(&made, NAME, 0);
	temporary_file(STREAM, "", 0);
	made_idle(&made, 0, 0);
	vp_trace_flush(made.writer, vp_stream_of_pcpu(0), 0);
	assert_int_equal(vp_trace_take_failure(made.writer), EEXIST);
	unlink(STREAM);
	made_idle(&made, 0, 1);
	vp_trace_flush(made.writer, vp_stream_of_pcpu(0), 0);
	assert_int_equal(vp_trace_take_failure(made.writer), 0);
	made_end(&made, 2);
	expect_no_error(vp_file_read(STREAM, 1 << 20, &bytes));
	assert_int_equal(read_stream(bytes.bytes, bytes.size, &health), 1);
	assert_int_equal(health.lost, 1);
	vp_buffer_deinit(&bytes);
}

/* CTF 1.8, appendix C.1: a record or field of such a name makes the metadata unreadable. */
static void test_names_are_no_keywords(void **state)
{
	static const char *const keywords[] = {
	    "align",   "callsite", "char",    "clock",  "const",    "double",     "enum",
	    "env",     "event",    "float",   "int",    "integer",  "long",       "short",
	    "signed",  "stream",   "string",  "struct", "trace",    "void",       "typealias",
	    "typedef", "unsigned", "variant", "_Bool",  "_Complex", "_Imaginary", "floating_point"};

	for (uint32_t id = 0; id <= VP_ID_MAX; id++) {
		const struct vp_record_type *type = vp_record_type(id);
		for (size_t i = 0; type && i < type->n_fields; i++)
			for (size_t j = 0; j < VP_ARRAY_SIZE(keywords); j++)
				assert_string_not_equal(type->fields[i].name, keywords[j]);
	}
}

static void expect_same_about(const struct vp_recording *read, const struct vp_recording *written)
{
	assert_int_equal(read->account_grade, written->account_grade);
	assert_string_equal(read->tool, written->tool);
	assert_string_equal(read->hostname, written->hostname);
	assert_string_equal(read->kernel, written->kernel);
	assert_string_equal(read->trigger, written->trigger);
	assert_string_equal(read->instruments, written->instruments);
	assert_string_equal(read->command, written->command);
	assert_string_equal(read->note, written->note);
	assert_string_equal(read->imported, written->imported);
	assert_string_equal(read->guest_sampling,
			    written->guests.method ? "" : written->guest_sampling);
	assert_string_equal(read->mode, written->mode);
	assert_string_equal(read->cause, written->snapshot_cause.kind ? "" : written->cause);
	assert_memory_equal(&read->snapshot_cause, &written->snapshot_cause,
			    sizeof(read->snapshot_cause));
	assert_memory_equal(&read->guests, &written->guests, sizeof(read->guests));
	assert_int_equal(read->selected, written->selected);
	assert_int_equal(read->events_counted, written->events_counted);
	assert_int_equal(read->events_sampled, written->events_sampled);
	assert_int_equal(read->begun, written->begun);
	assert_int_equal(read->period_ns, written->period_ns);
	assert_int_equal(read->by_time, written->by_time);
	assert_int_equal(read->weighting, written->weighting);
	assert_int_equal(read->events,
			 written->weighting == VP_WEIGHTING_EVENTS ? written->events : 0);
	assert_int_equal(read->chains, written->chains);
	assert_int_equal(read->compression, written->compression);
	assert_int_equal(read->pcpus, written->pcpus);
	assert_int_equal(read->hypervisor_pcpus, written->hypervisor_pcpus);
	assert_int_equal(vp_recording_shared_pcpus(read), written->hypervisor_pcpus);
	assert_int_equal(read->start, written->start);
	assert_int_equal(read->end, written->end);
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++) {
		assert_int_equal(read->records[kind], written->records[kind]);
		assert_int_equal(read->lost[kind], written->lost[kind]);
	}
}

/* All that is known of a recording is read back, whatever the weighting of samples. */
static void test_about_is_read_back(void **state)
{
	struct vp_recording written = {.tool = "0.9",
				       .hostname = "here",
				       .kernel = "6.1-x",
				       .trigger = "cycles",
				       .instruments = "profile account",
				       .command = "make -j2",
				       .note = "no stacks",
				       .imported = "perf.data",
				       .guest_sampling = "at exits",
				       .mode = "flight",
				       .cause = "asked for",
				       .begun = 11,
				       .period_ns = 12,
				       .events = 13,
				       .compression = 14,
				       .pcpus = 15,
				       .hypervisor_pcpus = 18,
				       .start = 16,
				       .end = 17};
	static const uint64_t units[] = {
	    [VP_WEIGHTING_TICKS] = 12, [VP_WEIGHTING_TIME] = 1, [VP_WEIGHTING_EVENTS] = 0};
	struct vp_recording read;

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++) {
		written.records[kind] = 100 + (uint64_t)kind;
		written.lost[kind] = 200 + (uint64_t)kind;
	}
	written.records[1] = 0;
	assert_int_equal(system("rm -rf about && mkdir about"), 0);
	for (int weighting = 0; weighting < 3; weighting++) {
		written.weighting = (enum vp_weighting)weighting;
		written.by_time = weighting % 2;
		written.account_grade = (enum vp_account_grade)weighting;
		written.chains = !written.by_time;
		expect_no_error(vp_recording_write("about", &written));
		expect_no_error(vp_recording_read("about", &read));
		expect_same_about(&read, &written);
		assert_int_equal(vp_recording_unit_ns(&read), units[weighting]);
		vp_recording_deinit(&read);
	}
	/* Numbers instead of sentences. */
	written.selected = true;
	written.events_counted = 21;
	written.events_sampled = 20;
	written.guests = (struct vp_guest_sampling){VP_GUEST_SAMPLING_CONTEXTS,
						    VP_GUEST_SAMPLING_COUNTERS,
						    3,
						    4,
						    5,
						    6,
						    7,
						    8,
						    9,
						    10,
						    11,
						    12,
						    13,
						    14,
						    15};
	written.snapshot_cause = (struct vp_snapshot_cause){
	    VP_CAUSE_TRIGGER, VP_CONDITION_EXIT, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, "a thief  \n%20"};
	expect_no_error(vp_recording_write("about", &written));
	expect_no_error(vp_recording_read("about", &read));
	expect_same_about(&read, &written);
	vp_recording_deinit(&read);
}

/* The recording's date is that of its trace: what is no clock has none. */
static void test_date(void **state)
{
	static const struct {
		const char *clock;
		int64_t expected;
	} cases[] = {{"offset_s = 1700000000;\n\toffset = 123456789;", 1700000000123456789},
		     {"offset_s = 0;\n\toffset = 999999999;", 999999999},
		     {"offset_s = 9223372036;\n\toffset = 0;", 9223372036000000000},
		     {"offset_s = 9223372037;\n\toffset = 0;", 0},
		     {"offset_s = 5;\n\toffset = 1000000000;", 0},
		     {"offset_s = -5;\n\toffset = 0;", 0},
		     {"offset_s = 5;\n\toffset = -1;", 0},
		     {"frequency = 5;", 0}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_recording read;
		struct made made;
		made_begin(&made, NAME, 0);
		made_end(&made, 1);
		VP_AUTO_FREE char *metadata = vp_format(
		    "/* CTF 1.8 */\nclock {\n\tname = monotonic;\n\t%s\n};\n", cases[i].clock);
		temporary_file(NAME "/host/metadata", metadata, strlen(metadata));
		expect_no_error(vp_recording_read(NAME, &read));
		assert_int_equal(read.realtime_offset, cases[i].expected);
		vp_recording_deinit(&read);
	}
}

/* A domain of Xen: its scheduler, and where its vCPUs may run. */
static void test_domain(void **state)
{
	vp_vms vms = {0}, read = {0};

	vp_vec_push(&vms, ((struct vp_vm){.pid = 6,
					  .has_domain = true,
					  .domain = 5,
					  .scheduler = vp_strdup("credit2"),
					  .name = vp_strdup("web"),
					  .uuid = vp_strdup(""),
					  .agent = vp_strdup(""),
					  .memory = vp_strdup("")}));
	vp_vm_vcpu(&vms.at[0], 3)->pcpus = vp_strdup("0-1,7");
	assert_int_equal(system("rm -rf about && mkdir about"), 0);
	expect_no_error(vp_vms_write("about", &vms));
	expect_no_error(vp_vms_read("about", &read));
	assert_int_equal(read.count, 1);
	assert_true(read.at[0].has_domain);
	assert_int_equal(read.at[0].domain, 5);
	assert_string_equal(read.at[0].scheduler, "credit2");
	assert_string_equal(vp_vm_vcpu(&read.at[0], 3)->pcpus, "0-1,7");
	vp_vms_deinit(&vms);
	vp_vms_deinit(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_about_is_read_back),
	    cmocka_unit_test(test_date),
	    cmocka_unit_test(test_names_are_no_keywords),
	    cmocka_unit_test(test_whole_stream),
	    cmocka_unit_test(test_truncation_at_every_offset),
	    cmocka_unit_test(test_every_bit_flipped),
	    cmocka_unit_test(test_garbage_between_packets),
	    cmocka_unit_test(test_compressed_is_the_same),
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_split_templates),
	    cmocka_unit_test(test_split_templates_lie),
	    cmocka_unit_test(test_compressed_truncated),
	    cmocka_unit_test(test_compressed_with_bits_flipped),
	    cmocka_unit_test(test_compressed_lies),
	    cmocka_unit_test(test_compressed_time_near),
	    cmocka_unit_test(test_tail),
	    cmocka_unit_test(test_report_says_what_is_missing),
	    cmocka_unit_test(test_lost_and_interrupted),
	    cmocka_unit_test(test_missing_files),
	    cmocka_unit_test(test_vms_are_read_back),
	    cmocka_unit_test(test_names_like_files),
	    cmocka_unit_test(test_numbers_of_vms),
	    cmocka_unit_test(test_vms_have_files_of_their_own),
	    cmocka_unit_test(test_no_streams),
	    cmocka_unit_test(test_stream_cannot_be_created),
	    cmocka_unit_test(test_packet_behind_much_garbage),
	    cmocka_unit_test(test_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
