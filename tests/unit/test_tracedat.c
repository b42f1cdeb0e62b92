/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of trace-cmd: what is written is read again; clocks are converted; damage is told. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "export/tracedat_file.h"
#include "import/tracedat/tracedat.h"

#define NAME "test_tracedat.dat"

static const char format[] = "name: kvm_entry\nID: 7\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n\n"
			     "print fmt: \"vcpu %u\", REC->vcpu_id\n";

enum { EVENTS = 2000, ID = 11, TIME_SHIFT = 12, GUEST = 13, CLOCK_RATE = 14 };
#define BEGIN 1000000000000ULL

struct entry {
	uint16_t type, flags;
	uint32_t tid, vcpu;
};

static uint64_t time_of(uint64_t event)
{
	/* Now and then longer than what fits beside an event. */
	return BEGIN + event * 100 + event / 500 * (1ULL << 33);
}

static void write_file(struct vp_buffer *options)
{
	struct vp_dat_head head = {.n_systems = 1, .options = *options};
	vp_dat_cpus cpus = {0};
	struct vp_dat_pages pages;
	const uint32_t count = 1;
	const uint64_t size = sizeof(format) - 1;

	vp_buffer_append(&head.systems, "kvm", 4);
	vp_buffer_append(&head.systems, &count, sizeof(count));
	vp_buffer_append(&head.systems, &size, sizeof(size));
	vp_buffer_append(&head.systems, format, size);
	vp_buffer_string(&head.commands, "77 CPU 0/KVM\n");
	expect_no_error(vp_dat_pages_init(&pages, "."));
	vp_vec_push(&cpus, (struct vp_dat_cpu){0});
	vp_vec_push(&cpus, (struct vp_dat_cpu){0});
	for (uint64_t i = 0; i < EVENTS; i++) {
		const struct entry entry = {7, 0, 77, (uint32_t)i};
		assert_true(
		    vp_dat_cpu_put(&cpus.at[i % 2], &pages, time_of(i), &entry, sizeof(entry)));
	}
	char longest[VP_DAT_PAGE] = {0};
	assert_false(
	    vp_dat_cpu_put(&cpus.at[0], &pages, time_of(EVENTS), longest, sizeof(longest)));
	unlink(NAME);
	expect_no_error(vp_dat_write(NAME, &head, &cpus, &pages));
	expect_error(vp_dat_write(NAME, &head, &cpus, &pages), "cannot write '" NAME "'");
	vp_vec_each (&cpus, cpu)
		vp_dat_cpu_deinit(cpu);
	vp_vec_deinit(&cpus);
	vp_dat_pages_deinit(&pages);
	vp_buffer_deinit(&head.systems);
	vp_buffer_deinit(&head.commands);
	vp_buffer_deinit(options);
}

static void read_file(struct vp_buffer *bytes, struct vp_tracedat *file)
{
	expect_no_error(vp_file_read(NAME, 1 << 24, bytes));
	expect_no_error(vp_tracedat_open(NAME, (struct vp_slice){bytes->bytes, bytes->size}, file));
}

/* The time of a CPU's first event, and how many there are. */
static uint64_t count_events(struct vp_tracedat *file, uint32_t cpu, uint64_t *ret)
{
	struct vp_tracedat_walk walk = {.cpu = cpu};
	uint64_t time, first = 0, count = 0;
	struct vp_slice raw;
	uint32_t class;

	while (vp_tracedat_next(file, &walk, &class, &time, &raw))
		first = count++ ? first : time;
	assert_int_equal(walk.missed + walk.malformed, 0);
	*ret = count;
	return first;
}

static void test_events(void **state)
{
	struct vp_buffer options = {0}, bytes = {0};
	struct vp_tracedat file;
	uint64_t time, next = 0;
	struct vp_slice raw;
	uint32_t class;

	write_file(&options);
	read_file(&bytes, &file);
	assert_int_equal(file.cpus, 2);
	assert_true(vp_slice_is(file.commands, "77 CPU 0/KVM\n"));
	struct vp_tracedat_walk walk = {.cpu = 1};
	for (next = 1; vp_tracedat_next(&file, &walk, &class, &time, &raw); next += 2) {
		struct entry entry;
		assert_int_equal(raw.size, sizeof(entry));
		memcpy(&entry, raw.bytes, sizeof(entry));
		assert_int_equal(entry.vcpu, next);
		assert_int_equal(time, time_of(next));
		assert_string_equal(file.classes.at[class].name, "kvm:kvm_entry");
	}
	assert_int_equal(next, EVENTS + 1);
	assert_int_equal(file.classes.count, 1);
	assert_string_equal(file.classes.at[0].fields.at[1].name, "vcpu_id");
	vp_tracedat_close(&file);
	vp_buffer_deinit(&bytes);
}

static void put_u64(struct vp_buffer *out, uint64_t number)
{
	vp_buffer_append(out, &number, sizeof(number));
}

static void put_u32(struct vp_buffer *out, uint32_t number)
{
	vp_buffer_append(out, &number, sizeof(number));
}

static void test_guests(void **state)
{
	struct vp_buffer options = {0}, guest = {0}, bytes = {0};
	const uint64_t id = 0x1234;
	struct vp_tracedat file;

	vp_buffer_append(&guest, "web", 4);
	put_u64(&guest, 99);
	put_u32(&guest, 2);
	put_u32(&guest, 0);
	put_u32(&guest, 501);
	put_u32(&guest, 1);
	put_u32(&guest, UINT32_MAX); /* there is none */
	vp_dat_option(&options, ID, &id, sizeof(id));
	vp_dat_option(&options, GUEST, guest.bytes, guest.size);
	write_file(&options);
	read_file(&bytes, &file);
	assert_int_equal(file.id, id);
	assert_int_equal(file.guests.count, 1);
	assert_true(vp_slice_is(file.guests.at[0].name, "web"));
	assert_int_equal(file.guests.at[0].id, 99);
	assert_int_equal(file.guests.at[0].threads.count, 1);
	assert_int_equal(file.guests.at[0].threads.at[0].tid, 501);
	vp_tracedat_close(&file);
	vp_buffer_deinit(&bytes);
	vp_buffer_deinit(&guest);
}

/* CPU 0 has one offset, CPU 1 two, of a clock that runs half as fast. */
static void test_clocks(void **state)
{
	struct vp_buffer options = {0}, shifts = {0}, rate = {0}, bytes = {0};
	struct vp_tracedat file;
	uint64_t count;

	put_u64(&shifts, 1);
	put_u32(&shifts, 1); /* between them, in proportion */
	put_u32(&shifts, 2);
	put_u32(&shifts, 1);
	put_u64(&shifts, BEGIN);
	put_u64(&shifts, (uint64_t)-1000);
	put_u64(&shifts, 1);
	put_u32(&shifts, 2);
	put_u64(&shifts, BEGIN - 900);
	put_u64(&shifts, BEGIN + 1100);
	put_u64(&shifts, 2000);
	put_u64(&shifts, 4001);
	put_u64(&shifts, 4);
	put_u64(&shifts, 4);
	put_u64(&shifts, 0);
	put_u64(&shifts, 1);
	put_u64(&shifts, 1);
	vp_dat_option(&options, TIME_SHIFT, shifts.bytes, shifts.size);
	/* 5 ns for each 4 ticks. */
	put_u32(&rate, 5);
	put_u32(&rate, 2);
	put_u64(&rate, 0);
	vp_dat_option(&options, CLOCK_RATE, rate.bytes, rate.size);
	write_file(&options);
	read_file(&bytes, &file);
	assert_int_equal(count_events(&file, 0, &count), (BEGIN - 1000) * 5 / 4);
	assert_int_equal(count, EVENTS / 2);
	/* The first is at BEGIN + 100: in the middle of its two, rounded as trace-cmd does. */
	assert_int_equal(count_events(&file, 1, &count), ((BEGIN + 100) * 2 + 3001) * 5 / 4);
	vp_tracedat_close(&file);
	vp_buffer_deinit(&bytes);
	vp_buffer_deinit(&shifts);
	vp_buffer_deinit(&rate);
}

static void expect_refused(const void *bytes, size_t size, const char *why)
{
	struct vp_tracedat file;

	expect_error(vp_tracedat_open("x.dat", (struct vp_slice){bytes, size}, &file), why);
}

static void test_damage(void **state)
{
	struct vp_buffer options = {0}, bytes = {0};
	struct vp_tracedat file;

	write_file(&options);
	read_file(&bytes, &file);
	vp_tracedat_close(&file);
	for (size_t size = 0; size < bytes.size; size += size < VP_DAT_PAGE ? 1 : 977) {
		void *part = malloc(size + 1); /* so that a byte too many is seen */
		memcpy(part, bytes.bytes, size);
		part = realloc(part, size ? size : 1);
		expect_refused(part, size, "'x.dat' is ");
		free(part);
	}
	expect_refused("PERFILE2........", 16, "is not a trace.dat file");
	expect_refused("\x17\x08\x44tracing8\0\0\x08", 14, "trace-cmd convert");
	expect_refused("\x17\x08\x44tracing7\0\0\x08", 14, "is damaged: the size of a page");
	expect_refused("\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zlib\0001\0\x01\0\0\0\0\0\0\0", 33,
		       "other than zstd");
	expect_refused("\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0\x01\0\0\0\0\x01\0\0", 32,
		       "is shorter than");
	expect_refused("\x17\x08\x44tracing6\0\x01\x08\0\0\0\0", 18, "big-endian");
	/* An event without a format is none. */
	char *text = memmem(bytes.bytes, bytes.size, "ID: 7", 5);
	assert_non_null(text);
	text[4] = '8';
	expect_no_error(vp_tracedat_open(NAME, (struct vp_slice){bytes.bytes, bytes.size}, &file));
	struct vp_tracedat_walk walk = {.cpu = 0};
	struct vp_slice raw;
	uint32_t class;
	uint64_t time;
	assert_false(vp_tracedat_next(&file, &walk, &class, &time, &raw));
	assert_int_equal(walk.malformed, EVENTS / 2);
	vp_tracedat_close(&file);
	vp_buffer_deinit(&bytes);
}

/* Instances whose clocks differ are not one trace; those of the scheduler's clock are. */
static void test_same_clock(void **state)
{
	static const struct {
		const char *one, *other;
		bool same;
	} cases[] = {
	    {"", "local", true},         {"local", "global", true}, {"global", "perf", true},
	    {"perf", "", true},          {"mono", "mono", true},    {"mono", "boot", false},
	    {"mono", "mono_raw", false}, {"local", "mono", false},  {"mono", "local", false},
	    {"x86-tsc", "", false},      {"", "counter", false}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_tracedat_buffer buffers[] = {
		    {.clock = {"odd", 3}},
		    {.clock = {cases[i].one, strlen(cases[i].one)}},
		    {.clock = {cases[i].other, strlen(cases[i].other)}}};
		struct vp_tracedat file = {.buffers = {.at = buffers, .count = 3}};
		if (vp_tracedat_same_clock(&file, 1, 2) != cases[i].same)
			fail_msg("'%s', '%s'", cases[i].one, cases[i].other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_events),     cmocka_unit_test(test_guests),
	    cmocka_unit_test(test_clocks),     cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_same_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
