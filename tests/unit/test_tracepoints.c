/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of tracepoints, as kernels print them, and raw records of theirs. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/host/record_events.h"
#include "collect/tracefs/dynamic_events.h"
#include "collect/tracefs/probe_kernel.h"
#include "protocol/events_protocol.h"
#include "schema/trace_event.h"
#include "schema/tracepoint_format.h"

#define COMMON                                                                                     \
	"name: x\nID: 314\nformat:\n"                                                              \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

struct parsed {
	vp_event_classes classes;
	struct vp_event_class *event;
	vp_tracepoint_layout places;
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
	/* Copied at once: common_pid to prev_pid; args and filename; mac and both. */
	const uint16_t runs[] = {24, 0, 0, 0, 24, 0, 0, 18, 0},
		       others[] = {2, 0, 0, 0, 1, 0, 0, 1, 0};
	for (size_t i = 0; i < 9; i++) {
		assert_int_equal(parsed.places.at[i].run, runs[i]);
		assert_int_equal(parsed.places.at[i].others, others[i]);
	}
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
	/* A text without an end has its own bytes only. */
	const uint32_t name = 3 << 16 | 80;
	memcpy(raw + 28, &name, 4);
	assert_true(vp_tracepoint_convert(parsed.event, &parsed.places, 1, whole, &out));
	assert_non_null(memmem(out.bytes, out.size, "dis", 4));
	out.size = 0;
	memcpy(raw + 28, "\377\377\377\377", 4);
	assert_false(vp_tracepoint_convert(parsed.event, &parsed.places, 1, whole, &out));
	assert_int_equal(out.size, 0);
	vp_buffer_deinit(&out);
	parsed_deinit(&parsed);
}

/* Numbers of every size; bytes of other sizes are an array. */
static void test_sizes(void **state)
{
	static const char format[] = "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n"
				     "\tfield:short b;\toffset:10;\tsize:2;\tsigned:1;\n"
				     "\tfield:u32 c;\toffset:12;\tsize:4;\tsigned:0;\n"
				     "\tfield:s64 d;\toffset:16;\tsize:8;\tsigned:1;\n"
				     "\tfield:struct e e;\toffset:24;\tsize:3;\tsigned:0;\n";
	static const uint8_t sizes[] = {1, 2, 4, 8};
	struct parsed parsed;

	expect_no_error(parse(&parsed, format));
	assert_int_equal(parsed.event->fields.count, 5);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(parsed.event->fields.at[i].shape, VP_EVENT_INTEGER);
		assert_int_equal(parsed.event->fields.at[i].size, sizes[i]);
		assert_int_equal(parsed.event->fields.at[i].is_signed, i % 2);
	}
	assert_int_equal(parsed.event->fields.at[4].shape, VP_EVENT_ARRAY);
	assert_int_equal(parsed.event->fields.at[4].size, 1);
	assert_int_equal(parsed.event->fields.at[4].count, 3);
	parsed_deinit(&parsed);
}

/* Of numbers alone: whole, or not at all. */
static void test_cut_numbers(void **state)
{
	static const char format[] = "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
				     "\tfield:int b;\toffset:12;\tsize:4;\tsigned:1;\n";
	struct parsed parsed;
	struct vp_buffer out = {0};

	expect_no_error(parse(&parsed, format));
	for (size_t size = 1; size <= 16; size++) {
		VP_AUTO_FREE char *raw = vp_alloc(size);
		struct vp_slice slice = {raw, size};
		assert_int_equal(
		    vp_tracepoint_convert_fields(parsed.event, &parsed.places, 1, slice, &out),
		    size == 16);
	}
	assert_int_equal(out.size, sizeof(struct vp_defined_record) + 8);
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
	     "field 'x' is dynamic and does not have 4 bytes"},
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
	give(&events.words, "uprobe:/usr/bin/a,b:f %di");
	give(&events.filters, NULL);
	give(&events.filters, "irq == 4");
	expect_no_error(vp_record_events_choose(&events));
	assert_string_equal(events.trigger, "cpu/event=0x3c,umask=1/");
	assert_int_equal(events.specs.count, 4);
	assert_string_equal(events.specs.at[0].name, "sched:sched_switch");
	assert_null(events.specs.at[0].filter);
	assert_string_equal(events.specs.at[1].name, "kvm:*");
	assert_string_equal(events.specs.at[2].name, "irq:irq_handler_entry");
	assert_string_equal(events.specs.at[2].filter, "irq == 4");
	assert_string_equal(events.specs.at[3].name, "uprobe:/usr/bin/a,b:f %di");
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
	assert_int_equal(events.specs.count, 2);
	assert_string_equal(events.specs.at[0].name, "raw_syscalls:sys_enter");
	assert_string_equal(events.specs.at[1].name, "raw_syscalls:sys_exit");
	assert_true(events.specs.at[0].optional);
	expect_error(vp_trace_sets_parse("sched,blok", &sets), "not 'blok' (did you mean block");
	expect_no_error(vp_trace_sets_parse("", &sets));
	assert_int_equal(sets, VP_TRACE_SETS_ALL);
	vp_record_events_deinit(&events);
}

static void test_guest_sets(void **state)
{
	unsigned sets;

	expect_no_error(vp_record_guest_sets_parse("", &sets));
	assert_int_equal(sets, VP_EVENTS_SET_sched | VP_EVENTS_SET_irq);
	expect_no_error(vp_record_guest_sets_parse("block,timer", &sets));
	assert_int_equal(sets, VP_EVENTS_SET_block | VP_EVENTS_SET_timer);
	expect_error(vp_record_guest_sets_parse("block,tmer", &sets),
		     "not 'tmer' (did you mean timer");
}

static void test_probe_definitions(void **state)
{
	struct vp_probe_definition probe;

	expect_no_error(vp_probe_definition_parse(
	    "uprobe:/usr/lib/libc.so.6:mine=malloc+0x10 size=%di:u32 $arg1  +0(%si):string",
	    &probe));
	assert_true(probe.of_user && !probe.at_return);
	assert_string_equal(probe.binary, "/usr/lib/libc.so.6");
	assert_string_equal(probe.event, "mine");
	assert_string_equal(probe.function, "malloc");
	assert_int_equal(probe.offset, 0x10);
	assert_int_equal(probe.arguments.count, 3);
	assert_string_equal(probe.arguments.at[0].name, "size");
	assert_string_equal(probe.arguments.at[0].what, "%di");
	assert_string_equal(probe.arguments.at[0].type, "u32");
	assert_null(probe.arguments.at[1].name);
	assert_string_equal(probe.arguments.at[2].what, "+0(%si)");
	vp_probe_definition_deinit(&probe);

	expect_no_error(vp_probe_definition_parse("kprobe:tcp_sendmsg%return $retval", &probe));
	assert_true(!probe.of_user && probe.at_return);
	assert_string_equal(probe.function, "tcp_sendmsg");
	vp_probe_definition_deinit(&probe);

	assert_true(vp_probe_is_definition("kretprobe:x"));
	assert_false(vp_probe_is_definition("probe:x"));
}

static void test_no_probe_definitions(void **state)
{
	static const char *const texts[][2] = {
	    {"kprobe:", "expected kprobe:FUNCTION"},
	    {"kprobe: size", "expected kprobe:FUNCTION"},
	    {"uprobe:malloc", "expected uprobe:BINARY:FUNCTION"},
	    {"uprobe::malloc", "expected uprobe:BINARY:FUNCTION"},
	    {"uprobe:/bin/sh:", "expected uprobe:BINARY:FUNCTION"},
	    {"kprobe:f%retrun", "expected %return after the function"},
	    {"kretprobe:f+4", "expected a function without an offset before %return"},
	    {"kprobe:f+", "expected a number of bytes"},
	    {"kprobe:f+-4", "expected a number of bytes"},
	    {"kprobe:4x=f", "as the event's name"},
	    {"kprobe:f 4x=%di", "as an argument's name"},
	    {"kprobe:f x=", "arguments of the form [NAME=]VALUE[:TYPE]"},
	    {"kprobe:f %di:", "expected a type"},
	};
	struct vp_probe_definition probe;

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		expect_error(vp_probe_definition_parse(texts[i][0], &probe), texts[i][1]);
}

static struct vp_error *find_function(const char *text)
{
	static const char symbols[] = "ffffffff81000000 T one_function\n"
				      "ffffffff81000010 t twice\n"
				      "ffffffff81000020 t twice\n"
				      "ffffffff81000030 D data\n"
				      "ffffffffc0000000 t ours\t[bpf]\n"
				      "ffffffffc0000010 t in_kvm\t[kvm]\n";
	const char *path =
	    temporary_file("test_tracepoints.kallsyms", symbols, sizeof(symbols) - 1);
	struct vp_probe_definition probe;
	struct vp_probe_function function;

	expect_no_error(vp_probe_definition_parse(text, &probe));
	struct vp_error *error = vp_probe_function_find(&probe, path, &function);
	if (!error)
		vp_probe_function_deinit(&function);
	vp_probe_definition_deinit(&probe);
	return error;
}

static void test_functions_of_kernel(void **state)
{
	expect_no_error(find_function("kprobe:one_function"));
	expect_no_error(find_function("kprobe:in_kvm"));
	expect_error(find_function("kprobe:one_funtion"), "did you mean one_function?");
	expect_error(find_function("kprobe:twice"), "the kernel has 2 functions named 'twice'");
	expect_error(find_function("kprobe:data"), "the kernel has no function 'data'");
	expect_error(find_function("kprobe:ours"), "the kernel has no function 'ours'");
}

/* A file of tracefs': what is in it after `text` was; the caller frees it. */
static char *made_of(const char *text, const char *definition, const char *problem,
		     unsigned leftover)
{
	char *name = NULL, *shown = NULL;
	struct vp_buffer after = {0};

	mkdir("test_tracepoints.tracing", 0755);
	temporary_file("test_tracepoints.tracing/kprobe_events", text, strlen(text));
	temporary_file("test_tracepoints.tracing/uprobe_events", "", 0);
	struct vp_dynamic_events *events =
	    vp_dynamic_events_new("test_tracepoints.tracing", "/dev/null");
	assert_int_equal(vp_dynamic_events_leftover(events), leftover);
	if (problem) {
		expect_error(vp_dynamic_events_add(events, definition, &name, &shown), problem);
	} else {
		for (int i = 0; i < 2; i++) {
			expect_no_error(vp_dynamic_events_add(events, definition, &name, &shown));
			assert_string_equal(shown, i ? "probe_test:mine_1" : "probe_test:mine");
			free(name);
			free(shown);
		}
	}
	vp_dynamic_events_free(events);
	expect_no_error(vp_file_read("test_tracepoints.tracing/kprobe_events", 4096, &after));
	expect_no_error(vp_file_read("test_tracepoints.tracing/uprobe_events", 4096, &after));
	return after.bytes ? (vp_buffer_text(&after), after.bytes) : vp_strdup("");
}

/* Only those of processes that are over go; what is made is removed. */
static void test_events_made_and_removed(void **state)
{
	static const char others[] = "p:kprobes/theirs f\np:vperf_1/running f\n"
				     "r16:vperf_2147483646/over f\n";
	VP_AUTO_FREE char *program = realpath("/proc/self/exe", NULL);
	VP_AUTO_FREE char *definition =
	    vp_format("uprobe:%s:mine=vp_probe_definition_parse s=+0($arg1):string", program);
	VP_AUTO_FREE char *left = made_of(others, definition, NULL, 1);
	char line[256];

	assert_non_null(strstr(left, "\n-:vperf_2147483646/over\n"));
	assert_null(strstr(left, "-:vperf_1/running"));
	snprintf(line, sizeof(line), "p:vperf_%d/mine %s:0x", (int)getpid(), program);
	assert_non_null(strstr(left, line));
	assert_non_null(strstr(left, "s=+0(%di):string\n") ?: strstr(left, "s=+0(%x0):string\n"));
	snprintf(line, sizeof(line), "\n-:vperf_%d/mine\n-:vperf_%d/mine_1\n", (int)getpid(),
		 (int)getpid());
	assert_non_null(strstr(left, line));
}

static void test_events_refused(void **state)
{
	static const char *const texts[][2] = {
	    {"uprobe:/proc/self/exe:vp_probe_definition_pars", "did you mean"},
	    {"uprobe:/nowhere/x:main", "no program or library '/nowhere/x'"},
	    {"uprobe:nowhere-at-all:main", "no program or library 'nowhere-at-all'"},
	    {"uprobe:/proc/self/exe:main size", "expected $arg1, $arg2"},
	    {"uprobe:/proc/self/exe:main $arg9", "at the start of a function, not '$arg9'"},
	    {"uretprobe:/proc/self/exe:main $arg1", "at the start of a function, not '$arg1'"},
	    {"kprobe:nothing", "the kernel has no function 'nothing'"},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		free(made_of("", texts[i][0], texts[i][1], 0));
}

#define REFUSING "test_tracepoints.refusing"

/* The error of a definition whose event the kernel refuses; `log`: its list of errors, or NULL. */
static void expect_refused(const char *definition, const char *log, const char *said)
{
	struct vp_dynamic_events *events = vp_dynamic_events_new(REFUSING, "/dev/null");
	char *name = NULL, *shown = NULL;

	if (log)
		temporary_file(REFUSING "/error_log", log, strlen(log));
	else
		remove(REFUSING "/error_log");
	expect_error(vp_dynamic_events_add(events, definition, &name, &shown), said);
	vp_dynamic_events_free(events);
}

/* The kernel says in tracefs what it has against a line: the last one of this process is ours. */
static void test_refused_by_kernel(void **state)
{
	const char *definition = "uprobe:/proc/self/exe:mine=main";
	VP_AUTO_FREE char *ours = vp_format(
	    "[ 1.0] trace_uprobe: error: Too old\n  Command: p:vperf_%d/mine /x:0x1\n"
	    "[ 2.0] trace_uprobe: error: Invalid \033offset\n  Command: p:vperf_%d/mine /x:0x1\n"
	    "[ 3.0] trace_kprobe: error: Another one\n  Command: p:vperf_1/mine f\n",
	    (int)getpid(), (int)getpid());

	mkdir(REFUSING, 0755);
	remove(REFUSING "/uprobe_events");
	expect_refused(definition, NULL,
		       "this kernel has no user probes (is tracefs mounted at '" REFUSING "'?)");
	assert_int_equal(symlink("/dev/full", REFUSING "/uprobe_events"), 0);
	expect_refused(definition, NULL, "rejected by the kernel: No space left");
	expect_refused(definition, "", "rejected by the kernel: No space left");
	expect_refused(definition, ours, "rejected by the kernel: Invalid ?offset");
	expect_refused(definition, "[ 3.0] trace_uprobe: error: Why\n  Command: p:vperf_1/mine f\n",
		       "rejected by the kernel: No space left");
}

static void test_fields_of_probes(void **state)
{
	struct parsed parsed;

	expect_no_error(parse(&parsed, COMMON
			      "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
			      "\tfield:u64 at;\toffset:16;\tsize:8;\tsigned:0;\n"
			      "\tfield:s32 size;\toffset:24;\tsize:4;\tsigned:1;\n"
			      "\nprint fmt: \"(%lx) at=0x%Lx size=%d\", REC->__probe_ip, REC->at, "
			      "REC->size\n"));
	assert_true(parsed.event->fields.at[1].is_hex);
	assert_true(parsed.event->fields.at[2].is_hex);
	assert_false(parsed.event->fields.at[3].is_hex);
	assert_true(parsed.event->fields.at[3].is_signed);
	parsed_deinit(&parsed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_bad_records),
	    cmocka_unit_test(test_cut_numbers),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_bad_formats),
	    cmocka_unit_test(test_words_of_events),
	    cmocka_unit_test(test_sets),
	    cmocka_unit_test(test_guest_sets),
	    cmocka_unit_test(test_probe_definitions),
	    cmocka_unit_test(test_no_probe_definitions),
	    cmocka_unit_test(test_functions_of_kernel),
	    cmocka_unit_test(test_events_made_and_removed),
	    cmocka_unit_test(test_events_refused),
	    cmocka_unit_test(test_refused_by_kernel),
	    cmocka_unit_test(test_fields_of_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
