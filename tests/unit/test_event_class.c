/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event classes that a recording defines, in traces of the host and of guests: written, read back,
 * and read by babeltrace2 if it is there.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "schema/trace_event.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

#define NAME "test_event_class.rec"
#define NAME_OF_HOST NAME "/host"
#define NAME_OF_GUEST NAME "/guest-a"

enum { FIELDS = 8 };

static const struct vp_event_field fields[FIELDS] = {
    {.name = "prev_pid", .shape = VP_EVENT_INTEGER, .size = 4, .is_signed = true},
    {.name = "size", .shape = VP_EVENT_INTEGER, .size = 8, .is_hex = true},
    {.name = "comm", .shape = VP_EVENT_ARRAY, .size = 1, .is_text = true, .count = 16},
    {.name = "args", .shape = VP_EVENT_SEQUENCE, .size = 8, .is_hex = true},
    {.name = "event", .shape = VP_EVENT_STRING}, /* a word of TSDL's */
    {.name = "a-b", .shape = VP_EVENT_INTEGER, .size = 1},
    {.name = "a_b", .shape = VP_EVENT_INTEGER, .size = 2, .is_signed = true},
    {.name = "text", .shape = VP_EVENT_SEQUENCE, .size = 1, .is_text = true},
};

static vp_event_classes make_classes(void)
{
	vp_event_classes classes = {0};
	struct vp_event_class *event;

	expect_no_error(vp_event_classes_add(&classes, "sched:sched_switch", &event));
	for (int i = 0; i < FIELDS; i++)
		expect_no_error(vp_event_class_add_field(event, &fields[i]));
	expect_no_error(vp_event_classes_add(&classes, "empty", &event));
	assert_int_equal(classes.at[0].id, VP_ID_DEFINED);
	return classes;
}

static const uint64_t args[] = {1, 0xfeed, 3};

/* A record of the first class; `text` is how long it is. */
static void put_record(const vp_event_classes *classes, uint64_t time, const char *text,
		       struct vp_buffer *out)
{
	const struct vp_event_field *field = classes->at[0].fields.at;
	size_t begin = out->size;

	vp_event_begin(out, &classes->at[0], time);
	vp_event_put_integer(out, &field[0], (uint64_t)-7);
	vp_event_put_integer(out, &field[1], 0xffffffff81000000);
	vp_event_put_bytes(out, &field[2], "kworker/0:1", 11);
	vp_event_put_bytes(out, &field[3], args, sizeof(args));
	vp_event_put_string(out, "he said \"no\"");
	vp_event_put_integer(out, &field[5], 200);
	vp_event_put_integer(out, &field[6], (uint64_t)-200);
	vp_event_put_bytes(out, &field[7], text, strlen(text));
	expect_no_error(vp_event_end(out, begin));
}

static void write_trace(struct vp_trace_writer *writer, const vp_event_classes *classes,
			uint32_t cpu)
{
	const struct vp_stream_id id = {VP_STREAM_TRACE, cpu};
	struct vp_buffer records = {0};

	expect_no_error(vp_trace_writer_define(writer, classes));
	put_record(classes, 2000, "", &records);
	vp_trace_append(writer, id, records.bytes);
	size_t run = records.size;
	/* These two came late: they are raised to the one before. */
	put_record(classes, 1000, "one", &records);
	put_record(classes, 1500, "a longer one", &records);
	vp_event_begin(&records, &classes->at[1], 3000);
	expect_no_error(vp_event_end(&records, records.size - sizeof(struct vp_defined_record)));
	struct vp_run rest = {.bytes = records.bytes + run,
			      .size = records.size - run,
			      .n = 3,
			      .first = 1000,
			      .last = 3000};
	vp_trace_append_run(writer, id, &rest);
	vp_trace_flush(writer, id, 9);
	vp_trace_writer_free(writer);
	vp_buffer_deinit(&records);
}

static vp_event_classes make_recording(void)
{
	vp_event_classes classes = make_classes();
	struct vp_trace_writer *writer;

	(void)!system("rm -rf " NAME);
	mkdir(NAME, 0755);
	expect_no_error(vp_trace_writer_create_host(NAME, "h", &writer));
	write_trace(writer, &classes, 3);
	expect_no_error(vp_trace_writer_create_guest(NAME, "guest-a", "g", &writer));
	write_trace(writer, &classes, 0);
	return classes;
}

static void expect_values(const struct vp_event_class *event,
			  const struct vp_defined_record *record, const char *text)
{
	struct vp_cursor values = vp_event_fields(record);
	struct vp_event_value value[FIELDS];

	for (int i = 0; i < FIELDS; i++)
		assert_true(vp_event_next_value(&values, &event->fields.at[i], &value[i]));
	assert_int_equal(vp_cursor_left(&values), 0);
	assert_int_equal((int64_t)value[0].number, -7);
	assert_int_equal(value[1].number, 0xffffffff81000000);
	assert_int_equal(value[2].bytes.size, 16);
	assert_string_equal(value[2].bytes.bytes, "kworker/0:1");
	assert_int_equal(value[3].bytes.size, sizeof(args));
	assert_memory_equal(value[3].bytes.bytes, args, sizeof(args));
	assert_true(vp_slice_is(value[4].bytes, "he said \"no\""));
	assert_int_equal(value[5].number, 200);
	assert_int_equal((int64_t)value[6].number, -200);
	assert_true(vp_slice_is(value[7].bytes, text));
}

static void expect_trace(const char *path, uint32_t cpu)
{
	static const char *const texts[] = {"", "one", "a longer one"};
	vp_event_classes classes;
	vp_stream_readers streams = {0};

	expect_no_error(vp_trace_classes(path, &classes));
	assert_int_equal(classes.count, 2);
	assert_string_equal(classes.at[0].name, "sched:sched_switch");
	expect_no_error(vp_trace_open(path, VP_STREAMS_ALL, &streams));
	assert_int_equal(streams.count, 1);
	assert_int_equal(vp_stream_class(streams.at[0]), VP_STREAM_TRACE);
	assert_int_equal(vp_stream_cpu(streams.at[0]), cpu);
	for (int i = 0; i < 3; i++) {
		const struct vp_defined_record *record =
		    (const void *)vp_stream_next(streams.at[0]);
		assert_non_null(record);
		assert_int_equal(record->time, 2000);
		expect_values(vp_event_classes_find(&classes, record->id), record, texts[i]);
	}
	assert_string_equal(
	    vp_event_classes_find(&classes, vp_stream_next(streams.at[0])->id)->name, "empty");
	assert_null(vp_stream_next(streams.at[0]));
	struct vp_stream_health health = vp_stream_health(streams.at[0]);
	assert_int_equal(health.records, 4);
	assert_int_equal(health.lost, 9);
	assert_int_equal(health.damaged, 0);
	vp_trace_close(&streams);
	vp_event_classes_deinit(&classes);
}

static void test_round_trip(void **state)
{
	vp_event_classes classes = make_recording();

	expect_trace(NAME_OF_HOST, 3);
	expect_trace(NAME_OF_GUEST, 0);
	vp_event_classes_deinit(&classes);
}

/* The text that is behind `key` in a machine's metadata, up to the end of the line. */
static char *metadata_value(const char *path, const char *key)
{
	struct vp_buffer text = {0};

	expect_no_error(vp_file_read(path, 1 << 20, &text));
	const char *found = strstr(vp_buffer_text(&text), key);
	assert_non_null(found);
	char *value = vp_strndup(found, strcspn(found, "\n"));
	vp_buffer_deinit(&text);
	return value;
}

static void test_clocks_are_each_machines_own(void **state)
{
	vp_event_classes classes = make_recording();
	VP_AUTO_FREE char *host = metadata_value(NAME_OF_HOST "/metadata", "uuid = ");
	VP_AUTO_FREE char *guest = metadata_value(NAME_OF_GUEST "/metadata", "uuid = ");

	assert_string_not_equal(host, guest);
	vp_event_classes_deinit(&classes);
}

static unsigned count_lines(const char *text, const char *part)
{
	unsigned count = 0;

	for (; (text = strstr(text, part)); text++)
		count++;
	return count;
}

/* Both machines at once, in order of time, with every value as it was. */
static void test_babeltrace(void **state)
{
	vp_event_classes classes = make_recording();
	struct vp_buffer out = {0};

	vp_event_classes_deinit(&classes);
	if (system("command -v babeltrace2 > /dev/null"))
		skip();
	assert_int_equal(system("babeltrace2 " NAME " > " NAME ".txt 2> " NAME ".err"), 0);
	expect_no_error(vp_file_read(NAME ".txt", 1 << 20, &out));
	const char *text = vp_buffer_text(&out);
	assert_int_equal(count_lines(text, " sched:sched_switch: "), 6);
	assert_int_equal(count_lines(text, " empty: "), 2);
	assert_int_equal(count_lines(text, "prev_pid = -7, size = 0xFFFFFFFF81000000, "
					   "comm = \"kworker/0:1\""),
			 6);
	assert_int_equal(count_lines(text, "[1] = 0xFEED"), 6);
	assert_int_equal(count_lines(text, "event = \"he said \\\"no\\\"\""), 6);
	assert_int_equal(count_lines(text, "a_b_5 = 200, a_b = -200"), 6);
	assert_int_equal(count_lines(text, "text = \"a longer one\""), 2);
	vp_buffer_deinit(&out);
}

static void test_names_and_sizes(void **state)
{
	struct vp_event_field field = {.name = "a", .size = 3};
	vp_event_classes classes = {0};
	struct vp_event_class *event;
	struct vp_buffer out = {0};

	expect_error(vp_event_classes_add(&classes, "two words", &event),
		     "'two words' is not a valid");
	expect_error(vp_event_classes_add(&classes, "a\"b", &event), "is not a valid");
	expect_error(vp_event_classes_add(&classes, "", &event), "is not a valid");
	expect_no_error(vp_event_classes_add(&classes, "e", &event));
	expect_error(vp_event_class_add_field(event, &field), "not 3");
	field.size = 1;
	field.name = "a\nb";
	expect_error(vp_event_class_add_field(event, &field), "is not a valid");
	field.name = "a";
	while (event->fields.count < VP_EVENT_FIELDS_MAX)
		expect_no_error(vp_event_class_add_field(event, &field));
	expect_error(vp_event_class_add_field(event, &field), "at most 1024");
	assert_int_equal(event->fixed_size, VP_EVENT_FIELDS_MAX);
	vp_event_classes_deinit(&classes);
	expect_no_error(vp_event_classes_add(&classes, "e", &event));
	/* Of a sequence that is too long as much as can be is kept; of a record nothing. */
	field = (struct vp_event_field){.name = "s", .shape = VP_EVENT_SEQUENCE, .size = 1};
	expect_no_error(vp_event_class_add_field(event, &field));
	VP_AUTO_FREE char *bytes = vp_alloc(70000);
	vp_event_begin(&out, event, 1);
	vp_event_put_bytes(&out, &event->fields.at[0], bytes, 70000);
	assert_int_equal(out.size, sizeof(struct vp_defined_record) + 2 + 65535);
	expect_error(vp_event_end(&out, 0), "at most 65535");
	assert_int_equal(out.size, 0);
	vp_buffer_deinit(&out);
	vp_event_classes_deinit(&classes);
}

/* Elements are whole ones. */
static void test_odd_bytes(void **state)
{
	struct vp_event_field field = {.name = "s", .shape = VP_EVENT_SEQUENCE, .size = 4};
	struct vp_buffer out = {0};
	uint16_t count;

	vp_event_put_bytes(&out, &field, "abcdefghij", 10);
	assert_int_equal(out.size, sizeof(count) + 8);
	memcpy(&count, out.bytes, sizeof(count));
	assert_int_equal(count, 2);
	out.size = 0;
	field.shape = VP_EVENT_ARRAY;
	field.count = 3;
	vp_event_put_bytes(&out, &field, "abcdefghij", 10);
	assert_int_equal(out.size, 12);
	assert_memory_equal(out.bytes, "abcdefgh\0\0\0\0", 12);
	vp_buffer_deinit(&out);
}

/* Fields that have one name in CTF are told apart by their numbers. */
static void test_like_names(void **state)
{
	struct vp_event_field field = {.name = "ret", .shape = VP_EVENT_INTEGER, .size = 4};
	vp_event_classes classes = {0};
	struct vp_event_class *event;
	struct vp_buffer out = {0};

	expect_no_error(vp_event_classes_add(&classes, "e", &event));
	expect_no_error(vp_event_class_add_field(event, &field));
	field.is_signed = true;
	expect_no_error(vp_event_class_add_field(event, &field));
	vp_event_classes_ctf(&classes, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "u32 _ret;"));
	assert_non_null(strstr(vp_buffer_text(&out), "s32 _ret_1;"));
	vp_buffer_deinit(&out);
	vp_event_classes_deinit(&classes);
}

static vp_event_classes one_class(bool is_signed)
{
	struct vp_event_field field = {
	    .name = "ret", .shape = VP_EVENT_INTEGER, .size = 4, .is_signed = is_signed};
	vp_event_classes classes = {0};
	struct vp_event_class *event;

	expect_no_error(vp_event_classes_add(&classes, "e", &event));
	expect_no_error(vp_event_class_add_field(event, &field));
	return classes;
}

/* Classes that are known have no new numbers, and need no room. */
static void test_joined(void **state)
{
	vp_event_classes classes = {0}, same = one_class(false), other = one_class(true),
			 again = one_class(true), more = make_classes();
	uint16_t ids[2];

	assert_true(vp_event_classes_join(&classes, &same, 2, ids));
	assert_int_equal(ids[0], VP_ID_DEFINED);
	assert_true(vp_event_classes_join(&classes, &other, 2, ids));
	assert_int_equal(ids[0], VP_ID_DEFINED + 1);
	assert_true(vp_event_classes_join(&classes, &again, 2, ids));
	assert_int_equal(ids[0], VP_ID_DEFINED + 1);
	assert_int_equal(classes.count, 2);
	assert_false(vp_event_classes_join(&classes, &more, 3, ids));
	assert_int_equal(classes.count, 2);
	vp_event_classes_deinit(&more);
	vp_event_classes_deinit(&classes);
}

static void expect_refused(const char *text, const char *why)
{
	vp_event_classes classes;

	expect_error(vp_event_classes_parse("f", text, strlen(text), &classes), why);
}

static void test_text_from_anywhere(void **state)
{
	static const char magic[] = "vperf-events 1\n";

	expect_refused("", "'f' line 1: expected");
	expect_refused("vperf-events 2\n", "line 1");
	expect_refused("vperf-events 1\nfield a integer hex 4 0\n", "line 2: expected 'field");
	expect_refused("vperf-events 1\nevent a\nfield a integer hex 4\n", "line 3");
	expect_refused("vperf-events 1\nevent a\nfield a circle hex 4 0\n", "line 3");
	expect_refused("vperf-events 1\nevent a\nfield a array hex 4 65536\n", "line 3");
	expect_refused("vperf-events 1\nevent a\nfield a array hex 9 1\n", "line 3");
	expect_refused("vperf-events 1\nevent\n", "line 2");
	expect_refused("vperf-events 1\nthing a\n", "line 2: expected 'event NAME'");
	vp_event_classes none;
	expect_no_error(vp_event_classes_parse("f", magic, strlen(magic), &none));
	assert_int_equal(none.count, 0);
}

/* A record that is cut off anywhere has no values beyond that, and no byte is read behind it. */
static void test_truncated_record(void **state)
{
	vp_event_classes classes = make_classes();
	struct vp_buffer whole = {0};

	put_record(&classes, 1, "text", &whole);
	for (size_t size = sizeof(struct vp_defined_record); size < whole.size; size++) {
		VP_AUTO_FREE struct vp_defined_record *record = vp_alloc(size);
		struct vp_event_value value;
		bool complete = true;
		memcpy(record, whole.bytes, size);
		record->size = (uint16_t)size;
		struct vp_cursor values = vp_event_fields(record);
		for (int i = 0; i < FIELDS; i++)
			complete &=
			    vp_event_next_value(&values, &classes.at[0].fields.at[i], &value);
		assert_false(complete);
	}
	vp_buffer_deinit(&whole);
	vp_event_classes_deinit(&classes);
}

/* In a stream, one whose size is not so is damage, and the next packet is read. */
static void test_bad_size(void **state)
{
	const struct vp_stream_id id = {VP_STREAM_TRACE, 3};
	vp_event_classes classes = make_classes();
	struct vp_stream_reader *reader;
	struct vp_trace_writer *writer;
	struct vp_buffer records = {0};

	(void)!system("rm -rf " NAME);
	mkdir(NAME, 0755);
	expect_no_error(vp_trace_writer_create_host(NAME, "h", &writer));
	put_record(&classes, 1, "text", &records);
	for (unsigned i = 0; i < 3; i++) {
		struct vp_run run = {
		    .bytes = records.bytes, .size = records.size, .n = 1, .first = 1, .last = 1};
		((struct vp_defined_record *)(void *)records.bytes)->size =
		    (uint16_t)(i == 0   ? records.size + 1
			       : i == 1 ? sizeof(struct vp_defined_record) - 1
					: records.size);
		vp_trace_append_run(writer, id, &run);
		vp_trace_flush(writer, id, 0);
	}
	vp_trace_writer_free(writer);
	expect_no_error(vp_stream_open(NAME_OF_HOST "/trace-cpu3", &reader));
	assert_non_null(vp_stream_next(reader));
	assert_null(vp_stream_next(reader));
	assert_int_equal(vp_stream_health(reader).damaged, 2 * records.size);
	vp_stream_free(reader);
	vp_buffer_deinit(&records);
	vp_event_classes_deinit(&classes);
}

/* Records of fixed length by that; others by what is in them. */
static void test_whole_records(void **state)
{
	vp_event_classes classes = {0};
	struct vp_event_class *event;
	char bytes[64] = {0};
	struct vp_defined_record *record = (void *)bytes;
	struct vp_event_field number = {.name = "number", .shape = VP_EVENT_INTEGER, .size = 4};
	struct vp_event_field array = {
	    .name = "array", .shape = VP_EVENT_ARRAY, .size = 2, .count = 3};
	struct vp_event_field text = {.name = "text", .shape = VP_EVENT_STRING};

	expect_no_error(vp_event_classes_add(&classes, "a:b", &event));
	expect_no_error(vp_event_class_add_field(event, &number));
	expect_no_error(vp_event_class_add_field(event, &array));
	for (record->size = 0; record->size < sizeof(bytes); record->size++)
		assert_int_equal(vp_event_is_whole(event, record), record->size == 12 + 4 + 6);
	expect_no_error(vp_event_class_add_field(event, &text));
	memcpy(record->fields + 10, "four", 5);
	for (record->size = 0; record->size < sizeof(bytes); record->size++)
		assert_int_equal(vp_event_is_whole(event, record), record->size == 12 + 10 + 5);
	vp_event_classes_deinit(&classes);
}

/* Programs of the kernel write their ids: none can come before them. */
static void test_fixed_come_first(void **state)
{
	vp_event_classes classes = {0};
	struct vp_event_class *event;

	expect_no_error(vp_event_classes_add(&classes, "xentrace:other", &event));
	expect_error(vp_trace_event_classes(&classes), "have to be defined first");
	assert_int_equal(classes.count, 1);
	vp_event_classes_deinit(&classes);
	expect_no_error(vp_trace_event_classes(&classes));
	assert_string_equal(vp_event_classes_find(&classes, VP_TRACE_ID_sched_switch)->name,
			    "sched:sched_switch");
	vp_event_classes_deinit(&classes);
}

/* Sections of the format's document: a heading, the table of fields and an empty line. */
static void test_document(void **state)
{
	struct vp_buffer out = {0};
	const char *at;
	size_t sections = 0;

	vp_trace_event_document(&out);
	for (at = vp_buffer_text(&out); (at = strstr(at, "### ")); at++, sections++) {
		const char *table = strstr(at, "\n\n| offset | type | field | meaning |\n|---|");
		const char *next = strstr(at + 1, "### ");
		assert_non_null(table);
		assert_true(!next || table < next);
		assert_true(!next || !strncmp(next - 3, "|\n\n", 3));
	}
	assert_true(sections > 10);
	assert_string_equal(vp_buffer_text(&out) + out.size - 3, "|\n\n");
	vp_buffer_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_document),
	    cmocka_unit_test(test_fixed_come_first),
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_clocks_are_each_machines_own),
	    cmocka_unit_test(test_babeltrace),
	    cmocka_unit_test(test_names_and_sizes),
	    cmocka_unit_test(test_odd_bytes),
	    cmocka_unit_test(test_like_names),
	    cmocka_unit_test(test_joined),
	    cmocka_unit_test(test_text_from_anywhere),
	    cmocka_unit_test(test_truncated_record),
	    cmocka_unit_test(test_bad_size),
	    cmocka_unit_test(test_whole_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
