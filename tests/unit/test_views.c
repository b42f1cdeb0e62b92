/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each view counts of recordings of two VMs with two vCPUs each: which vCPU's time a tick is,
 * whose fault a blank is, and which names and weights it has.
 */
#include "unit.h"

#include <stdio.h>

#include "made_report.h"

#define NAME "test_views.rec"

static struct vp_report report;

static void look(struct vp_profile_options options)
{
	report = made_report(NAME, &options);
}

static const struct vp_profile_row *row_of(uint32_t number, const char *function)
{
	const struct vp_profile_part *part = &report.profile.parts.at[number];

	for (size_t i = 0; i < part->rows; i++) {
		const struct vp_profile_row *row = &report.profile.rows.at[part->first_row + i];
		if (row->function != VP_NONE &&
		    !strcmp(vp_profile_text(&report.profile, row->function), function))
			return row;
	}
	return NULL;
}

static void expect_row(uint32_t part, const char *function, uint64_t samples)
{
	const struct vp_profile_row *row = row_of(part, function);

	if (!samples) {
		assert_null(row);
		return;
	}
	if (!row)
		fail_msg("there is no row '%s'", function);
	assert_int_equal(row->samples, samples);
}

static void expect_kinds(uint32_t part, uint64_t kernel, uint64_t user, uint64_t idle,
			 uint64_t steal, uint64_t vm)
{
	const struct vp_profile_part *at = &report.profile.parts.at[part];
	const uint64_t expected[VP_KINDS] = {kernel, user, idle, steal, vm};

	assert_memory_equal(at->kinds, expected, sizeof(expected));
	assert_int_equal(at->samples, kernel + user + idle + steal + vm);
}

/* Which part of the profile is that vCPU's. */
static uint32_t part_of(uint32_t vm, uint32_t vcpu)
{
	for (uint32_t i = 0; i < report.profile.parts.count; i++)
		if (report.profile.parts.at[i].vm == vm && report.profile.parts.at[i].vcpu == vcpu)
			return i;
	fail_msg("there is no part of vCPU %u of VM %u", vcpu, vm);
	return 0;
}

/* vCPU 0 of vm0 and vCPU 1 of vm1 share pCPU 0, the others pCPU 1; a task of the host comes in. */
static void make_shared(void)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made_in(&made, 0, 0, 0, 0, MADE_INTR);
	made_in(&made, 0, 0, 1, 1, MADE_NPF);
	made_in(&made, 1, 0, 0, 1, MADE_INTR);
	made_in(&made, 1, 0, 1, 0, MADE_INTR);
	made.offset = 10;
	for (uint64_t tick = 0; tick < 3; tick++)
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	for (uint64_t tick = 3; tick < 8; tick++)
		made_guest(&made, 0, tick, 1, 1, VP_MODE_GUEST_KERNEL, MADE_NPF);
	for (uint64_t tick = 8; tick < 10; tick++)
		made_host(&made, 0, tick, 77, VP_MODE_USER);
	for (uint64_t tick = 0; tick < 7; tick++)
		made_guest(&made, 1, tick, 0, 1, VP_MODE_GUEST_KERNEL, MADE_INTR);
	made_guest(&made, 1, 7, 1, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_host(&made, 1, 8, 77, VP_MODE_KERNEL);
	made_in_kvm(&made, 1, 9, 1, 0, MADE_NPF);
	made_end(&made, 10);
}

static void test_guest_view(void **state)
{
	make_shared();
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm0", .per_vcpu = true});
	assert_int_equal(report.profile.parts.count, 2);
	uint32_t first = part_of(0, 0), second = part_of(0, 1);
	expect_kinds(first, 0, 3, 0, 7, 0);
	expect_row(first, "[steal] (vm1)", 5);
	expect_row(first, "[steal] (host)", 2);
	expect_row(first, "0x400000", 3);
	expect_kinds(second, 7, 0, 0, 3, 0);
	expect_row(second, "[steal] (vm1)", 2); /* KVM at work for it is its, too */
	expect_row(second, "[steal] (host)", 1);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1", .per_vcpu = true});
	first = part_of(1, 0);
	second = part_of(1, 1);
	expect_kinds(first, 0, 1, 0, 9, 0);
	expect_row(first, "[steal] (vm0)", 7);
	expect_row(first, "[steal] (host)", 2); /* its own thread in KVM */
	expect_row(first, "0x400010", 1);
	expect_kinds(second, 5, 0, 0, 5, 0);
	expect_row(second, "[steal] (vm0)", 3);
	expect_row(second, "[steal] (host)", 2);
	/* Why they had left the guest: by row, the most frequent first. */
	const struct vp_profile_row *row = row_of(second, "[steal] (vm0)");
	assert_int_equal(row->reasons, 1);
	assert_int_equal(report.profile.reasons.at[row->first_reason].exit.reason, MADE_NPF);
	assert_int_equal(report.profile.reasons.at[row->first_reason].count, 3);
	row = row_of(first, "[steal] (host)");
	assert_int_equal(row->reasons, 2);
	assert_int_equal(report.profile.reasons.at[row->first_reason].exit.reason, MADE_INTR);
	assert_int_equal(report.profile.reasons.at[row->first_reason + 1].exit.reason, MADE_NPF);
	vp_report_deinit(&report);
	look((struct vp_profile_options){
	    .view = VP_VIEW_GUEST, .vm = "vm1", .has_vcpu = true, .vcpu = 1});
	assert_int_equal(report.profile.parts.count, 1);
	expect_kinds(0, 5, 0, 0, 5, 0);
	expect_row(0, "[steal] (vm0)", 3);
	vp_report_deinit(&report);
	/* With the column, rows of both vCPUs are told apart. */
	look((struct vp_profile_options){
	    .view = VP_VIEW_GUEST, .vm = "vm1", .columns = VP_COLUMN_FUNCTION | VP_COLUMN_VCPU});
	uint64_t of_vcpu[2] = {0};
	vp_vec_each (&report.profile.rows, at)
		if (!strcmp(vp_profile_text(&report.profile, at->function), "[steal] (vm0)"))
			of_vcpu[at->vcpu] += at->samples;
	assert_int_equal(of_vcpu[0], 7);
	assert_int_equal(of_vcpu[1], 3);
	vp_report_deinit(&report);
	/* Of a process there are no blanks. */
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1", .comm = "none"});
	assert_int_equal(report.profile.rows.count, 0);
	expect_kinds(0, 5, 1, 0, 14, 0);
	vp_report_deinit(&report);
}

static void test_host_view(void **state)
{
	make_shared();
	look((struct vp_profile_options){.view = VP_VIEW_HOST});
	expect_kinds(0, 2, 2, 0, 0, 16);
	expect_row(0, "[vm0]", 10);
	expect_row(0, "[vm1]", 6);
	expect_row(0, "0xffffffff82000000", 2);
	expect_row(0, "0xffffffff81000000", 1);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_HOST, .vm = "vm1"});
	expect_row(0, "[vm0]", 0);
	expect_row(0, "[vm1]", 6);
	expect_kinds(0, 2, 2, 0, 0, 16); /* the whole stays the whole */
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_HOST, .pid = 1000});
	expect_row(0, "[vm0]", 10);
	expect_row(0, "[vm1]", 0);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_HOST, .has_vcpu = true, .vcpu = 1});
	expect_row(0, "[vm0]", 7);
	expect_row(0, "[vm1]", 5);
	expect_row(0, "0xffffffff81000000", 0);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_HOST, .comm = "x"});
	assert_int_equal(report.profile.rows.count, 0);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_HOST, .per_vcpu = true});
	uint64_t of[2][2] = {0};
	vp_vec_each (&report.profile.rows, row)
		if (row->kind == VP_KIND_VM)
			of[row->vm][row->vcpu] += row->samples;
	assert_int_equal(of[0][0], 3);
	assert_int_equal(of[0][1], 7);
	assert_int_equal(of[1][0], 1);
	assert_int_equal(of[1][1], 5);
	vp_report_deinit(&report);
}

static void test_unified_view(void **state)
{
	make_shared();
	look((struct vp_profile_options){.view = VP_VIEW_UNIFIED});
	expect_kinds(0, 2, 2, 0, 0, 16);
	uint64_t of_vm[3] = {0}, kernel = 0;
	vp_vec_each (&report.profile.rows, row) {
		of_vm[row->vm == VP_NONE ? 2 : row->vm] += row->samples;
		kernel += row->kind == VP_KIND_KERNEL ? row->samples : 0;
	}
	assert_int_equal(of_vm[0], 10);
	assert_int_equal(of_vm[1], 6);
	assert_int_equal(of_vm[2], 4);
	assert_int_equal(kernel, 7 + 5 + 2);
	assert_int_equal(report.profile.counts.ticks, 20);
	assert_int_equal(report.profile.counts.guest_samples, 16);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_UNIFIED, .vm = "vm0"});
	assert_int_equal(report.profile.rows.count, 2);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_UNIFIED, .has_vcpu = true, .vcpu = 1});
	of_vm[0] = of_vm[1] = of_vm[2] = 0;
	vp_vec_each (&report.profile.rows, row)
		of_vm[row->vm == VP_NONE ? 2 : row->vm] += row->samples;
	assert_int_equal(of_vm[0], 7);
	assert_int_equal(of_vm[1], 5);
	assert_int_equal(of_vm[2], 0);
	vp_report_deinit(&report);
}

/* In its VMM the vCPU is at work, even if its last exit was a halt; asleep it is idle. */
static void test_vmm_after_halt(void **state)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made_in(&made, 1, 0, 0, 0, MADE_INTR); /* the other VM's are elsewhere */
	made_guest(&made, 1, 0, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 0, 1, 1, VP_MODE_GUEST_USER, MADE_HLT);
	made_in_kvm(&made, 0, 1, 1, 1, MADE_HLT); /* polls */
	for (uint64_t tick = 2; tick < 5; tick++)
		made_in_vmm(&made, 0, tick, 1, 1);
	made_out(&made, 0, 5, 1, 1, MADE_HLT, true);
	made.offset = 1;
	for (uint64_t tick = 5; tick < 11; tick++)
		made_idle(&made, 0, tick);
	made_host(&made, 0, 11, 77, VP_MODE_USER); /* takes nothing from it */
	made_guest(&made, 0, 12, 0, 1, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 13);
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1"});
	expect_kinds(0, 0, 1, 1 + 6 + 2, 3, 0);
	expect_row(0, "[idle]", 9);
	expect_row(0, "[steal] (host)", 3);
	const struct vp_profile_row *row = row_of(0, "[steal] (host)");
	assert_int_equal(row->reasons, 1);
	assert_int_equal(report.profile.reasons.at[row->first_reason].exit.reason, MADE_HLT);
	vp_report_deinit(&report);
}

static void put(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t id, void *record)
{
	struct vp_record_header *header = record;

	header->id = (uint16_t)id;
	header->time = MADE_START + tick * MADE_PERIOD;
	vp_trace_append(made->writer, vp_stream_of_pcpu(pcpu), record);
	made->pcpus = pcpu < made->pcpus ? made->pcpus : pcpu + 1;
}

/* KVM's word on kernel or user space may be older than the program counter: the privilege level is
 * of the same exit. */
static void test_privilege_level(void **state)
{
	static const struct {
		uint32_t mode, cpl;
		bool known, kernel;
	} samples[] = {
	    {VP_MODE_GUEST_USER, 0, true, true},    {VP_MODE_GUEST_USER, 0, true, true},
	    {VP_MODE_GUEST_KERNEL, 3, true, false}, {VP_MODE_GUEST_KERNEL, 1, true, true},
	    {VP_MODE_GUEST_USER, 0, false, false},  {VP_MODE_GUEST_USER, 3, true, false},
	    {VP_MODE_GUEST_KERNEL, 3, false, true}, {VP_MODE_GUEST_USER, 2, true, true}};
	struct made made;
	uint64_t kernel = 0;

	made_begin(&made, NAME, 2);
	for (uint64_t i = 0; i < VP_ARRAY_SIZE(samples); i++) {
		struct vp_guest_sample sample = {.vm = 2000,
						 .tid = 2002,
						 .vcpu = 1,
						 .mode = (uint8_t)samples[i].mode,
						 .cpl = samples[i].cpl,
						 .flags = VP_HAS_AS_ROOT |
							  (samples[i].known ? VP_HAS_CPL : 0),
						 .as_root = 0x1000,
						 .ip = 0x1000 + i};
		put(&made, 0, i, VP_ID_guest_sample, &sample);
		kernel += samples[i].kernel;
	}
	made_end(&made, 10);
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1"});
	expect_kinds(0, kernel, VP_ARRAY_SIZE(samples) - kernel, 0, 0, 0);
	for (uint64_t i = 0; i < VP_ARRAY_SIZE(samples); i++) {
		VP_AUTO_FREE char *name = vp_format("0x%llx", 0x1000ULL + i);
		assert_int_equal(row_of(0, name)->kind,
				 samples[i].kernel ? VP_KIND_KERNEL : VP_KIND_USER);
	}
	vp_report_deinit(&report);
}

/* Of either vendor: what a halt is, idle; what is none, not. The exit is that of the last record
 * that knows one. */
static void test_vendors(void **state)
{
	static const struct {
		uint8_t vendor;
		uint32_t reason;
		bool known, blocked, idle;
	} exits[] = {
	    {VP_VENDOR_AMD, 0x78, true, true, true},   {VP_VENDOR_AMD, 12, true, true, false},
	    {VP_VENDOR_INTEL, 12, true, true, true},   {VP_VENDOR_INTEL, 0x78, true, true, false},
	    {VP_VENDOR_ARM, 1, true, false, true},     {VP_VENDOR_ARM, 12, true, true, false},
	    {VP_VENDOR_UNKNOWN, 0, false, true, true}, {VP_VENDOR_UNKNOWN, 0, false, false, false}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(exits); i++) {
		struct vp_vcpu_out out = {.vm = 2000,
					  .tid = 2002,
					  .vcpu = 1,
					  .vendor = exits[i].vendor,
					  .exit_reason = exits[i].reason,
					  .flags = (exits[i].known ? VP_HAS_EXIT_REASON : 0) |
						   (exits[i].blocked ? VP_BLOCKED : 0)};
		struct made made;
		made_begin(&made, NAME, 2);
		put(&made, 0, 0, VP_ID_vcpu_out, &out);
		made.offset = 1;
		made_idle(&made, 0, 0);
		made_idle(&made, 0, 1);
		made_end(&made, 2);
		look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1"});
		expect_kinds(0, 0, 0, exits[i].idle ? 2 : 0, exits[i].idle ? 0 : 2, 0);
		if (!exits[i].idle) {
			assert_int_equal(report.profile.reasons.count, 1);
			assert_int_equal(report.profile.reasons.at[0].count, 2);
			assert_int_equal(report.profile.reasons.at[0].exit.known, exits[i].known);
			assert_int_equal(report.profile.reasons.at[0].exit.vendor, exits[i].vendor);
		}
		vp_report_deinit(&report);
	}
}

/* Only ticks between two times, both of them included; and only of pCPUs that are asked for. */
static void test_times_and_pcpus(void **state)
{
	static const int second[] = {1}, none[] = {5};
	const struct vp_naming_options naming = {.directory = NAME};
	const uint64_t from = MADE_START + 3 * MADE_PERIOD + 10;
	struct vp_profile_options options = {
	    .view = VP_VIEW_UNIFIED, .from = from, .to = MADE_START + 7 * MADE_PERIOD + 10};

	make_shared();
	look(options);
	expect_kinds(0, 0, 0, 0, 0, 10);
	vp_report_deinit(&report);
	options.from++;
	options.to--;
	look(options);
	expect_kinds(0, 0, 0, 0, 0, 6);
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_UNIFIED, .pcpus = second, .n_pcpus = 1});
	expect_kinds(0, 2, 0, 0, 0, 8);
	assert_int_equal(report.recording.pcpus, 1);
	vp_report_deinit(&report);
	options = (struct vp_profile_options){.view = VP_VIEW_UNIFIED, .pcpus = none, .n_pcpus = 1};
	expect_error(vp_report_make(&naming, &options, &report), "none of the requested pCPUs");
}

/* Ticks that came late, guest samples without CR3, each kind of sample. */
static void test_counts(void **state)
{
	struct vp_host_sample host = {.pid = 77, .tid = 77, .mode = VP_MODE_USER, .flags = VP_LATE};
	struct vp_vcpu_sample in_kvm = {
	    .vm = 1000, .tid = 1001, .mode = VP_MODE_KERNEL, .flags = VP_LATE};
	struct vp_guest_sample guest = {.vm = 2000, .tid = 2001, .mode = VP_MODE_GUEST_USER};
	static const uint16_t flags[] = {VP_LATE,         VP_HAS_AS_ROOT, VP_HIDDEN, VP_BY_MEMORY,
					 VP_AT_INTERRUPT, VP_HAS_CPL,     0};
	struct made made;

	made_begin(&made, NAME, 2);
	put(&made, 0, 0, VP_ID_host_sample, &host);
	host.flags = 0;
	put(&made, 0, 1, VP_ID_host_sample, &host);
	put(&made, 0, 2, VP_ID_vcpu_sample, &in_kvm);
	in_kvm.flags = VP_HAS_EXIT_REASON;
	put(&made, 0, 3, VP_ID_vcpu_sample, &in_kvm);
	for (uint64_t i = 0; i < VP_ARRAY_SIZE(flags); i++) {
		guest.flags = flags[i];
		put(&made, 0, 4 + i, VP_ID_guest_sample, &guest);
	}
	made_end(&made, 20);
	look((struct vp_profile_options){.view = VP_VIEW_HOST});
	assert_int_equal(report.profile.counts.ticks, 11);
	assert_int_equal(report.profile.counts.samples, 11);
	assert_int_equal(report.profile.counts.guest_samples, 7);
	assert_int_equal(report.profile.counts.late, 3);
	assert_int_equal(report.profile.counts.no_root, 3);
	assert_int_equal(report.profile.counts.filled, 0);
	vp_report_deinit(&report);
}

/* A thread's number that another VM's process has now is that one's vCPU no more. */
static void test_used_again(void **state)
{
	struct vp_host_sample host = {.pid = 2000, .tid = 1001, .mode = VP_MODE_USER};
	struct vp_vcpu_in in = {.vm = 2000, .tid = 1001, .vcpu = 1, .flags = 0};
	struct made made;

	made_begin(&made, NAME, 2);
	made_guest(&made, 0, 0, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	/* A thread of the second VM's process, but no vCPU of it yet. */
	put(&made, 1, 1, VP_ID_host_sample, &host);
	put(&made, 1, 2, VP_ID_vcpu_in, &in);
	put(&made, 1, 3, VP_ID_host_sample, &host);
	made_end(&made, 4);
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm0"});
	expect_kinds(0, 0, 1, 0, 0, 0); /* its home is still pCPU 0 */
	vp_report_deinit(&report);
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1", .per_vcpu = true});
	assert_int_equal(report.profile.parts.count, 1);
	assert_int_equal(report.profile.parts.at[0].vcpu, 1);
	expect_kinds(0, 0, 0, 0, 1, 0);
	vp_report_deinit(&report);
}

/* Where time is what samples are weighted by, each pCPU has its own gaps, of one and a half periods
 * at least; and the rest up to the end. */
static void test_gaps(void **state)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made.about.by_time = false;
	made.about.weighting = VP_WEIGHTING_TIME;
	made.about.pcpus = 2;
	made_guest(&made, 0, 1, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made.offset = MADE_PERIOD / 2;
	made_guest(&made, 0, 2, 0, 0, VP_MODE_GUEST_USER, MADE_INTR); /* just in time */
	made.offset = MADE_PERIOD / 2 + 1;
	made_guest(&made, 1, 0, 1, 1, VP_MODE_GUEST_KERNEL, MADE_INTR);
	made.offset = 1;
	made_guest(&made, 1, 2, 1, 1, VP_MODE_GUEST_KERNEL, MADE_INTR); /* just in time, too */
	made.offset = MADE_PERIOD / 2 + 2;
	made_guest(&made, 1, 3, 1, 1, VP_MODE_GUEST_KERNEL, MADE_INTR); /* too late by 1 ns */
	made_end(&made, 10);
	look((struct vp_profile_options){.view = VP_VIEW_UNIFIED});
	const struct vp_profile_part *part = &report.profile.parts.at[0];
	assert_int_equal(part->samples, 20 * MADE_PERIOD);
	assert_int_equal(part->kinds[VP_KIND_VM], 5 * MADE_PERIOD + 2);
	assert_int_equal(part->kinds[VP_KIND_IDLE], 15 * MADE_PERIOD - 2);
	assert_int_equal(report.profile.counts.filled, part->kinds[VP_KIND_IDLE]);
	assert_int_equal(report.profile.counts.samples, 5);
	vp_report_deinit(&report);
	/* By VM: a filled tick of a pCPU is idleness of the pCPU, and stolen from its vCPU. */
	look((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1"});
	part = &report.profile.parts.at[0];
	assert_int_equal(part->kinds[VP_KIND_KERNEL], 5 * MADE_PERIOD / 2 + 2);
	assert_int_equal(part->kinds[VP_KIND_STEAL], 15 * MADE_PERIOD / 2 - 2);
	vp_report_deinit(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_guest_view),      cmocka_unit_test(test_host_view),
	    cmocka_unit_test(test_unified_view),    cmocka_unit_test(test_vmm_after_halt),
	    cmocka_unit_test(test_privilege_level), cmocka_unit_test(test_vendors),
	    cmocka_unit_test(test_times_and_pcpus), cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_used_again),      cmocka_unit_test(test_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
