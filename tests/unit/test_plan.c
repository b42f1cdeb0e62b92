/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a recording is set up: on KVM, and where guests are sampled apart (Xen). */
#include "unit.h"

#include <unistd.h>

#include "session/plan.h"

static const struct vp_guest_sampler_ops *sampler(void)
{
	return NULL;
}

static const struct vp_hypervisor kvm = {.has_processes = true}, xen = {.guest_sampler = sampler};

static void test_defaults(void **state)
{
	const struct vp_plan_request nothing = {.frequency = 0};
	const size_t page = (size_t)getpagesize();
	struct vp_plan plan = vp_plan_make(&nothing, &kvm);

	/* The trigger's own defaults. */
	assert_null(plan.trigger.event);
	assert_true(!plan.trigger.frequency && !plan.trigger.period);
	assert_true(!plan.samples_guests_apart && plan.samples_read_memory && !plan.states);
	assert_int_equal(plan.sample_pages, 512);
	assert_int_equal(plan.interval_bytes, 256 * page);
	assert_int_equal(plan.trace_bytes, 1024 * page);
	/* The host and the guests have one frequency, which guests can afford. */
	plan = vp_plan_make(&nothing, &xen);
	assert_string_equal(plan.trigger.event, "cpu-clock");
	assert_int_equal(plan.trigger.frequency, 97);
	assert_true(plan.samples_guests_apart && !plan.samples_read_memory);
	assert_int_equal(plan.guest_period_ns, 1000000000 / 97);
	assert_int_equal(plan.guest_poll_ns, 1000000000 / 97);
}

static void test_wishes(void **state)
{
	const struct vp_plan_request request = {
	    .frequency = 4000, .trigger = "instructions", .pages = 16, .no_memory = true};
	const struct vp_hypervisor *const hypervisors[] = {&kvm, &xen};

	for (int i = 0; i < 2; i++) {
		struct vp_plan plan = vp_plan_make(&request, hypervisors[i]);
		assert_string_equal(plan.trigger.event, "instructions");
		assert_int_equal(plan.trigger.frequency, 4000);
		assert_int_equal(plan.guest_period_ns, 250000);
		assert_int_equal(plan.guest_poll_ns, 250000);
		assert_false(plan.samples_read_memory);
		assert_int_equal(plan.sample_pages, 16);
		assert_int_equal(plan.interval_bytes, 16 * (size_t)getpagesize());
		assert_int_equal(plan.trace_bytes, 16 * (size_t)getpagesize());
	}
}

/* A period is the host's alone: guests keep their frequency. */
static void test_period(void **state)
{
	const struct vp_plan_request request = {.period = 12345};
	struct vp_plan plan = vp_plan_make(&request, &xen);

	assert_int_equal(plan.trigger.period, 12345);
	assert_int_equal(plan.trigger.frequency, 0);
	assert_int_equal(plan.guest_period_ns, 1000000000 / 97);
}

/* At interrupts guests are sampled more often, and looked at no more often. */
static void test_interrupts(void **state)
{
	struct vp_plan_request request = {.at_interrupts = true};
	struct vp_plan plan = vp_plan_make(&request, &xen);

	assert_int_equal(plan.trigger.frequency, 997);
	assert_int_equal(plan.guest_period_ns, 1000000000 / 997);
	assert_int_equal(plan.guest_poll_ns, 1000000000 / 97);
	request.frequency = 10;
	plan = vp_plan_make(&request, &xen);
	assert_int_equal(plan.guest_period_ns, 100000000);
	assert_int_equal(plan.guest_poll_ns, 100000000);
}

/* Only where VMs are no processes does a trace need the account's states. */
static void test_states(void **state)
{
	const struct vp_plan_request trace = {.trace = true}, states = {.states = true};

	assert_false(vp_plan_make(&trace, &kvm).states);
	assert_true(vp_plan_make(&trace, &xen).states);
	assert_true(vp_plan_make(&states, &kvm).states);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults), cmocka_unit_test(test_wishes),
	    cmocka_unit_test(test_period),   cmocka_unit_test(test_interrupts),
	    cmocka_unit_test(test_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
