/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMs of several recordings as one list: the same VM has one number, two VMs have two. */
#include "unit.h"

#include "analyze/common/vm_join.h"
#include "base/alloc.h"
#include "schema/records.h"

static void add(vp_vms *vms, uint32_t pid, uint64_t started, const char *name, const char *uuid)
{
	struct vp_vm vm = vp_vm_of_id(pid);

	vm.started = started;
	vm.name = vp_strdup(name);
	vm.uuid = vp_strdup(uuid);
	vp_vm_vcpu(&vm, 0)->tid = pid + 1;
	vp_vec_push(vms, vm);
}

/* The number that records of VM `id` of the recording at hand get. */
static uint32_t number_of(struct vp_vm_join *join, uint32_t id)
{
	const struct vp_vcpu_account record = {.id = VP_ID_vcpu_account, .vm = id, .tid = 7};
	union vp_any_record copy;
	const struct vp_record_header *joined =
	    vp_vm_join_record(join, (const void *)&record, &copy);

	assert_int_equal(((const struct vp_vcpu_account *)joined)->tid, 7);
	return ((const struct vp_vcpu_account *)joined)->vm;
}

static void test_join(void **state)
{
	vp_vms all = {0}, first = {0}, second = {0};
	struct vp_vm_join join = {.vms = &all};

	add(&first, 100, 5, "db", "");
	add(&first, 200, 6, "web", "u-web");
	add(&first, 300, 7, "cron", "");
	vp_vm_join_add(&join, &first);
	assert_int_equal(number_of(&join, 100), 100);
	assert_int_equal(number_of(&join, 200), 200);
	/* "web" was restarted and is the same VM; process 300 is another VM's now. */
	vp_vm_join_next(&join);
	add(&second, 300, 90, "new", "");
	add(&second, 100, 5, "db", "");
	add(&second, 250, 91, "web", "u-web");
	vp_vm_join_add(&join, &second);
	assert_int_equal(all.count, 4);
	assert_int_equal(number_of(&join, 100), 100);
	assert_int_equal(number_of(&join, 250), 200);
	uint32_t new = number_of(&join, 300);
	assert_int_equal(new &VP_PID_MASK, 300);
	assert_int_not_equal(new, 300);
	assert_string_equal(vp_vms_find(&all, new)->name, "new");
	assert_string_equal(vp_vms_find(&all, 300)->name, "cron");
	vp_vm_join_deinit(&join);
	vp_vms_deinit(&all);
	vp_vms_deinit(&first);
	vp_vms_deinit(&second);
}

/* During a migration on one host, and with KubeVirt's uuids of names, two VMs of one uuid run. */
static void test_two_of_one_uuid(void **state)
{
	vp_vms all = {0}, vms = {0};
	struct vp_vm_join join = {.vms = &all};

	add(&vms, 100, 5, "db", "u");
	add(&vms, 200, 6, "db", "u");
	vp_vm_join_add(&join, &vms);
	assert_int_equal(all.count, 2);
	assert_int_not_equal(number_of(&join, 100), number_of(&join, 200));
	vp_vm_join_add(&join, &vms); /* again */
	assert_int_equal(all.count, 2);
	vp_vm_join_deinit(&join);
	vp_vms_deinit(&all);
	vp_vms_deinit(&vms);
}

/* Records of a VM may come before its name. */
static void test_record_first(void **state)
{
	vp_vms all = {0}, vms = {0};
	struct vp_vm_join join = {.vms = &all};

	assert_int_equal(number_of(&join, 100), 100);
	assert_string_equal(all.at[0].name, "pid-100");
	add(&vms, 100, 5, "db", "");
	vp_vm_join_add(&join, &vms);
	assert_int_equal(all.count, 1);
	assert_string_equal(all.at[0].name, "db");
	assert_int_equal(all.at[0].vcpus.at[0].tid, 101);
	vp_vm_join_deinit(&join);
	vp_vms_deinit(&all);
	vp_vms_deinit(&vms);
}

/* A thief's owner is translated if it is a VM; records without VM stay as they are. */
static void test_thief(void **state)
{
	vp_vms all = {0}, vms = {0};
	struct vp_vm_join join = {.vms = &all};
	union vp_any_record copy;
	struct vp_thief thief = {.id = VP_ID_thief, .vm = 100, .thief_pid = 200};

	add(&all, 200, 1, "old", "");
	add(&vms, 100, 5, "db", "");
	add(&vms, 200, 6, "web", "");
	vp_vm_join_add(&join, &vms);
	const struct vp_thief *joined =
	    (const void *)vp_vm_join_record(&join, (const void *)&thief, &copy);
	assert_int_equal(joined->thief_pid, number_of(&join, 200));
	assert_int_not_equal(joined->thief_pid, 200);
	thief.thief_pid = 4711;
	joined = (const void *)vp_vm_join_record(&join, (const void *)&thief, &copy);
	assert_int_equal(joined->thief_pid, 4711);
	const struct vp_account_loss loss = {.id = VP_ID_account_loss};
	assert_ptr_equal(vp_vm_join_record(&join, (const void *)&loss, &copy), &loss);
	assert_int_equal(all.count, 3);
	vp_vm_join_deinit(&join);
	vp_vms_deinit(&all);
	vp_vms_deinit(&vms);
}

/* Each of the names has to be a VM's. */
static void test_expected(void **state)
{
	static const char *const names[] = {"web", "db", "cache"};
	vp_vms vms = {0};

	expect_no_error(vp_vms_expect(&vms, names, 0));
	expect_error(vp_vms_expect(&vms, names, 1), "no VM named 'web' is running; running: none");
	vp_vec_push(&vms, ((struct vp_vm){.name = vp_strdup("web")}));
	vp_vec_push(&vms, ((struct vp_vm){.name = vp_strdup("db")}));
	expect_no_error(vp_vms_expect(&vms, names, 2));
	expect_error(vp_vms_expect(&vms, names, 3),
		     "no VM named 'cache' is running; running: web, db");
	assert_true(vp_vm_is_named(&vms.at[1], names, 2));
	assert_false(vp_vm_is_named(&vms.at[1], names, 1));
	assert_true(vp_vm_is_named(&vms.at[1], names, 0));
	vp_vms_deinit(&vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_join),         cmocka_unit_test(test_two_of_one_uuid),
	    cmocka_unit_test(test_record_first), cmocka_unit_test(test_thief),
	    cmocka_unit_test(test_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
