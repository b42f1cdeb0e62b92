/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each format prints of one small recording, byte for byte. */
#include "unit.h"

#include <json-c/json.h>
#include <stdio.h>

#include "analyze/report/report_make.h"
#include "cmd/common/formats.h"
#include "make_recording.h"
#include "render/render_report.h"
#include "render/render_summary.h"
#include "render/render_table.h"

#define NAME "test_render.rec"

static const char maps[] = "vperf-maps 1\n"
			   "machine guest vm0\n"
			   "a 1 81 1000 0 0 wo%3brk,er\n"
			   "m 1 400000 500000 0 0 - /usr/bin/worker\n"
			   "i - /usr/bin/worker\n"
			   "s 0 40 compute\n"
			   "end 6\n";

static void make_recording(void)
{
	struct made made;

	made_begin(&made, NAME, 2);
	for (uint64_t tick = 0; tick < 6; tick++)
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 6, 1, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_in_kvm(&made, 0, 7, 0, 0, MADE_NPF);
	made_in_kvm(&made, 0, 8, 0, 0, MADE_HLT);
	made_idle(&made, 0, 9);
	made_end(&made, 10);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);
}

static struct vp_report report_on(enum vp_view view, const char *vm)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options options = {.view = view, .vm = vm};
	struct vp_report report;

	make_recording();
	expect_no_error(vp_report_make(&naming, &options, &report));
	return report;
}

static void test_text(void **state)
{
	struct vp_report report = report_on(VP_VIEW_GUEST, "vm0");
	struct vp_buffer out = {0};

	vp_render_report_text(&report, false, &out);
	const char *shares = strstr(vp_buffer_text(&out), "Total samples");
	assert_non_null(shares);
	assert_string_equal(
	    shares, "Total samples: 10   kernel 0.00%   user 60.00%   idle 20.00%   steal 20.00%\n"
		    "\n"
		    "Percent  Samples  Kind   Process   Module  Function\n"
		    " 60.00%        6  user   wo;rk,er  worker  compute\n"
		    " 20.00%        2  idle   -         -       [idle]\n"
		    " 10.00%        1  steal  -         -       [steal] (host)\n"
		    " 10.00%        1  steal  -         -       [steal] (vm1)\n"
		    "\n"
		    "Last VM exit before stolen time:\n"
		    "  [steal] (host): NPF 1\n"
		    "  [steal] (vm1): INTR 1\n");
	out.size = 0;
	report.limit = 1;
	vp_render_report_text(&report, true, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "\033[31m"));
	assert_non_null(strstr(vp_buffer_text(&out), "(3 more rows: -v shows all)"));
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

static void test_csv_and_folded(void **state)
{
	struct vp_report report = report_on(VP_VIEW_UNIFIED, NULL);
	struct vp_buffer out = {0};

	vp_render_report_csv(&report, false, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "percent,samples,kind,vm,process,module,function\n"
			    "60,6,user,vm0,\"wo;rk,er\",/usr/bin/worker,compute\n"
			    "20,2,kernel,host,,,0xffffffff81000000\n"
			    "10,1,user,vm1,cr3:0x2000,,0x400010\n"
			    "10,1,idle,host,,,[idle]\n");
	out.size = 0;
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(vp_buffer_text(&out), "[vm0];wo:rk,er;compute 6\n"
						  "host;[unknown];0xffffffff81000000_[k] 2\n"
						  "[vm1];cr3:0x2000;0x400010 1\n"
						  "host;[idle] 1\n");
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* Two samples, and between them what the account said of vCPU 0 of vm0. */
static void make_sliced(void)
{
	struct made made;
	const struct vp_stream_id states = {VP_STREAM_STATES, VP_NO_PCPU};
	struct vp_vcpu_span span = {.time = MADE_START + MADE_PERIOD + 500,
				    .id = VP_ID_vcpu_span,
				    .flags = VP_HAS_EXIT_REASON,
				    .vm = 1000,
				    .tid = 1001,
				    .state = 4,
				    .vendor = VP_VENDOR_AMD,
				    .reason = MADE_HLT,
				    .cpu = 0,
				    .ns = 1500};

	make_recording();
	made_begin(&made, NAME, 2);
	made_guest(&made, 0, 1, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_idle(&made, 0, 2);
	vp_trace_append(made.writer, states, (void *)&span);
	span.time += 10 * MADE_PERIOD;
	span.vm = 2000;
	span.flags = 0;
	vp_trace_append(made.writer, states, (void *)&span);
	vp_trace_flush(made.writer, states, 0);
	made_end(&made, 3);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);
}

static struct vp_buffer written;
static unsigned writes_left;

static struct vp_error *write_to_memory(void *context, struct vp_buffer *out)
{
	if (!writes_left--)
		return vp_error_new("no room");
	vp_buffer_append(&written, out->bytes, out->size);
	return NULL;
}

static const struct vp_export_writer to_memory = {.write = write_to_memory};

static const char *exported(const struct vp_exporter *exporter, struct vp_profile_options options)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_report report;

	make_sliced();
	written.size = 0;
	writes_left = 1;
	expect_no_error(vp_export_stream(&naming, &options, exporter, &to_memory, &report));
	assert_int_equal(report.profile.counts.ticks, 2);
	vp_report_deinit(&report);
	return vp_buffer_text(&written);
}

/* As perf script prints them, which knows no slices. */
static void test_script(void **state)
{
	struct vp_profile_options all = {.view = VP_VIEW_UNIFIED};
	struct vp_profile_options vm0 = {.view = VP_VIEW_UNIFIED, .vm = "vm0"};
	struct vp_profile_options guest = {.view = VP_VIEW_GUEST, .vm = "vm0"};

	assert_string_equal(exported(vp_exporter_script(), all),
			    "vm0/wo;rk,er    81 [000]     1.001000000:    1000000 cpu-clock: \n"
			    "\t          400000 compute+0x0 (/usr/bin/worker)\n\n"
			    "swapper     0 [000]     1.002000000:    1000000 cpu-clock: \n"
			    "\t               0 [idle] ([unknown])\n\n");
	assert_string_equal(exported(vp_exporter_script(), vm0),
			    "vm0/wo;rk,er    81 [000]     1.001000000:    1000000 cpu-clock: \n"
			    "\t          400000 compute+0x0 (/usr/bin/worker)\n\n");
	assert_non_null(strstr(exported(vp_exporter_script(), guest),
			       "\t               0 [steal] (host) ([unknown])\n"));
	vp_buffer_deinit(&written);
}

static void test_jsonl(void **state)
{
	static const char *const types[] = {"recording", "sample", "slice",
					    "sample",    "slice",  "end"};
	struct vp_profile_options all = {.view = VP_VIEW_UNIFIED};
	char *rest = NULL, *text = strdup(exported(vp_exporter_jsonl(), all));
	size_t lines = 0;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct json_object *object = json_tokener_parse(line);
		assert_non_null(object);
		assert_true(lines < VP_ARRAY_SIZE(types));
		assert_string_equal(json_object_get_string(json_object_object_get(object, "type")),
				    types[lines]);
		if (lines == 1)
			assert_int_equal(json_object_get_int(json_object_object_get(object, "pid")),
					 81);
		if (lines == 2)
			assert_string_equal(
			    json_object_get_string(json_object_object_get(object, "reason")),
			    "HLT");
		lines++;
		json_object_put(object);
	}
	assert_int_equal(lines, VP_ARRAY_SIZE(types));
	free(text);
	vp_buffer_deinit(&written);
}

static void test_export_ends_at_first_error(void **state)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options all = {.view = VP_VIEW_UNIFIED};
	struct vp_report report;

	make_sliced();
	writes_left = 0;
	expect_error(vp_export_stream(&naming, &all, vp_exporter_script(), &to_memory, &report),
		     "no room");
}

/* Each format says so, before it writes anything. */
static void test_no_chains(void **state)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options all = {.view = VP_VIEW_UNIFIED, .needs_chains = true};
	struct vp_report report;

	make_recording();
	writes_left = 0;
	expect_error(vp_export_stream(&naming, &all, vp_exporter_script(), &to_memory, &report),
		     "has no call chains");
	expect_error(vp_report_make(&naming, &all, &report), "has no call chains");
}

static void test_formats(void **state)
{
	VP_AUTO_FREE char *names = vp_report_format_names();
	size_t count;
	const struct vp_report_format *formats = vp_report_formats(&count);

	assert_string_equal(names, "text, json, csv, folded, script or jsonl");
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(vp_report_format_named(formats[i].name), &formats[i]);
		assert_true(!formats[i].render != !formats[i].exporter);
	}
	assert_null(vp_report_format_named("xml"));
}

static double number(struct json_object *object, const char *outer, const char *inner)
{
	return json_object_get_double(
	    json_object_object_get(json_object_object_get(object, outer), inner));
}

static void test_json(void **state)
{
	struct vp_report report = report_on(VP_VIEW_GUEST, "vm0");
	struct vp_buffer out = {0};

	vp_render_report_json(&report, false, &out);
	struct json_object *object = json_tokener_parse(vp_buffer_text(&out));
	assert_non_null(object);
	assert_string_equal(json_object_get_string(json_object_object_get(object, "vm")), "vm0");
	assert_int_equal(json_object_get_int(json_object_object_get(object, "samples")), 10);
	assert_true(number(object, "shares", "user") == 60.0);
	assert_true(number(object, "shares", "steal") == 20.0);
	assert_true(number(object, "routes", "cr3") == 6.0);
	assert_true(number(object, "attribution", "cr3") == 6.0);
	struct json_object *shares = json_object_object_get(object, "shares"), *kernel, *os;
	assert_true(json_object_object_get_ex(shares, "kernel", &kernel));
	assert_true(json_object_object_get_ex(shares, "os", &os));
	assert_true(json_object_get_double(kernel) == json_object_get_double(os));
	struct json_object *row =
	    json_object_array_get_idx(json_object_object_get(object, "rows"), 0);
	assert_int_equal(json_object_get_int(json_object_object_get(row, "pid")), 81);
	json_object_put(object);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

static void test_summary(void **state)
{
	struct vp_summary summary;
	struct vp_buffer out = {0};

	make_recording();
	expect_no_error(vp_summary_make(NAME, &summary));
	vp_render_summary_text(&summary, 0, false, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "VM 'vm0': process 1000, 2 vCPUs"));
	assert_non_null(strstr(vp_buffer_text(&out), "cr3 85.71%"));
	out.size = 0;
	vp_render_summary_json(&summary, &out);
	struct json_object *object = json_tokener_parse(vp_buffer_text(&out));
	assert_int_equal(json_object_array_length(json_object_object_get(object, "vms")), 2);
	json_object_put(object);
	vp_buffer_deinit(&out);
	vp_summary_deinit(&summary);
}

static void expect_number(struct json_object *object, const char *key, double expected)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	assert_float_equal(json_object_get_double(value), expected, 1e-9);
}

static void expect_word(struct json_object *object, const char *key, const char *expected)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	assert_string_equal(json_object_get_string(value), expected);
}

/* A flight recorder's snapshot of 250 Hz: each number under its own key. */
static void test_summary_numbers(void **state)
{
	struct vp_summary summary;
	struct vp_buffer out = {0};
	struct made made;

	made_begin(&made, NAME, 2);
	made.about.period_ns = 4000000;
	made.about.pcpus = 7;
	made.about.compression = 3;
	made.about.begun = MADE_START - 500;
	made.about.mode = vp_strdup("flight");
	made.about.cause = vp_strdup("steal>1ms");
	made.about.guest_sampling = vp_strdup("");
	made_guest(&made, 0, 1, 1, 1, VP_MODE_GUEST_USER, MADE_INTR);
	made_idle(&made, 0, 2);
	made.lost = 5;
	made_end(&made, 40);
	expect_no_error(vp_summary_make(NAME, &summary));
	vp_render_summary_json(&summary, &out);
	struct json_object *object = json_tokener_parse(vp_buffer_text(&out));
	expect_word(object, "hostname", "made");
	expect_word(object, "kernel", "6.1");
	expect_word(object, "trigger", "cpu-clock");
	expect_word(object, "mode", "flight");
	expect_word(object, "cause", "steal>1ms");
	expect_number(object, "period_ns", 4000000);
	expect_number(object, "rate_hz", 250);
	expect_number(object, "duration_s", 0.04);
	expect_number(object, "pcpus", 7);
	expect_number(object, "compression_level", 3);
	expect_number(object, "lost", 5);
	expect_number(object, "start_ns", MADE_START);
	expect_number(object, "end_ns", MADE_START + 40 * MADE_PERIOD);
	expect_number(object, "begun_ns", MADE_START - 500);
	expect_number(object, "guest_samples", 1);
	expect_number(object, "account_lost", 0);
	struct json_object *vms = json_object_object_get(object, "vms");
	struct json_object *second = json_object_array_get_idx(vms, 1);
	expect_word(second, "name", "vm1");
	expect_number(second, "pid", 2000);
	struct json_object *vcpus = json_object_object_get(second, "vcpus");
	assert_int_equal(json_object_array_length(vcpus), 2);
	expect_number(json_object_array_get_idx(vcpus, 1), "vcpu", 1);
	expect_number(json_object_array_get_idx(vcpus, 1), "tid", 2002);
	json_object_put(object);
	vp_buffer_deinit(&out);
	vp_summary_deinit(&summary);
}

/* Quotes where a reader of CSV needs them, and nowhere else. */
static void test_csv_cells(void **state)
{
	static const char *const cells[] = {"plain", "a b", "a\"b", "a,b", "a\nb", "a\rb", ""};
	struct vp_table table = {0};
	struct vp_buffer out = {0};

	vp_table_column_add(&table, "a,\"key", "Key", "", VP_CELL_TEXT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cells); i++)
		vp_table_text(&table, cells[i]);
	vp_table_text(&table, NULL);
	vp_render_table_csv(&table, true, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "\"a,\"\"key\"\nplain\na b\n\"a\"\"b\"\n\"a,b\"\na?b\na?b\n\n\n");
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

/* Columns are as wide as their characters, of which some are several bytes. */
static void test_widths(void **state)
{
	static const char *const names[] = {"\xc3\xa4\xc3\xb6\xe2\x82\xac", "plain",
					    "fa\xc3\xa7"
					    "ade-\xf0\x9f\x98\x80-\xc3\xa9t\xc3\xa9",
					    ""};
	struct vp_table table = {0};
	struct vp_buffer out = {0};

	vp_table_column_add(&table, "name", "Name", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "count", "Count", "", VP_CELL_COUNT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		vp_table_text(&table, names[i]);
		vp_table_count(&table, i ? 1 : 12345678);
	}
	vp_render_table_text(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "Name             Count\n"
			    "\xc3\xa4\xc3\xb6\xe2\x82\xac           12345678\n"
			    "plain                1\n"
			    "fa\xc3\xa7"
			    "ade-\xf0\x9f\x98\x80-\xc3\xa9t\xc3\xa9         1\n"
			    "                     1\n");
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

/* Numbers as wide as they are printed, with what is rounded up, and no blanks at a line's end. */
static void test_wide_header(void **state)
{
	/* As an event of a guest's kernel may be called. */
	static const char header[] = "guest:a_tracepoint_with_a_name_that_is_longer_than_any_"
				     "number,_and_than_a_text_in_a_column";
	struct vp_table table = {0};
	struct vp_buffer out = {0};
	char expected[512];

	vp_table_column_add(&table, "count", header, "", VP_CELL_COUNT);
	vp_table_column_add(&table, "name", header, "", VP_CELL_TEXT);
	vp_table_column_add(&table, "share", header, "%", VP_CELL_PERCENT);
	vp_table_count(&table, 1234);
	vp_table_text(&table, "short");
	vp_table_percent(&table, 1e300);
	vp_render_table_text(&table, false, &out);
	int width = (int)strlen(header);
	int size = snprintf(expected, sizeof(expected), "%s  %s  %s\n%*d  %-*s  ", header, header,
			    header, width, 1234, width, "short");
	assert_memory_equal(vp_buffer_text(&out), expected, (size_t)size);
	/* The digits of a number that is out of all bounds are cut off. */
	assert_int_equal(out.size, size + width + 1);
	assert_int_equal(out.bytes[out.size - 1], '\n');
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

static void test_numbers(void **state)
{
	static const struct {
		uint64_t count;
		double percent;
		const char *text;
	} rows[] = {{VP_CELL_NO_COUNT, 9.996, "-"}, {7, 0.004, "b"}, {99, 1.236, "c"}};
	struct vp_table table = {0};
	struct vp_buffer out = {0};

	vp_table_column_add(&table, "percent", "%", "", VP_CELL_PERCENT);
	vp_table_column_add(&table, "count", "N", "", VP_CELL_COUNT);
	vp_table_column_add(&table, "text", "Long header", "", VP_CELL_TEXT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(rows); i++) {
		vp_table_percent(&table, rows[i].percent);
		vp_table_count(&table, rows[i].count);
		vp_table_text(&table, rows[i].text);
	}
	vp_render_table_text(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out), "     %   N  Long header\n"
						  "10.00%   -  -\n"
						  " 0.00%   7  b\n"
						  " 1.24%  99  c\n");
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

static void expect_fitted(const struct vp_table *table, size_t width, const char *text)
{
	struct vp_buffer out = {0};

	vp_render_table_fitted(table, width, false, &out);
	assert_string_equal(vp_buffer_text(&out), text);
	vp_buffer_deinit(&out);
}

/* Columns that are small everywhere go first, until the rest fits; others than percentages and
 * durations stay. */
static void test_fitted(void **state)
{
	static const struct {
		size_t width;
		const char *text;
	} cases[] = {
	    {0, "VM   poll  guest  Longest\ng1  0.50%  9.00%     2 ns\n"},
	    {25, "VM   poll  guest  Longest\ng1  0.50%  9.00%     2 ns\n"},
	    {24, "VM  guest  Longest\ng1  9.00%     2 ns\n(narrow terminal: without poll; -v shows "
		 "all)\n"},
	    {17,
	     "VM  Longest\ng1     2 ns\n(narrow terminal: without poll, guest; -v shows all)\n"},
	    {1, "VM\ng1\n(narrow terminal: without poll, guest, Longest; -v shows all)\n"},
	};
	struct vp_table table = {0};

	vp_table_column_add(&table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "poll_percent", "poll", "%", VP_CELL_PERCENT);
	vp_table_column_add(&table, "guest_percent", "guest", "%", VP_CELL_PERCENT);
	vp_table_column_add(&table, "longest_ns", "Longest", "ns", VP_CELL_DURATION);
	vp_table_column_add_old(&table, "old_ns", VP_CELL_DURATION);
	vp_table_text(&table, "g1");
	vp_table_percent(&table, 0.5);
	vp_table_percent(&table, 9);
	vp_table_count(&table, 2);
	vp_table_count(&table, 7);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		expect_fitted(&table, cases[i].width, cases[i].text);
	vp_table_deinit(&table);
}

/* A table names the columns that go first, of any type; what fits in the end stays. */
static void test_fitted_by_name(void **state)
{
	static const char *const least[] = {"count", "cgroup", "percent", NULL};
	static const struct {
		size_t width;
		const char *text;
	} cases[] = {
	    {35, "Thief   Cgroup  Percent  Count\nbackup  a         9.00%      3\n"},
	    {28,
	     "Thief   Cgroup  Percent\nbackup  a         9.00%\n(narrow terminal: without Count; "
	     "-v shows all)\n"},
	    {22,
	     "Thief   Percent  Count\nbackup    9.00%      3\n(narrow terminal: without Cgroup; "
	     "-v shows all)\n"},
	    {15, "Thief   Percent\nbackup    9.00%\n(narrow terminal: without Count, Cgroup; "
		 "-v shows all)\n"},
	};
	struct vp_table table = {.least = least};

	vp_table_column_add(&table, "thief", "Thief", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "cgroup", "Cgroup", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "percent", "Percent", "%", VP_CELL_PERCENT);
	vp_table_column_add(&table, "count", "Count", "", VP_CELL_COUNT);
	vp_table_text(&table, "backup");
	vp_table_text(&table, "a");
	vp_table_percent(&table, 9);
	vp_table_count(&table, 3);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		expect_fitted(&table, cases[i].width, cases[i].text);
	vp_table_deinit(&table);
}

/* A colour ends before its line does. */
static void test_colour(void **state)
{
	struct vp_table table = {0};
	struct vp_buffer out = {0};

	vp_table_column_add(&table, "percent", "Percent", "%", VP_CELL_PERCENT);
	vp_table_percent(&table, 9);
	vp_render_table_text(&table, true, &out);
	assert_string_equal(vp_buffer_text(&out), "Percent\n\033[31m  9.00%\033[m\n");
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

/* The longest bar is that of the largest sum; a row with any count has a bar. */
static void test_histogram(void **state)
{
	static const uint64_t counts[][2] = {{1, 0}, {60, 140}, {0, 0}, {VP_CELL_NO_COUNT, 50}};
	struct vp_table table = {0};
	struct vp_buffer out = {0};

	vp_table_column_add(&table, "from_ns", "From", "ns", VP_CELL_DURATION);
	vp_table_column_add(&table, "one", "One", "", VP_CELL_COUNT);
	vp_table_column_add(&table, "two", "Two", "", VP_CELL_COUNT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(counts); i++) {
		vp_table_count(&table, 1);
		vp_table_count(&table, counts[i][0]);
		vp_table_count(&table, counts[i][1]);
	}
	vp_render_histogram_text(&table, 0, false, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "From  One  Two  Histogram\n"
			    "1 ns    1    0  *\n"
			    "1 ns   60  140  ****************************************\n"
			    "1 ns    0    0  \n"
			    "1 ns    -   50  **********\n");
	out.size = 0;
	vp_render_histogram_text(&table, 36, false, &out);
	assert_string_equal(vp_buffer_text(&out), "From  One  Two  Histogram\n"
						  "1 ns    1    0  *\n"
						  "1 ns   60  140  ********************\n"
						  "1 ns    0    0  \n"
						  "1 ns    -   50  *****\n");
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

/* A key of an earlier release is in CSV and not in text, also without columns of zeros. */
static void test_old_keys(void **state)
{
	struct vp_table table = {0}, shown;
	struct vp_buffer out = {0};

	vp_table_column_add(&table, "new_ns", "New", "ns", VP_CELL_DURATION);
	vp_table_column_add(&table, "zero_ns", "Zero", "ns", VP_CELL_DURATION);
	vp_table_column_add_old(&table, "old_ns", VP_CELL_DURATION);
	vp_table_without_zeros(&table, &shown); /* no rows: all that have a heading */
	assert_int_equal(shown.columns.count, 2);
	vp_table_deinit(&shown);
	vp_table_count(&table, 5);
	vp_table_count(&table, 0);
	vp_table_count(&table, 6);
	vp_render_table_csv(&table, true, &out);
	assert_string_equal(vp_buffer_text(&out), "new_ns,zero_ns,old_ns\n5,0,6\n");
	out.size = 0;
	vp_render_table_text(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out), " New  Zero\n5 ns     0\n");
	out.size = 0;
	vp_table_without_zeros(&table, &shown);
	assert_int_equal(shown.columns.count, 1);
	assert_string_equal(shown.columns.at[0].key, "new_ns");
	vp_buffer_deinit(&out);
	vp_table_deinit(&shown);
	vp_table_deinit(&table);
}

/* Rows with less than a percentage are left out, and counted; a table without that column keeps
 * all.
 */
static void test_without_small(void **state)
{
	struct vp_table table = {0}, large;

	vp_table_column_add(&table, "name", "Name", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "percent", "Percent", "%", VP_CELL_PERCENT);
	for (size_t i = 0; i < 4; i++) {
		vp_table_text(&table, i == 2 ? "small" : "large");
		vp_table_percent(&table, i == 2 ? 0.0499 : 0.05);
	}
	assert_int_equal(vp_table_without_small(&table, "percent", 0.05, &large), 1);
	assert_int_equal(vp_table_rows(&large), 3);
	for (size_t row = 0; row < 3; row++)
		assert_string_equal(large.cells.at[2 * row].text, "large");
	vp_table_deinit(&large);
	assert_int_equal(vp_table_without_small(&table, "name_of_none", 0.05, &large), 0);
	assert_int_equal(vp_table_rows(&large), 4);
	vp_table_deinit(&large);
	vp_table_deinit(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fitted),
	    cmocka_unit_test(test_fitted_by_name),
	    cmocka_unit_test(test_colour),
	    cmocka_unit_test(test_histogram),
	    cmocka_unit_test(test_old_keys),
	    cmocka_unit_test(test_without_small),
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_csv_and_folded),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_summary),
	    cmocka_unit_test(test_summary_numbers),
	    cmocka_unit_test(test_csv_cells),
	    cmocka_unit_test(test_script),
	    cmocka_unit_test(test_jsonl),
	    cmocka_unit_test(test_export_ends_at_first_error),
	    cmocka_unit_test(test_no_chains),
	    cmocka_unit_test(test_formats),
	    cmocka_unit_test(test_widths),
	    cmocka_unit_test(test_wide_header),
	    cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
