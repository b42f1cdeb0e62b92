/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The three views on recordings whose ticks are known one by one. */
#include "unit.h"

#include <stdio.h>

#include "analyze/common/notes.h"
#include "analyze/report/report_make.h"
#include "made_report.h"

#define NAME "test_analyze.rec"

static struct vp_report view(const struct vp_profile_options *options)
{
	return made_report(NAME, options);
}

static struct vp_report guest_view(const char *vm)
{
	return view(&(struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = vm});
}

static void expect_shares(const struct vp_profile_part *part, uint64_t kernel, uint64_t user,
			  uint64_t idle, uint64_t steal)
{
	assert_int_equal(part->kinds[VP_KIND_KERNEL], kernel);
	assert_int_equal(part->kinds[VP_KIND_USER], user);
	assert_int_equal(part->kinds[VP_KIND_IDLE], idle);
	assert_int_equal(part->kinds[VP_KIND_STEAL], steal);
	assert_int_equal(part->samples, kernel + user + idle + steal);
}

static void expect_row(const struct vp_report *report, const char *function, uint64_t samples)
{
	const struct vp_profile_row *row = made_report_row(report, function);

	if (!row)
		fail_msg("there is no row '%s'", function);
	assert_int_equal(row->samples, samples);
}

/* Every sum that has to be the whole is the whole. */
static void expect_closed(const struct vp_report *report)
{
	vp_vec_each (&report->profile.parts, part) {
		uint64_t kinds = 0, rows = 0;
		for (size_t i = 0; i < VP_KINDS; i++)
			kinds += part->kinds[i];
		for (size_t i = 0; i < part->rows; i++)
			rows += report->profile.rows.at[part->first_row + i].samples;
		assert_int_equal(kinds, part->samples);
		assert_int_equal(rows, part->samples);
	}
	vp_vec_each (&report->profile.rows, row) {
		uint64_t reasons = 0;
		for (uint32_t i = 0; i < row->reasons; i++)
			reasons += report->profile.reasons.at[row->first_reason + i].count;
		assert_int_equal(reasons, row->kind == VP_KIND_STEAL ? row->samples : 0);
	}
}

/* Two vCPUs of one VM take turns on pCPU 1: ticks 0-9 vCPU 0, 10-19 vCPU 1, and so on. */
static void test_two_vcpus_on_one_pcpu(void **state)
{
	struct made made;

	made_begin(&made, NAME, 1);
	for (uint64_t turn = 0; turn < 4; turn++) {
		unsigned vcpu = turn % 2;
		made_in(&made, 1, 10 * turn, 0, vcpu, MADE_INTR);
		for (uint64_t i = 0; i < 10; i++)
			made_guest(&made, 1, 10 * turn + i, 0, vcpu,
				   i < 2 ? VP_MODE_GUEST_KERNEL : VP_MODE_GUEST_USER, MADE_INTR);
		made.offset = MADE_PERIOD / 2;
		made_out(&made, 1, 10 * turn + 9, 0, vcpu, MADE_INTR, false);
		made.offset = 0;
	}
	made_end(&made, 40);

	struct vp_report report = guest_view("vm0");
	/* vCPU 0 has all 40 ticks; vCPU 1 is first seen at tick 10. */
	expect_shares(&report.profile.parts.at[0], 8, 32, 0, 30);
	expect_row(&report, "[steal] (on vcpu0)", 10);
	expect_row(&report, "[steal] (on vcpu1)", 20);
	expect_closed(&report);
	vp_report_deinit(&report);

	struct vp_profile_options split = {.view = VP_VIEW_GUEST, .per_vcpu = true};
	report = view(&split);
	assert_int_equal(report.profile.parts.count, 2);
	expect_shares(&report.profile.parts.at[0], 4, 16, 0, 20);
	expect_shares(&report.profile.parts.at[1], 4, 16, 0, 10);
	expect_closed(&report);
	vp_report_deinit(&report);

	split = (struct vp_profile_options){.view = VP_VIEW_GUEST, .has_vcpu = true, .vcpu = 1};
	report = view(&split);
	expect_shares(&report.profile.parts.at[0], 4, 16, 0, 10);
	vp_report_deinit(&report);
}

static void test_three_vms_steal_from_each_other(void **state)
{
	struct made made;

	made_begin(&made, NAME, 3);
	for (unsigned vm = 0; vm < 3; vm++)
		made_in(&made, 0, 0, vm, 0, MADE_INTR);
	for (uint64_t tick = 0; tick < 300; tick++)
		made_guest(&made, 0, tick, (unsigned)(tick % 3), 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 300);

	struct vp_report report = guest_view("vm1");
	expect_shares(&report.profile.parts.at[0], 0, 100, 0, 200);
	expect_row(&report, "[steal] (vm0)", 100);
	expect_row(&report, "[steal] (vm2)", 100);
	expect_closed(&report);
	vp_report_deinit(&report);

	report = guest_view("3000");
	expect_row(&report, "[steal] (vm1)", 100);
	vp_report_deinit(&report);

	report = view(&(struct vp_profile_options){.view = VP_VIEW_HOST});
	assert_int_equal(report.profile.parts.at[0].samples, 300);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_VM], 300);
	expect_row(&report, "[vm1]", 100);
	expect_closed(&report);
	vp_report_deinit(&report);
}

/* Runs, halts, is polled for, wakes; then it is the host's fault. */
static void test_halt_is_not_steal(void **state)
{
	struct made made;

	made_begin(&made, NAME, 1);
	for (uint64_t tick = 0; tick < 10; tick++)
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_in_kvm(&made, 0, 10, 0, 0, MADE_HLT); /* halt-polling */
	made.offset = 1;
	made_out(&made, 0, 10, 0, 0, MADE_HLT, true);
	made.offset = 0;
	for (uint64_t tick = 11; tick < 30; tick++)
		made_idle(&made, 0, tick);
	made_host(&made, 0, 30, 77, VP_MODE_KERNEL); /* does not hurt a halted vCPU */
	made_in(&made, 0, 31, 0, 0, MADE_HLT);
	made.offset = 2;
	made_guest(&made, 0, 31, 0, 0, VP_MODE_GUEST_KERNEL, MADE_INTR);
	made_in_kvm(&made, 0, 32, 0, 0, MADE_NPF);
	made_in_vmm(&made, 0, 33, 0, 0);
	made_out(&made, 0, 34, 0, 0, MADE_NPF, true); /* waits for a page, not for work */
	made_idle(&made, 0, 35);
	made_end(&made, 36);

	struct vp_report report = guest_view(NULL);
	expect_shares(&report.profile.parts.at[0], 1, 10, 21, 3);
	expect_row(&report, "[idle]", 21);
	expect_row(&report, "[steal] (host)", 3);
	const struct vp_profile_row *row = made_report_row(&report, "[steal] (host)");
	assert_int_equal(row->reasons, 1);
	assert_int_equal(report.profile.reasons.at[row->first_reason].exit.reason, MADE_NPF);
	expect_closed(&report);
	vp_report_deinit(&report);

	report = view(&(struct vp_profile_options){.view = VP_VIEW_UNIFIED});
	assert_int_equal(report.profile.parts.at[0].samples, 35);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_VM], 11);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_IDLE], 20);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_USER], 1);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_KERNEL], 3);
	expect_closed(&report);
	vp_report_deinit(&report);
}

/* Where exits are not known (Linux 5.10), a sleeping thread is idle and a waiting one is not. */
static void test_without_exit_reasons(void **state)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made_guest(&made, 0, 0, 0, 0, VP_MODE_GUEST_USER, MADE_UNKNOWN);
	made_out(&made, 0, 1, 0, 0, MADE_UNKNOWN, true);
	for (uint64_t tick = 1; tick < 6; tick++)
		made_guest(&made, 0, tick, 1, 0, VP_MODE_GUEST_USER, MADE_UNKNOWN);
	made_in(&made, 0, 6, 0, 0, MADE_UNKNOWN);
	made_guest(&made, 0, 6, 0, 0, VP_MODE_GUEST_USER, MADE_UNKNOWN);
	made_out(&made, 0, 7, 0, 0, MADE_UNKNOWN, false);
	made_guest(&made, 0, 7, 1, 0, VP_MODE_GUEST_USER, MADE_UNKNOWN);
	made_end(&made, 8);

	struct vp_report report = guest_view("vm0");
	expect_shares(&report.profile.parts.at[0], 0, 2, 5, 1);
	expect_row(&report, "[steal] (vm1)", 1);
	expect_closed(&report);
	vp_report_deinit(&report);
}

/* The vCPU moves from pCPU 0 to pCPU 1 at tick 10: from then on it has the ticks of pCPU 1. */
static void test_moves_between_pcpus(void **state)
{
	struct made made;

	made_begin(&made, NAME, 1);
	for (uint64_t tick = 0; tick < 20; tick++) {
		if (tick < 10) {
			made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
			made_host(&made, 1, tick, 77, VP_MODE_USER);
			continue;
		}
		if (tick == 10) {
			made_out(&made, 0, tick, 0, 0, MADE_INTR, false);
			made_in(&made, 1, tick, 0, 0, MADE_INTR);
		}
		made_idle(&made, 0, tick);
		if (tick < 15)
			made_guest(&made, 1, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
		else
			made_host(&made, 1, tick, 77, VP_MODE_USER);
	}
	made_end(&made, 20);

	struct vp_report report = guest_view(NULL);
	/* At tick 10 the order is: out, pCPU 0's tick (the old home's last), in, pCPU 1's tick. */
	expect_shares(&report.profile.parts.at[0], 0, 15, 0, 6);
	expect_row(&report, "[steal] (host)", 6);
	expect_closed(&report);
	vp_report_deinit(&report);
}

/* A VM that starts late has no ticks before, and one that ends has none after. */
static void test_comes_and_goes(void **state)
{
	struct made made;

	made_begin(&made, NAME, 1);
	made.vms.at[0].end = MADE_START + 59 * MADE_PERIOD;
	for (uint64_t tick = 0; tick < 100; tick++) {
		if (tick >= 50 && tick < 60)
			made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
		else
			made_idle(&made, 0, tick);
	}
	made_end(&made, 100);

	struct vp_report report = guest_view("vm0");
	expect_shares(&report.profile.parts.at[0], 0, 10, 0, 0);
	vp_report_deinit(&report);
}

/* A hardware counter does not tick on idle pCPUs: the gaps are filled in. */
static void test_gaps_are_filled(void **state)
{
	struct made made;

	made_begin(&made, NAME, 1);
	made.about.by_time = false;
	made.about.weighting = VP_WEIGHTING_TIME;
	made.about.pcpus = 3;
	for (uint64_t tick = 1; tick <= 10; tick++)
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_HLT);
	made_host(&made, 1, 100, 77, VP_MODE_USER);
	made_end(&made, 100);

	struct vp_report report = guest_view(NULL);
	expect_shares(&report.profile.parts.at[0], 0, 10 * MADE_PERIOD, 90 * MADE_PERIOD, 0);
	vp_report_deinit(&report);

	report = view(&(struct vp_profile_options){.view = VP_VIEW_HOST});
	/* 100 ticks for each of three pCPUs, the third without a stream. */
	assert_int_equal(report.profile.parts.at[0].samples, 300 * MADE_PERIOD);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_VM], 10 * MADE_PERIOD);
	assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_USER], MADE_PERIOD);
	expect_closed(&report);
	vp_report_deinit(&report);
}

/* The kernel finds the period of a frequency by trying: at first samples come too densely. */
static void test_dense_samples_weigh_less(void **state)
{
	struct made made;

	made_begin(&made, NAME, 0);
	made.about.by_time = false;
	made.about.weighting = VP_WEIGHTING_TIME;
	made.about.pcpus = 1;
	for (made.offset = 100; made.offset <= 50000; made.offset += 100)
		made_host(&made, 0, 0, 77, VP_MODE_KERNEL);
	made.offset = 50000;
	for (uint64_t tick = 1; tick < 100; tick++)
		made_host(&made, 0, tick, 77, VP_MODE_USER);
	made_end(&made, 100);

	struct vp_report report = view(&(struct vp_profile_options){.view = VP_VIEW_HOST});
	const struct vp_profile_part *whole = &report.profile.parts.at[0];
	assert_int_equal(whole->samples, 100 * MADE_PERIOD);
	assert_int_equal(whole->kinds[VP_KIND_KERNEL], 50000);
	assert_int_equal(whole->kinds[VP_KIND_USER], 99 * MADE_PERIOD);
	assert_int_equal(whole->kinds[VP_KIND_IDLE], MADE_PERIOD - 50000); /* up to the end */
	assert_int_equal(report.profile.counts.samples, 599);
	expect_closed(&report);
	vp_report_deinit(&report);
}

static void test_events_weigh_by_their_periods(void **state)
{
	struct made made;

	made_begin(&made, NAME, 0);
	made.about.by_time = false;
	made.about.weighting = VP_WEIGHTING_EVENTS;
	made.about.events = 7;
	free(made.about.trigger);
	made.about.trigger = strdup("cache-misses");
	made_period(&made, 0, 1, 1000000);
	made_host(&made, 0, 1, 77, VP_MODE_USER);
	made_host(&made, 0, 50, 77, VP_MODE_KERNEL); /* no period: the recording's */
	made_period(&made, 1, 60, 1000);
	made_host(&made, 1, 60, 77, VP_MODE_USER);
	made_end(&made, 100);

	struct vp_report report = view(&(struct vp_profile_options){.view = VP_VIEW_HOST});
	const struct vp_profile_part *whole = &report.profile.parts.at[0];
	char amount[VP_AMOUNT_SIZE];
	assert_int_equal(whole->samples, 1001007); /* gaps are nobody's */
	assert_int_equal(whole->kinds[VP_KIND_KERNEL], 7);
	assert_string_equal(vp_report_amount(&report, whole->samples, amount),
			    "1001007 cache-misses");
	assert_string_equal(vp_report_weight_key(&report), "events");
	expect_closed(&report);
	vp_report_deinit(&report);
}

static void test_columns_and_filters(void **state)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made_task(&made, 0, 0, 77, 77, "a\033[31mb");
	made_host(&made, 0, 0, 77, VP_MODE_USER);
	made_host(&made, 0, 1, 77, VP_MODE_KERNEL);
	made_task(&made, 0, 2, 78, 78, "other");
	made_host(&made, 0, 2, 78, VP_MODE_USER);
	made_guest(&made, 0, 3, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 4, 1, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 5);

	struct vp_profile_options by_comm = {.view = VP_VIEW_UNIFIED, .columns = VP_COLUMN_PROCESS};
	struct vp_report report = view(&by_comm);
	assert_int_equal(report.profile.rows.count, 4);
	const struct vp_profile_row *first = &report.profile.rows.at[0];
	assert_int_equal(first->samples, 2);
	assert_int_equal(first->pid, 77);
	assert_int_equal(first->kind, VP_NONE);
	assert_string_equal(vp_profile_text(&report.profile, first->process), "a?[31mb");
	vp_report_deinit(&report);

	struct vp_profile_options filters[] = {
	    {.view = VP_VIEW_HOST, .comm = "other"},
	    {.view = VP_VIEW_HOST, .pid = 78},
	    {.view = VP_VIEW_UNIFIED, .vm = "vm1"},
	};
	for (size_t i = 0; i < VP_ARRAY_SIZE(filters); i++) {
		report = view(&filters[i]);
		assert_int_equal(report.profile.rows.count, 1);
		assert_int_equal(report.profile.parts.at[0].samples, 5);
		vp_report_deinit(&report);
	}
}

/* Interrupted before the list of VMs was written: they are known by their records. */
static void test_unlisted_vms(void **state)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 0);
	for (uint64_t tick = 0; tick < 10; tick++)
		made_guest(&made, 0, tick, tick % 2, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 0);

	static const char *const names[] = {"pid-1000", "2000"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		report = guest_view(names[i]);
		assert_int_equal(report.profile.parts.at[0].kinds[VP_KIND_USER], 5);
		expect_closed(&report);
		vp_report_deinit(&report);
	}
	struct vp_profile_options options = {.view = VP_VIEW_GUEST};
	expect_error(vp_report_make(&naming, &options, &report), "pid-1000, pid-2000");
	options.vm = "vm0";
	expect_error(vp_report_make(&naming, &options, &report), "pid-1000 (1000)");
}

/* A vCPU that only records know ran in the VMM, then in the guest, first on one pCPU and then on
 * another, whose records end sooner: it is on the second when a process takes the first. */
static void test_unlisted_vcpu_moves(void **state)
{
	struct made made;

	made_begin(&made, NAME, 1);
	made_in_vmm(&made, 0, 1, 0, 2);
	made_guest(&made, 0, 5, 0, 2, VP_MODE_GUEST_USER, MADE_INTR);
	for (uint64_t tick = 21; tick < 31; tick++)
		made_host(&made, 0, tick, 9000, VP_MODE_USER);
	made_in_vmm(&made, 1, 2, 0, 2);
	made_guest(&made, 1, 10, 0, 2, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 31);

	struct vp_report report = guest_view("vm0");
	expect_shares(&report.profile.parts.at[0], 0, 2, 0, 0);
	expect_closed(&report);
	vp_report_deinit(&report);
}

static void test_wrong_requests(void **state)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 2);
	made_end(&made, 1);
	struct vp_profile_options options = {.view = VP_VIEW_GUEST};
	expect_error(vp_report_make(&naming, &options, &report), "vm0, vm1");
	options.vm = "nope";
	expect_error(vp_report_make(&naming, &options, &report), "vm0 (1000), vm1 (2000)");
	options.vm = "vm0";
	vp_vec_push(&naming.maps, ((struct vp_naming_file){"nope", "x"}));
	expect_error(vp_report_make(&naming, &options, &report), "no VM named 'nope'");
	naming.maps.at[0] = (struct vp_naming_file){"vm0", "does-not-exist"};
	expect_error(vp_report_make(&naming, &options, &report), "does-not-exist");
	vp_vec_deinit(&naming.maps);
	naming.directory = "does-not-exist";
	expect_error(vp_report_make(&naming, &options, &report), "does-not-exist");

	made_begin(&made, NAME, 0);
	made_end(&made, 1);
	naming.directory = NAME;
	options.vm = NULL;
	expect_error(vp_report_make(&naming, &options, &report), "no VM");
}

/*
 * Threads are named by the guest's memory at the sample, whatever page table they run on; the root
 * tells the program before an exec from the one after it.
 */
static void test_named_by_memory(void **state)
{
	static const char maps[] =
	    "vperf-maps 1\nmachine guest -\nsource memory\n"
	    "a 0 7 1000 0 1003500000 sh\na 1 7 5000 1003500000 0 prog\n"
	    "m 0 400000 401000 0 0 - /bin/sh\nm 1 400000 401000 0 0 - /prog\n"
	    "i - /bin/sh\ns 100 10 shell\ni - /prog\ns 100 10 work\nend 11\n";
	struct made made;

	made_begin(&made, NAME, 1);
	made_guest_thread(&made, 0, 1, 0, 7, 7, "sh", 0x1000, 0x400100);
	/* The new program's page table tells, though its life is noted to begin later. */
	made_guest_thread(&made, 0, 2, 0, 7, 7, "prog", 0x5000, 0x400100);
	made_guest_thread(&made, 0, 3, 0, 7, 8, "helper", 0x5000, 0x400104);
	/* A kernel thread on a borrowed page table, and a process that was not read. */
	made_guest_thread(&made, 0, 4, 0, 2, 2, "kthreadd", 0x5000, 0x400100);
	made_guest_thread(&made, 0, 5, 0, 9, 9, "gone", 0x9000, 0x400100);
	made_end(&made, 6);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);

	struct vp_report report = guest_view(NULL);
	expect_row(&report, "shell", 1);
	assert_string_equal(
	    vp_profile_text(&report.profile, made_report_row(&report, "shell")->process), "sh");
	uint64_t work = 0;
	vp_vec_each (&report.profile.rows, row)
		if (!strcmp(vp_profile_text(&report.profile, row->function), "work")) {
			const char *process = vp_profile_text(&report.profile, row->process);
			assert_true(!strcmp(process, "prog") || !strcmp(process, "helper"));
			assert_int_equal(row->pid, 7);
			work += row->samples;
		}
	assert_int_equal(work, 2);
	expect_row(&report, "0x400100", 1); /* of two processes: a row for each */
	assert_int_equal(report.profile.routes[VP_ROUTE_MEMORY], 5);
	vp_report_deinit(&report);
}

static bool has_note(const struct vp_report *report, const char *words)
{
	vp_vec_each (&report->notes, note)
		if (strstr(*note, words))
			return true;
	return false;
}

/* What an agent says is added to what the guest's memory told, and does not replace it. */
static void test_agent_beside_memory(void **state)
{
	static const char memory[] = "vperf-maps 1\nmachine guest -\nsource memory\n"
				     "a 0 7 1000 0 0 prog\nm 0 400000 401000 0 0 - /prog\n"
				     "i - /prog\ns 100 10 work\nend 7\n";
	static const char agent[] = "vperf-maps 1\nmachine guest -\n"
				    "a 0 7 1000 0 0 evil\nm 0 400000 401000 0 0 - /prog\n"
				    "i - /prog\ns 100 10 forged\ns 200 10 more\n";
	struct made made;

	made_begin(&made, NAME, 1);
	made_guest_thread(&made, 0, 1, 0, 7, 7, "prog", 0x1000, 0x400104);
	made_guest_thread(&made, 0, 2, 0, 7, 7, "prog", 0x1000, 0x400204);
	made_end(&made, 3);
	temporary_file(NAME "/guest-vm0.maps", memory, sizeof(memory) - 1);
	temporary_file(NAME "/agent-vm0.maps", agent, sizeof(agent) - 1); /* half of an answer */

	struct vp_report report = guest_view(NULL);
	expect_row(&report, "work", 1);
	expect_row(&report, "more", 1);
	assert_true(has_note(&report, "VM 'vm0': names from guest memory, the rest from the "
				      "guest agent"));
	assert_string_equal(report.naming.vms.at[0].agent_state, "cut off");
	vp_report_deinit(&report);
	unlink(NAME "/agent-vm0.maps");
}

/* Notes that differ in their VM only are one. */
static void test_folded_notes(void **state)
{
	static char *const said[] = {"lost",        "VM 'a': one",    "VM 'b': two", "VM 'c': one",
				     "VM 'd': one", "VM 'it's': one", "VM 'e': two"};
	static const char *const expected[] = {
	    "lost", "VMs 'a', 'c', 'd' and 1 more (-v lists them): one", "VMs 'b', 'e': two"};
	vp_sentences notes = {0}, folded = {0};

	for (size_t i = 0; i < VP_ARRAY_SIZE(said); i++)
		vp_vec_push(&notes, said[i]);
	vp_notes_fold(&notes, &folded);
	assert_int_equal(folded.count, VP_ARRAY_SIZE(expected));
	for (size_t i = 0; i < folded.count; i++) {
		assert_string_equal(folded.at[i], expected[i]);
		free(folded.at[i]);
	}
	vp_vec_deinit(&folded);
	vp_vec_deinit(&notes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_named_by_memory),
	    cmocka_unit_test(test_agent_beside_memory),
	    cmocka_unit_test(test_folded_notes),
	    cmocka_unit_test(test_two_vcpus_on_one_pcpu),
	    cmocka_unit_test(test_three_vms_steal_from_each_other),
	    cmocka_unit_test(test_halt_is_not_steal),
	    cmocka_unit_test(test_without_exit_reasons),
	    cmocka_unit_test(test_moves_between_pcpus),
	    cmocka_unit_test(test_comes_and_goes),
	    cmocka_unit_test(test_gaps_are_filled),
	    cmocka_unit_test(test_dense_samples_weigh_less),
	    cmocka_unit_test(test_events_weigh_by_their_periods),
	    cmocka_unit_test(test_columns_and_filters),
	    cmocka_unit_test(test_unlisted_vms),
	    cmocka_unit_test(test_unlisted_vcpu_moves),
	    cmocka_unit_test(test_wrong_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
