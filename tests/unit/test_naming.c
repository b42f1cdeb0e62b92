/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which symbol map names what, and how the clocks of two guests relate to the host's. */
#include "unit.h"

#include "analyze/report/report_make.h"
#include "make_recording.h"

#define NAME "test_naming.rec"
#define SECOND 1000000000ULL

static struct vp_report report;

/* The host's counter is its clock, in ns; the guests' clocks are a second behind. */
static void put_clock(struct made *made, uint64_t tick)
{
	struct vp_clock_sync record = {.time = MADE_START + tick * MADE_PERIOD,
				       .id = VP_ID_clock_sync,
				       .error_ns = 20,
				       .tsc = MADE_START + tick * MADE_PERIOD,
				       .realtime = 5 * SECOND + tick * MADE_PERIOD};

	vp_trace_append(made->writer, vp_stream_of_pcpu(0), &record);
}

/* Samples at 1.3, 1.5 and 1.7 s of vCPU 0 of vm0 and of vCPU 1 of vm1, all of them at one root. */
static void make(bool with_counters)
{
	static const char first[] = "vperf-maps 1\nmachine guest -\n"
				    "clock 500000000 1500000000 30\n"
				    "a 0 71 1000 400000000 600000000 early\n"
				    "a 1 72 1000 600000000 0 late\n"
				    "m 0 400000 401000 0 0 - /bin/early\n"
				    "m 1 400000 401000 0 0 - /bin/late\n"
				    "i - /bin/early\ns 0 100 early_code\n"
				    "i - /bin/late\ns 0 100 late_code\nend 11\n";
	static const char second[] = "vperf-maps 1\nmachine guest -\n"
				     "clock 500000000 1600000000 40\n"
				     "a 0 81 2000 200000000 400000000 one\n"
				     "a 1 82 2000 600000000 0 two\n"
				     "m 0 400000 401000 0 0 - /bin/one\n"
				     "m 1 400000 401000 0 0 - /bin/two\n"
				     "i - /bin/one\ns 0 100 one_code\n"
				     "i - /bin/two\ns 0 100 two_code\nend 11\n";
	struct made made;

	made_begin(&made, NAME, 2);
	for (unsigned vm = 0; with_counters && vm < 2; vm++)
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
			struct vp_vcpu *at = vp_vm_vcpu(&made.vms.at[vm], vcpu);
			at->has_tsc = true;
			at->tsc_offset = vm * (SECOND / 10);
		}
	put_clock(&made, 0);
	for (uint64_t tick = 300; tick < 800; tick += 200) {
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
		made_guest(&made, 0, tick, 1, 1, VP_MODE_GUEST_USER, MADE_INTR);
	}
	put_clock(&made, 900);
	made_end(&made, 1000);
	temporary_file(NAME "/guest-vm0.maps", first, sizeof(first) - 1);
	temporary_file(NAME "/guest-vm1.maps", second, sizeof(second) - 1);
}

static void look(struct vp_naming_options naming)
{
	const struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};

	naming.directory = NAME;
	expect_no_error(vp_report_make(&naming, &options, &report));
}

static void expect_row(uint32_t vm, const char *function, uint64_t samples)
{
	uint64_t found = 0;

	vp_vec_each (&report.profile.rows, row)
		if (row->vm == vm &&
		    !strcmp(vp_profile_text(&report.profile, row->function), function))
			found += row->samples;
	assert_int_equal(found, samples);
}

static bool has_note(const char *words)
{
	vp_vec_each (&report.notes, note)
		if (strstr(*note, words))
			return true;
	return false;
}

/* Through the counters: a root is its process's at the time of the sample. */
static void test_clocks_by_counter(void **state)
{
	uint64_t from, to;

	make(true);
	look((struct vp_naming_options){0});
	for (uint32_t vm = 0; vm < 2; vm++) {
		const struct vp_clock_map *clock = &report.naming.vms.at[vm].clock;
		assert_int_equal(clock->basis, VP_CLOCK_BY_TSC);
		assert_int_equal(clock->instants, 1);
		assert_int_equal(clock->guest_ns[0], SECOND / 2);
		assert_int_equal(clock->host_ns[0], SECOND / 2 * 3);
		/* The reads, and half a second of drift. */
		assert_int_equal(clock->error_ns, 40 + 30 + 10 * vm + SECOND / 2 / 2000);
		assert_true(report.naming.vms.at[vm].complete);
	}
	expect_row(0, "early_code", 1);
	expect_row(0, "late_code", 1);
	expect_row(0, "0x400000", 1); /* at 1.3 s nobody had it */
	expect_row(1, "one_code", 1);
	expect_row(1, "two_code", 1);
	expect_row(1, "0x400010", 1);
	assert_false(has_note("clock"));
	const struct vp_naming_machine *machine = vp_naming_machine(&report.naming, 1);
	vp_naming_lifetime(machine, 0, &from, &to);
	assert_int_equal(from, SECOND / 10 * 12 + 1000);
	assert_int_equal(to, SECOND / 10 * 14 - 1000);
	vp_naming_lifetime(machine, 1, &from, &to);
	assert_int_equal(from, SECOND / 10 * 16 + 1000);
	assert_true(to == UINT64_MAX);
	/* With two instants, the guest's clock may have another speed. */
	struct vp_naming_machine slow = *machine;
	slow.clock = (struct vp_clock_map){
	    .basis = VP_CLOCK_BY_TSC,
	    .instants = 2,
	    .guest_ns = {SECOND / 10, SECOND / 10 * 3},
	    .host_ns = {10 * SECOND, 10 * SECOND + SECOND / 10 * 4},
	};
	vp_naming_lifetime(&slow, 0, &from, &to);
	assert_int_equal(from, SECOND / 10 * 102 + 1000);
	assert_int_equal(to, SECOND / 10 * 106 - 1000);
	vp_naming_lifetime(machine, 2, &from, &to); /* there is none: good for once */
	assert_true(from > to);
	assert_ptr_equal(vp_naming_machine(&report.naming, VP_NONE), &report.naming.host);
	assert_ptr_equal(vp_naming_machine(&report.naming, 0), &report.naming.vms.at[0]);
	assert_null(vp_naming_machine(&report.naming, 2)->names);
	vp_report_deinit(&report);
}

/* Without them a dump that was made at the end: a second more or less. */
static void test_clocks_by_dump(void **state)
{
	make(false);
	look((struct vp_naming_options){0});
	const struct vp_clock_map *clock = &report.naming.vms.at[1].clock;
	assert_int_equal(clock->basis, VP_CLOCK_BY_DUMP);
	assert_int_equal(clock->guest_ns[0], SECOND / 2);
	assert_int_equal(clock->host_ns[0], 3 * SECOND);
	assert_int_equal(clock->error_ns, SECOND);
	assert_true(has_note("VM 'vm0': the guest's clock is accurate to 1 s only"));
	assert_true(has_note("VM 'vm1': the guest's clock is accurate to 1 s only"));
	vp_report_deinit(&report);
}

/* A map that the user names, of some other time: lives are not compared. */
static void test_given_maps(void **state)
{
	static const char given[] = "vperf-maps 1\nmachine guest -\nclock 1 5\n"
				    "a 0 91 2000 5000000000000 6000000000000 given\n"
				    "m 0 400000 401000 0 0 - /bin/given\n"
				    "i - /bin/given\ns 0 100 given_code\nend 7\n";
	static const char kernel[] = "ffffffff81000000 T given_kernel\nffffffff81001000 T end\n";
	struct vp_naming_options naming = {0};
	const struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};

	make(false);
	temporary_file("test_naming.maps", given, sizeof(given) - 1);
	temporary_file("test_naming.map", kernel, sizeof(kernel) - 1);
	vp_vec_push(&naming.maps, ((struct vp_naming_file){"vm1", "test_naming.maps"}));
	vp_vec_push(&naming.kernels, ((struct vp_naming_file){"vm0", "test_naming.map"}));
	vp_vec_push(&naming.kernels, ((struct vp_naming_file){"host", "test_naming.map"}));
	look(naming);
	expect_row(1, "given_code", 3);
	assert_int_equal(report.naming.vms.at[1].clock.basis, VP_CLOCK_UNKNOWN);
	assert_true(has_note("VM 'vm1': the guest's clock cannot be converted"));
	assert_false(has_note("VM 'vm0': the guest's clock cannot be converted"));
	assert_non_null(report.naming.vms.at[0].kernel);
	assert_null(report.naming.vms.at[1].kernel);
	assert_non_null(report.naming.host.kernel);
	vp_report_deinit(&report);
	/* Whose file it is has to be a VM, or with kernels the host. */
	naming.directory = NAME;
	naming.kernels.at[1].vm = "vm2";
	expect_error(vp_report_make(&naming, &options, &report),
		     "--kallsyms vm2=test_naming.map: the recording has no VM named 'vm2'");
	naming.kernels.count = 1;
	naming.maps.at[0].vm = "host";
	expect_error(vp_report_make(&naming, &options, &report),
		     "--guest host=test_naming.maps: the recording has no VM named 'host'");
	naming.maps.at[0] = (struct vp_naming_file){"vm1", "nowhere"};
	expect_error(vp_report_make(&naming, &options, &report),
		     "cannot use 'nowhere' for VM 'vm1': no such file");
	vp_vec_deinit(&naming.maps);
	vp_vec_deinit(&naming.kernels);
	naming.symfs = "test_naming.map"; /* no folder */
	expect_error(vp_report_make(&naming, &options, &report), "test_naming.map");
	naming.symfs = "nowhere";
	expect_error(vp_report_make(&naming, &options, &report), "nowhere");
	naming.symfs = NAME;
	look(naming);
	vp_report_deinit(&report);
}

/* What is missing in a map, or malformed, is said of the machine. */
static void test_states(void **state)
{
	static const char host[] = "vperf-maps 1\nmachine host -\nn something is missing\nend 3\n";
	static const char cut[] =
	    "vperf-maps 1\nmachine guest -\nk nonsense\nk ffffffff81000000 0 T x\n";

	make(false);
	temporary_file(NAME "/host.maps", host, sizeof(host) - 1);
	temporary_file(NAME "/guest-vm1.maps", cut, sizeof(cut) - 1);
	unlink(NAME "/guest-vm0.maps");
	look((struct vp_naming_options){0});
	assert_string_equal(report.naming.vms.at[0].state, "none");
	assert_false(report.naming.vms.at[0].complete);
	assert_string_equal(report.naming.vms.at[1].state, "cut off");
	assert_true(has_note("VM 'vm1': the symbol map is truncated"));
	assert_true(has_note("1 malformed lines were skipped"));
	vp_report_deinit(&report);
	temporary_file(NAME "/guest-vm0.maps", "nonsense\n", 9);
	look((struct vp_naming_options){0});
	assert_null(report.naming.vms.at[0].names);
	assert_true(has_note("VM 'vm0': no symbol map ("));
	vp_report_deinit(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_clocks_by_counter),
	    cmocka_unit_test(test_clocks_by_dump),
	    cmocka_unit_test(test_given_maps),
	    cmocka_unit_test(test_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
