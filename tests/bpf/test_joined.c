/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Account and intervals together: the account's programs at exits and entries run the intervals'.
 */
#include "unit.h"

#include <bpf/bpf.h>

#include "collect/programs/account_source.h"
#include "collect/programs/intervals_source.h"
#include "host/host.h"
#include "kernel.h"

enum { HALT = 0x78, HALT_OF_INTEL = 12, EXITS = 100, RING = 1 << 16, EVENTS = 4 };

static const char text[] = "interval time 1s\n"
			   "per vcpu\n"
			   "count exits entries exits:halt time\n";

struct found {
	uint64_t intervals, values[EVENTS];
};

static void take(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct found *found = context;
	struct vp_interval interval;
	struct vp_interval_value value;

	if (((const struct vp_record_header *)(const void *)records)->id != VP_ID_interval)
		return;
	memcpy(&interval, records, sizeof(interval));
	assert_int_equal(interval.tid, vp_own_tid());
	assert_int_equal(size, sizeof(interval) + EVENTS * sizeof(value));
	found->intervals++;
	for (size_t i = 0; i < EVENTS; i++) {
		memcpy(&value, records + sizeof(interval) + i * sizeof(value), sizeof(value));
		found->values[value.place] += value.value;
	}
}

/* As the kernel does it, on this thread. */
static void run(int program, uint64_t first, uint64_t second)
{
	uint64_t arguments[3] = {first, second};
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments,
		    .ctx_size_in = sizeof(arguments));

	assert_int_equal(bpf_prog_test_run_opts(program, &options), 0);
}

/* Before v5.17 the reason came first, and then the vCPU: here none that could be looked into. */
static void run_exits(const struct vp_exit_programs *programs, uint32_t vendor, int count)
{
	for (int i = 0; i < count; i++) {
		run(programs->entry, 0, 0);
		run(programs->exit, vendor == VP_VENDOR_AMD ? HALT : HALT_OF_INTEL, 0);
	}
	run(programs->entry, 0, 0);
}

static uint64_t exits_of_account(const struct vp_account_source *account)
{
	struct vp_account_vcpu vcpu;

	for (size_t place = 0; place < vp_account_source_ops()->slots(account); place++)
		if (vp_account_source_ops()->vcpu(account, place, &vcpu) &&
		    vcpu.tid == vp_own_tid())
			return vcpu.exits;
	return 0;
}

/* This kernel, or who runs this, has refused programs that take another's place. */
static bool refused;

struct scene {
	struct vp_account_source *account;
	struct vp_intervals *intervals;
	struct vp_exit_programs programs;
	struct vp_recipe recipe;
	struct found found;
};

static void end(struct scene *scene)
{
	vp_account_source_ops()->free(scene->account);
	vp_recipe_deinit(&scene->recipe);
}

/* Skips the test where this kernel, or who runs it, may not do so. */
static void begin(struct scene *scene)
{
	const struct vp_account_source_options options = {.reports_exits = true};
	const vp_vms none = {0};
	struct vp_error *error = vp_account_source_ops()->open(&none, &options, &scene->account);

	if (error) {
		vp_error_free(error);
		skip();
	}
	vp_stay_here();
	scene->programs = vp_account_source_ops()->programs(scene->account);
	expect_no_error(vp_recipe_parse("recipe", text, sizeof(text) - 1, &scene->recipe));
	const struct vp_intervals_options intervals = {.recipe = &scene->recipe,
						       .ring_bytes = RING,
						       .exit_programs = scene->programs,
						       .take = take,
						       .context = &scene->found};
	expect_no_error(vp_intervals_open(&intervals, &scene->intervals));
	if (vp_intervals_has_joined(scene->intervals))
		return;
	vp_intervals_free(scene->intervals);
	end(scene);
	refused = true;
	skip();
}

static void end_intervals(struct scene *scene)
{
	expect_no_error(vp_intervals_end(scene->intervals));
	expect_no_error(vp_intervals_drain(scene->intervals));
	vp_intervals_free(scene->intervals);
}

static void expect_exits(const struct found *found, uint64_t exits)
{
	assert_true(found->intervals > 0);
	assert_int_equal(found->values[0], exits);
	assert_int_equal(found->values[1], exits + 1);
	assert_int_equal(found->values[2], exits);
	assert_true(found->values[3] > 0);
}

static void test_one_program_for_both(void **state)
{
	struct scene scene = {0};

	begin(&scene);
	vp_account_source_ops()->begin(scene.account, &(vp_vms){0}, vp_now());
	expect_no_error(vp_intervals_begin(scene.intervals));
	run_exits(&scene.programs, vp_host_vendor(), EXITS);
	uint64_t counted = exits_of_account(scene.account);
	assert_true(counted == EXITS);
	end_intervals(&scene);
	expect_exits(&scene.found, EXITS);
	/* The account goes on without them. */
	run_exits(&scene.programs, vp_host_vendor(), EXITS);
	assert_int_equal(exits_of_account(scene.account), 2 * EXITS);
	expect_exits(&scene.found, EXITS);
	end(&scene);
}

/* The account begins and ends at other times than the intervals. */
static void test_account_that_does_not_count(void **state)
{
	struct scene scene = {0};

	begin(&scene);
	expect_no_error(vp_intervals_begin(scene.intervals));
	run_exits(&scene.programs, vp_host_vendor(), EXITS);
	assert_int_equal(exits_of_account(scene.account), 0);
	end_intervals(&scene);
	expect_exits(&scene.found, EXITS);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_program_for_both),
	    cmocka_unit_test(test_account_that_does_not_count),
	};

	if (!vp_kernel_takes_programs("account and intervals") || vp_host_vendor() == VP_VENDOR_ARM)
		return VP_SKIPPED;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (!failed && refused)
		printf(
		    "skipped: account and intervals in one program: this kernel refuses programs "
		    "that replace another's function (freplace)\n");
	return !failed && refused ? VP_SKIPPED : failed;
}
