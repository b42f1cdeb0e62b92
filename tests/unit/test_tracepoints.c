/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of tracepoints, as kernels print them, and raw records of theirs. */
#include "unit.h"

#include "cmd/record_events.h"
#include "collect/tracepoint_format.h"
#include "schema/trace_event.h"

#define COMMON                                                                                     \
	"name: x\nID: 314\nformat:\n"                                                              \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

struct parsed {
	vp_event_classes classes;
	struct vp_event_class *event;
	vp_tracepoint_places places;
};

static struct vp_error *parse(struct parsed *parsed, const char *text)
{
	*parsed = (struct parsed){0};
	expect_no_error(vp_event_classes_add(&parsed->classes, "a:b", &parsed->event));
	return vp_tracepoint_format_parse("format", text, strlen(text), parsed->event,
					  &parsed->places);
}

static void parsed_deinit(struct parsed *parsed)
{
	vp_event_classes_deinit(&parsed->classes);
	vp_vec_deinit(&parsed->places);
}

static void expect_field(const struct parsed *parsed, size_t i, const char *name,
			 enum vp_event_shape shape, unsigned size, unsigned count)
{
	const struct vp_event_field *field = &parsed->event->fields.at[i];

	assert_string_equal(field->name, name);
	assert_int_equal(field->shape, shape);
	assert_int_equal(field->count, count);
	if (shape != VP_EVENT_STRING)
		assert_int_equal(field->size, size);
}

static const char every_kind[] =
    COMMON "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	   "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	   "\tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n"
	   "\tfield:unsigned long args[2];\toffset:32;\tsize:16;\tsigned:0;\n"
	   "\tfield:const char * filename;\toffset:48;\tsize:8;\tsigned:0;\n"
	   "\tfield:__rel_loc u16[] words;\toffset:56;\tsize:4;\tsigned:0;\n"
	   "\tfield:u8 mac[ETH_ALEN];\toffset:60;\tsize:6;\tsigned:0;\n"
	   "\tfield:struct nothing empty;\toffset:66;\tsize:0;\tsigned:0;\n"
	   "\tfield:struct pair both;\toffset:66;\tsize:12;\tsigned:0;\n"
	   "\nprint fmt: \"field:%d\", REC->x\n";

static void test_fields(void **state)
{
	struct parsed parsed;

	expect_no_error(parse(&parsed, every_kind));
	assert_int_equal(parsed.event->fields.count, 9);
	expect_field(&parsed, 0, "common_pid", VP_EVENT_INTEGER, 4, 0);
	expect_field(&parsed, 1, "prev_comm", VP_EVENT_ARRAY, 1, 16);
	assert_true(parsed.event->fields.at[1].is_text);
	expect_field(&parsed, 2, "prev_pid", VP_EVENT_INTEGER, 4, 0);
	assert_true(parsed.event->fields.at[2].is_signed);
	expect_field(&parsed, 3, "name", VP_EVENT_STRING, 0, 0);
	expect_field(&parsed, 4, "args", VP_EVENT_ARRAY, 8, 2);
	expect_field(&parsed, 5, "filename", VP_EVENT_INTEGER, 8, 0);
	assert_true(parsed.event->fields.at[5].is_hex);
	expect_field(&parsed, 6, "words", VP_EVENT_SEQUENCE, 2, 0);
	expect_field(&parsed, 7, "mac", VP_EVENT_ARRAY, 1, 6);
	expect_field(&parsed, 8, "both", VP_EVENT_ARRAY, 1, 12);
	parsed_deinit(&parsed);
}

/* A record of every_kind with "disk" and {7, 8} behind its fields. */
static struct vp_slice make_raw(char raw[96])
{
	const uint64_t args[] = {1, UINT64_MAX}, filename = 0xffff888000000000;
	const uint32_t pid = 77, prev = (uint32_t)-1, name = 5 << 16 | 80, words = 4 << 16 | 26;
	const uint16_t numbers[] = {7, 8};

	memset(raw, 0, 96);
	memcpy(raw + 4, &pid, 4);
	memcpy(raw + 8, "qemu", 4);
	memcpy(raw + 24, &prev, 4);
	memcpy(raw + 28, &name, 4);
	memcpy(raw + 32, args, 16);
	memcpy(raw + 48, &filename, 8);
	memcpy(raw + 56, &words, 4); /* its data are at 60 + 26 */
	memcpy(raw + 60, "\1\2\3\4\5\6", 6);
	memcpy(raw + 80, "disk", 5);
	memcpy(raw + 86, numbers, 4);
	return (struct vp_slice){raw, 96};
}

static void test_records(void **state)
{
	struct parsed parsed;
	struct vp_buffer out = {0};
	struct vp_event_value values[9];
	char raw[96];

	expect_no_error(parse(&parsed, every_kind));
	struct vp_slice whole = make_raw(raw);
	assert_true(vp_tracepoint_convert(parsed.event, &parsed.places, 12345, whole, &out));
	const struct vp_defined_record *record = (const void *)out.bytes;
	assert_int_equal(record->time, 12345);
	assert_int_equal(record->id, parsed.event->id);
	assert_int_equal(record->size, out.size);
	struct vp_cursor fields = vp_event_fields(record);
	for (size_t i = 0; i < 9; i++)
		assert_true(vp_event_next_value(&fields, &parsed.event->fields.at[i], &values[i]));
	assert_int_equal(vp_cursor_left(&fields), 0);
	assert_int_equal(values[0].number, 77);
	assert_string_equal(values[1].bytes.bytes, "qemu");
	assert_int_equal((int64_t)values[2].number, -1);
	assert_true(vp_slice_is(values[3].bytes, "disk"));
	assert_int_equal(values[5].number, 0xffff888000000000);
	assert_int_equal(values[6].bytes.size, 4);
	assert_memory_equal(values[6].bytes.bytes, "\7\0\10\0", 4);
	assert_memory_equal(values[7].bytes.bytes, "\1\2\3\4\5\6", 6);
	vp_buffer_deinit(&out);
	parsed_deinit(&parsed);
}

/* Data that would be beyond the record's end, and a record that ends within its fields. */
static void test_bad_records(void **state)
{
	struct parsed parsed;
	struct vp_buffer out = {0};
	char raw[96];

	expect_no_error(parse(&parsed, every_kind));
	struct vp_slice whole = make_raw(raw);
	for (size_t size = 0; size < 90; size++)
		assert_false(vp_tracepoint_convert(parsed.event, &parsed.places, 1,
						   (struct vp_slice){raw, size}, &out));
	memcpy(raw + 28, "\377\377\377\377", 4);
	assert_false(vp_tracepoint_convert(parsed.event, &parsed.places, 1, whole, &out));
	assert_int_equal(out.size, 0);
	vp_buffer_deinit(&out);
	parsed_deinit(&parsed);
}

static void test_bad_formats(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
	    {"", "'format' has no fields"},
	    {"\tfield:int x;\toffset:a;\tsize:4;\tsigned:0;\n", "'format' line 1: expected"},
	    {"\tfield:int x;\toffset:8;\n", "line 1: expected"},
	    {COMMON "\tfield:int [3];\toffset:8;\tsize:4;\tsigned:0;\n", "line 9: expected"},
	    {"\tfield:int x;\toffset:70000;\tsize:4;\tsigned:0;\n", "line 1: expected"},
	    {"\tfield:__data_loc char[] x;\toffset:8;\tsize:8;\tsigned:0;\n",
	     "field 'x' has data elsewhere"},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(bad); i++) {
		struct parsed parsed;
		expect_error(parse(&parsed, bad[i].text), bad[i].said);
		parsed_deinit(&parsed);
	}
}

static void give(struct vp_texts *texts, const char *word)
{
	vp_vec_push(texts, word);
}

static void test_words_of_events(void **state)
{
	struct vp_record_events events = {0};

	give(&events.words, "sched:sched_switch,cpu/event=0x3c,umask=1/,kvm:*");
	give(&events.words, "irq:irq_handler_entry");
	give(&events.filters, NULL);
	give(&events.filters, "irq == 4");
	expect_no_error(vp_record_events_choose(&events));
	assert_string_equal(events.trigger, "cpu/event=0x3c,umask=1/");
	assert_int_equal(events.wishes.count, 3);
	assert_string_equal(events.wishes.at[0].name, "sched:sched_switch");
	assert_null(events.wishes.at[0].filter);
	assert_string_equal(events.wishes.at[1].name, "kvm:*");
	assert_string_equal(events.wishes.at[2].name, "irq:irq_handler_entry");
	assert_string_equal(events.wishes.at[2].filter, "irq == 4");
	vp_record_events_deinit(&events);

	events = (struct vp_record_events){0};
	give(&events.words, "cycles:u,instructions");
	expect_error(vp_record_events_choose(&events), "not 'cycles:u' and 'instructions'");
	vp_record_events_deinit(&events);
	events = (struct vp_record_events){0};
	give(&events.words, "cycles");
	give(&events.filters, "x == 1");
	expect_error(vp_record_events_choose(&events), "'cycles' is not a tracepoint");
	vp_record_events_deinit(&events);
}

static void test_sets(void **state)
{
	struct vp_record_events events = {0};
	unsigned sets;

	expect_no_error(vp_trace_sets_parse("sched,syscalls", &sets));
	assert_int_equal(sets, VP_TRACE_SET_sched | VP_TRACE_SET_syscalls);
	vp_record_events_add_sets(&events, sets);
	assert_int_equal(events.wishes.count, 2);
	assert_string_equal(events.wishes.at[0].name, "raw_syscalls:sys_enter");
	assert_string_equal(events.wishes.at[1].name, "raw_syscalls:sys_exit");
	assert_true(events.wishes.at[0].optional);
	expect_error(vp_trace_sets_parse("sched,blok", &sets), "not 'blok' (did you mean block");
	expect_no_error(vp_trace_sets_parse("", &sets));
	assert_int_equal(sets, VP_TRACE_SETS_ALL);
	vp_record_events_deinit(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fields),          cmocka_unit_test(test_records),
	    cmocka_unit_test(test_bad_records),     cmocka_unit_test(test_bad_formats),
	    cmocka_unit_test(test_words_of_events), cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
