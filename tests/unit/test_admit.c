/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admission: the VM's number, the vCPU's thread, and what --vm excludes. */
#include "unit.h"

#include <string.h>

#include "base/map.h"
#include "schema/records.h"
#include "schema/trace_event.h"
#include "schema/trace_records.h"
#include "session/admit.h"
#include "session/instrument.h"
#include "session/session_private.h"
#include "session_vms.h"

enum { OTHER = 1000, CHOSEN = 2000, NOBODY = 3000 };

static struct vp_vm *look_at_nothing(vp_vms *vms, uint32_t pid, bool at_start)
{
	return NULL;
}

static bool is_gone(const struct vp_vm *vm)
{
	return vm->pid == OTHER;
}

static void add_vm(struct vp_session *session, const char *name, uint32_t pid)
{
	vp_vm_vcpu(session_add_vm(session, name, pid), 0)->tid = pid + 1;
}

static void session_begin(struct vp_session *session)
{
	static const struct vp_hypervisor hypervisor = {.scan_one = look_at_nothing,
							.is_gone = is_gone};
	static const char *const chosen[] = {"chosen"};

	*session = (struct vp_session){.hypervisor = &hypervisor,
				       .options = {.vm_names = chosen, .n_vm_names = 1}};
	add_vm(session, "other", OTHER);
	add_vm(session, "chosen", CHOSEN);
}

static void session_end(struct vp_session *session)
{
	vp_vms_deinit(&session->vms);
	vp_map_deinit(&session->no_vms);
	vp_map_deinit(&session->varying);
	vp_notices_deinit(&session->notices);
}

/* What an event says of the guest is hidden unless its VM is known to be selected. */
static void test_exits(void **state)
{
	static const uint32_t pids[] = {CHOSEN, OTHER, NOBODY, CHOSEN};
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	for (size_t i = 0; i < VP_ARRAY_SIZE(pids); i++) {
		struct vp_trace_kvm_exit exit = {.id = VP_TRACE_ID_kvm_exit,
						 .vm = pids[i],
						 .tid = pids[i] + 1,
						 .reason = 7,
						 .guest_rip = 0x1234,
						 .detail = 5,
						 .detail_kind = 1};
		assert_true(vp_admit(&session, &last, &exit));
		assert_int_equal(exit.guest_rip, pids[i] == CHOSEN ? 0x1234 : 0);
		assert_int_equal(exit.detail, pids[i] == CHOSEN ? 5 : 0);
		assert_int_equal(exit.detail_kind, pids[i] == CHOSEN);
		assert_int_equal(exit.reason, 7);
		assert_int_equal(exit.vm, pids[i]);
	}
	session_end(&session);
}

static void test_sites(void **state)
{
	static const uint16_t kinds[] = {VP_ID_exit_site, VP_ID_exit_site_detail,
					 VP_ID_exit_site_address, VP_ID_exit_site_waits};
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	for (size_t i = 0; i < 2 * VP_ARRAY_SIZE(kinds); i++) {
		const bool is_hidden = i % 2;
		struct vp_exit_site_waits site = {.id = kinds[i / 2],
						  .vm = is_hidden ? OTHER : CHOSEN,
						  .ip = 1,
						  .as_root = 2,
						  .flags = 3,
						  .detail = 4,
						  .detail_kind = 5,
						  .address = 6};
		assert_true(vp_admit(&session, &last, &site));
		assert_int_equal(site.ip, is_hidden ? 0 : 1);
		assert_int_equal(site.as_root, is_hidden ? 0 : 2);
		assert_int_equal(site.flags, is_hidden ? 0 : 3);
		/* The shorter kinds end before these. */
		assert_int_equal(site.detail, is_hidden && i / 2 > 0 ? 0 : 4);
		assert_int_equal(site.detail_kind, is_hidden && i / 2 > 0 ? 0 : 5);
		assert_int_equal(site.address, is_hidden && i / 2 > 1 ? VP_NO_ADDRESS : 6);
	}
	session_end(&session);
}

/* Names of threads of VMs that are not selected are not recorded. */
static void test_names(void **state)
{
	struct vp_guest_task task = {.id = VP_ID_guest_task, .vm = CHOSEN};
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	assert_true(vp_admit(&session, &last, &task));
	task.vm = OTHER;
	assert_false(vp_admit(&session, &last, &task));
	session.options.n_vm_names = 0;
	assert_true(vp_admit(&session, &last, &task));
	session_end(&session);
}

/* A sample like the one before needs no look at the VMs, and has the same number; any other, and
 * one after a change of the VMs, does. */
static void test_same_again(void **state)
{
	static const struct {
		uint32_t vm, tid, vcpu;
		bool unselects, changes, same;
	} cases[] = {
	    {CHOSEN, CHOSEN + 1, 0, false, false, true},
	    {CHOSEN, CHOSEN + 2, 0, false, false, false},
	    {CHOSEN, CHOSEN + 1, 1, false, false, false},
	    {OTHER, CHOSEN + 1, 0, false, false, false},
	    {CHOSEN, CHOSEN + 1, VP_VCPU_UNKNOWN, false, false, false},
	    {CHOSEN, CHOSEN + 1, 0, true, false, false},
	    {CHOSEN, CHOSEN + 1, 0, false, true, false},
	};
	const uint32_t number = CHOSEN | 1 << VP_PID_BITS;
	bool inserted;

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_admission last = {0};
		struct vp_session session;
		session_begin(&session);
		session.vms.at[1].end = 1;
		vp_map_insert(&session.varying, CHOSEN, 1, &inserted);
		session_add_vm(&session, cases[i].unselects ? "other" : "chosen", CHOSEN)->nth = 1;
		vp_vm_vcpu(&session.vms.at[2], 0)->tid = CHOSEN + 1;
		struct vp_vcpu_sample sample = {
		    .id = VP_ID_vcpu_sample, .vm = CHOSEN, .tid = CHOSEN + 1, .vcpu = 0};
		assert_false(vp_admit_again(&last, session.vms_revision, &sample));
		vp_admit(&session, &last, &sample);
		assert_int_equal(sample.vm, number);
		sample.vm = cases[i].vm;
		sample.tid = cases[i].tid;
		sample.vcpu = (uint16_t)cases[i].vcpu;
		session.vms_revision += cases[i].changes;
		assert_int_equal(vp_admit_again(&last, session.vms_revision, &sample),
				 cases[i].same);
		assert_int_equal(sample.vm, cases[i].same ? number : cases[i].vm);
		session_end(&session);
	}
}

/* An entry names the vCPU; its thread is noted, once. */
static void test_entries(void **state)
{
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	struct vp_trace_kvm_entry entry = {
	    .id = VP_TRACE_ID_kvm_entry, .vm = CHOSEN, .tid = CHOSEN + 5, .vcpu = 1};
	vp_admit(&session, &last, &entry);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[1], 1)->tid, CHOSEN + 5);
	vp_vm_vcpu(&session.vms.at[1], 1)->tid = 0;
	vp_admit(&session, &last, &entry);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[1], 1)->tid, 0);
	/* Unless something changed since. */
	session.vms_revision++;
	vp_admit(&session, &last, &entry);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[1], 1)->tid, CHOSEN + 5);
	entry.vcpu = VP_VCPU_UNKNOWN;
	vp_admit(&session, &last, &entry);
	assert_int_equal(entry.vcpu, VP_VCPU_UNKNOWN);
	assert_int_equal(session.vms.at[1].vcpus.count, 2);
	session_end(&session);
}

/* Another thread runs the vCPU of a VM that is gone: the result before does not hold any more. */
static void test_ended(void **state)
{
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	session.options.n_vm_names = 0;
	struct vp_trace_kvm_entry entry = {
	    .id = VP_TRACE_ID_kvm_entry, .vm = OTHER, .tid = OTHER + 1, .vcpu = 0};
	vp_admit(&session, &last, &entry);
	assert_int_equal(entry.vm, OTHER);
	session_add_vm(&session, "second", OTHER)->nth = 1;
	entry.tid = OTHER + 9;
	vp_admit(&session, &last, &entry);
	assert_true(session.vms.at[0].end);
	assert_int_equal(entry.vm, OTHER | 1 << VP_PID_BITS);
	session_end(&session);
}

/* Records have the VM's number, which is not its pid if the pid had another VM before. */
static void test_numbers(void **state)
{
	const uint32_t number = CHOSEN | 1 << VP_PID_BITS;
	struct vp_admission last = {0};
	bool inserted;
	struct vp_session session;

	session_begin(&session);
	session.options.n_vm_names = 0;
	session.vms.at[1].end = 1;
	vp_map_insert(&session.varying, CHOSEN, 1, &inserted);
	session_add_vm(&session, "second", CHOSEN)->nth = 1;
	vp_vm_vcpu(&session.vms.at[2], 3)->tid = CHOSEN + 9;
	struct vp_trace_kvm_inj_virq injection = {
	    .id = VP_TRACE_ID_kvm_inj_virq, .vm = CHOSEN, .tid = CHOSEN + 9};
	struct vp_trace_guest_switch change = {
	    .id = VP_TRACE_ID_guest_switch, .vm = CHOSEN, .tid = CHOSEN + 9};
	struct vp_vcpu_span span = {.id = VP_ID_vcpu_span, .vm = CHOSEN, .tid = CHOSEN + 9};
	struct vp_guest_regs regs = {
	    .id = VP_ID_guest_regs, .vm = CHOSEN, .tid = CHOSEN + 9, .sp = 5};
	struct vp_interval interval = {
	    .id = VP_ID_interval, .owner = CHOSEN, .tid = CHOSEN + 8, .vcpu = 2};
	vp_admit(&session, &last, &injection);
	assert_int_equal(injection.vm, number);
	vp_admit(&session, &last, &change);
	assert_int_equal(change.vm, number);
	vp_admit(&session, &last, &span);
	assert_int_equal(span.vm, number);
	vp_admit(&session, &last, &regs);
	assert_int_equal(regs.vm, number);
	assert_int_equal(regs.sp, 5);
	/* An interval names the vCPU: its thread is noted. */
	vp_admit(&session, &last, &interval);
	assert_int_equal(interval.owner, number);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[2], 2)->tid, CHOSEN + 8);
	session_end(&session);
}

/* A VM that was unknown when the last record came is looked for again. */
static void test_found_later(void **state)
{
	struct vp_trace_kvm_exit exit = {
	    .id = VP_TRACE_ID_kvm_exit, .vm = NOBODY, .tid = NOBODY + 1, .guest_rip = 0x1234};
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	vp_admit(&session, &last, &exit);
	assert_int_equal(exit.guest_rip, 0);
	add_vm(&session, "chosen", NOBODY);
	exit.guest_rip = 0x1234;
	vp_admit(&session, &last, &exit);
	assert_int_equal(exit.guest_rip, 0x1234);
	session_end(&session);
}

/* Samples: a thread that runs another vCPU from now on; one whose vCPU KVM does not report. */
static void test_samples(void **state)
{
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	struct vp_vcpu_sample sample = {
	    .id = VP_ID_vcpu_sample, .vm = CHOSEN, .tid = CHOSEN + 5, .vcpu = 1};
	vp_admit(&session, &last, &sample);
	sample.vcpu = 2;
	vp_admit(&session, &last, &sample);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[1], 1)->tid, CHOSEN + 5);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[1], 2)->tid, CHOSEN + 5);
	sample.tid = CHOSEN + 1;
	sample.vcpu = VP_VCPU_UNKNOWN;
	vp_admit(&session, &last, &sample);
	assert_int_equal(sample.vcpu, 0);
	sample.vcpu = VP_VCPU_UNKNOWN;
	assert_false(vp_admit_again(&last, session.vms_revision, &sample));
	sample.tid = CHOSEN + 99;
	sample.vcpu = VP_VCPU_UNKNOWN;
	vp_admit(&session, &last, &sample);
	assert_int_equal(sample.vcpu, VP_VCPU_UNKNOWN);
	session_end(&session);
}

/* Registers for call chains of a VM that is not selected. */
static void test_registers(void **state)
{
	struct vp_guest_regs regs = {.id = VP_ID_guest_regs,
				     .vm = OTHER,
				     .tid = OTHER + 1,
				     .ip = 1,
				     .sp = 2,
				     .bp = 3,
				     .as_root = 4,
				     .guest_pid = 5,
				     .guest_tid = 6};
	struct vp_admission last = {0};
	struct vp_session session;

	session_begin(&session);
	assert_true(vp_admit(&session, &last, &regs));
	assert_true(!regs.ip && !regs.sp && !regs.bp && !regs.as_root);
	assert_true(!regs.guest_pid && !regs.guest_tid);
	assert_int_equal(regs.flags, VP_HIDDEN);
	session_end(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_numbers), cmocka_unit_test(test_found_later),
	    cmocka_unit_test(test_samples), cmocka_unit_test(test_registers),
	    cmocka_unit_test(test_exits),   cmocka_unit_test(test_sites),
	    cmocka_unit_test(test_names),   cmocka_unit_test(test_same_again),
	    cmocka_unit_test(test_entries), cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
