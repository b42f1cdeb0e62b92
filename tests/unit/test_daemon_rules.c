/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules on an account of seconds, and how often each causes something. */
#include "account_records.h"
#include "unit.h"

#include "base/alloc.h"
#include "daemon/rules.h"

#define SECOND 1000000000ULL

/* Of a second, "alpha" loses `ns` on its vCPU 0 to vCPU 1 of "beta". */
static void make(struct vp_account *account, vp_vms *vms, uint64_t ns)
{
	two_vms(vms);
	vp_account_init(account, vms);
	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += SECOND_VM - FIRST_VM)
		TAKE(account, vcpu_account, .vm = vm, .begin = 0, .end = SECOND,
		     .guest = SECOND - (vm == FIRST_VM ? ns : 0),
		     .preempted = vm == FIRST_VM ? ns : 0);
	TAKE(account, thief, .vm = FIRST_VM, .state = VP_STATE_PREEMPTED, .kind = VP_BY_VCPU,
	     .number = 1, .thief_pid = SECOND_VM, .ns = ns, .count = 7);
}

static void evaluate(uint64_t ns, const char *ignore, vp_held_rules *held)
{
	struct vp_daemon_config config;
	struct vp_account account;
	vp_vms vms = {0};

	vp_daemon_config_init(&config);
	free(config.ignore);
	config.ignore = vp_strdup(ignore);
	make(&account, &vms, ns);
	*held = (vp_held_rules){0};
	vp_rules_evaluate(&account, &config, held);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
	vp_daemon_config_deinit(&config);
}

static void test_evaluate(void **state)
{
	vp_held_rules held;

	evaluate(SECOND / 4, "", &held);
	assert_int_equal(held.count, 1);
	assert_string_equal(held.at[0].rule, "steal-vm");
	assert_int_equal(held.at[0].vm, FIRST_VM);
	assert_int_equal((int)(held.at[0].percent + 0.5), 25);
	assert_string_equal(held.at[0].who, "vCPU 1 of VM beta");
	assert_non_null(strstr(held.at[0].sentence, "VM alpha loses 250 ms, 25.0% of its vCPUs'"));
	assert_non_null(strstr(held.at[0].sentence, "most of it: vCPU 1 of VM beta, 250 ms"));
	assert_false(held.at[0].is_own);
	vp_held_rules_deinit(&held);
	evaluate(SECOND / 4, "other, steal-vm", &held);
	assert_int_equal(held.count, 0);
	vp_held_rules_deinit(&held);
	evaluate(SECOND / 4, "steal-v", &held);
	assert_int_equal(held.count, 1);
	vp_held_rules_deinit(&held);
	evaluate(SECOND / 10000, "", &held);
	assert_int_equal(held.count, 0);
	vp_held_rules_deinit(&held);
}

static void test_how_often(void **state)
{
	struct vp_daemon_config config;
	vp_fired_rules fired = {0};
	struct vp_held_rule held = {.rule = "steal-vm", .percent = 10};
	struct vp_vm vm = {.pid = 5, .name = "db", .uuid = ""},
		     other = {.pid = 6, .name = "db", .uuid = ""};

	vp_daemon_config_init(&config);
	config.least = 10;
	config.again_ns = 100 * SECOND;
	held.percent = 9.9;
	assert_false(vp_rules_may_fire(&fired, &config, &held, &vm, 1000 * SECOND));
	held.percent = 10;
	held.is_own = true;
	assert_false(vp_rules_may_fire(&fired, &config, &held, &vm, 1000 * SECOND));
	held.is_own = false;
	assert_true(vp_rules_may_fire(&fired, &config, &held, &vm, 1000 * SECOND));
	assert_false(vp_rules_may_fire(&fired, &config, &held, &vm, 1099 * SECOND));
	assert_true(vp_rules_may_fire(&fired, &config, &held, &other, 1001 * SECOND));
	held.rule = "throttled";
	assert_true(vp_rules_may_fire(&fired, &config, &held, &vm, 1002 * SECOND));
	held.rule = "steal-vm";
	assert_true(vp_rules_may_fire(&fired, &config, &held, &vm, 1100 * SECOND));
	assert_int_equal(fired.count, 3);
	/* With a uuid, it is the same VM after a restart. */
	vm.uuid = other.uuid = "u";
	assert_true(vp_rules_may_fire(&fired, &config, &held, &vm, 1100 * SECOND));
	assert_false(vp_rules_may_fire(&fired, &config, &held, &other, 1101 * SECOND));
	/* Those of long ago are forgotten. */
	assert_true(vp_rules_may_fire(&fired, &config, &held, &vm, 5000 * SECOND));
	assert_int_equal(fired.count, 1);
	vp_vec_deinit(&fired);
	vp_daemon_config_deinit(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_evaluate),
	    cmocka_unit_test(test_how_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
