/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMs without events: they are found all the same. */
#include "session_vms.h"
#include "unit.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "collect/programs/hypervisor.h"
#include "session/session_private.h"

static bool is_not_gone(const struct vp_vm *vm)
{
	return false;
}

static struct vp_vm *find_none(vp_vms *vms, uint32_t pid, bool at_start)
{
	return NULL;
}

static uint32_t late_pid;

static void scan_late(vp_vms *vms, bool at_start)
{
	if (!late_pid)
		return;
	vp_vec_push(vms, ((struct vp_vm){.pid = late_pid,
					 .at_start = at_start,
					 .name = vp_strdup("late"),
					 .memory = vp_strdup("")}));
	late_pid = 0;
}

static void read_late_vcpus(struct vp_vm *vm)
{
	vp_vm_vcpu(vm, 0)->tid = vm->pid + 1;
}

/* A VM that halts for good after it was searched for, and before the start, has no event. One that
 * does not run at all has none, either. */
static void test_late_vms(void **state)
{
	struct vp_session *session = vp_session_new(&(struct vp_session_options){0});
	struct vp_hypervisor hypervisor = *vp_hypervisor_kvm();

	hypervisor.scan_new = scan_late;
	hypervisor.read_vcpus = read_late_vcpus;
	hypervisor.scan_one = find_none;
	hypervisor.has_exited = hypervisor.is_gone = is_not_gone;
	hypervisor.generation = NULL;
	session->hypervisor = &hypervisor;
	session_add_vm(session, "early", 10);
	late_pid = 20;
	vp_session_find_late_vms(session);
	assert_int_equal(session->vms.count, 2);
	assert_int_equal(session->vms.at[0].vcpus.at[0].tid, 11);
	assert_string_equal(session->vms.at[1].name, "late");
	assert_true(session->vms.at[1].at_start && session->vms_changed);
	assert_null(vp_session_take_notice(session));
	/* While recording. */
	late_pid = 30;
	vp_session_check_vms(session, false);
	assert_int_equal(session->vms.count, 2);
	vp_session_check_vms(session, true);
	assert_int_equal(session->vms.count, 3);
	assert_false(session->vms.at[2].at_start);
	VP_AUTO_FREE char *notice = vp_session_take_notice(session);
	assert_string_equal(notice, "VM 'late' (process 30) started during the recording");
	vp_session_free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_late_vms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
