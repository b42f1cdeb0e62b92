/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each format prints of one small recording, byte for byte. */
#include "unit.h"

#include <json-c/json.h>
#include <stdio.h>

#include "make_recording.h"
#include "render/report.h"
#include "render/summary.h"
#include "render/table.h"

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
	    shares, "Total samples: 10   OS:USER:IDLE:steal = 0.00% : 60.00% : 20.00% : 20.00%\n"
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
	assert_non_null(strstr(vp_buffer_text(&out), "(3 more rows)"));
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

static void test_csv_and_folded(void **state)
{
	struct vp_report report = report_on(VP_VIEW_UNIFIED, NULL);
	struct vp_buffer out = {0};

	vp_render_report_csv(&report, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "percent,samples,kind,vm,process,module,function\n"
			    "60,6,user,vm0,\"wo;rk,er\",/usr/bin/worker,compute\n"
			    "20,2,os,host,,,0xffffffff81000000\n"
			    "10,1,user,vm1,cr3:0x2000,,0x400010\n"
			    "10,1,idle,host,,,[idle]\n");
	out.size = 0;
	vp_render_report_folded(&report, &out);
	assert_string_equal(vp_buffer_text(&out), "[vm0];wo:rk,er;compute 6\n"
						  "host;[unknown];0xffffffff81000000_[k] 2\n"
						  "[vm1];cr3:0x2000;0x400010 1\n"
						  "host;[idle] 1\n");
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
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

	vp_render_report_json(&report, &out);
	struct json_object *object = json_tokener_parse(vp_buffer_text(&out));
	assert_non_null(object);
	assert_string_equal(json_object_get_string(json_object_object_get(object, "vm")), "vm0");
	assert_int_equal(json_object_get_int(json_object_object_get(object, "samples")), 10);
	assert_true(number(object, "shares", "user") == 60.0);
	assert_true(number(object, "shares", "steal") == 20.0);
	assert_true(number(object, "routes", "cr3") == 6.0);
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
	vp_render_summary_text(&summary, &out);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_csv_and_folded),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
