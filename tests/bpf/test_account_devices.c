/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arm's interrupts are those of devices. An exit for one alone is counted at the next entry. */
#include "unit.h"

#include "account_rig.h"
#include "base/macros.h"

enum {
	ABORT = 0x24,
	CODE_IRQ = 0, /* ARM_EXCEPTION_IRQ */
	CODE_SERROR = 1,
	TIMER = 11,
	ROWS = VP_IRQ_SOURCES - VP_IRQ_LOCAL_TIMER,
	MS = 1000000
};

struct scene {
	struct rig *rig;
	const struct account_bpf *programs;
	struct vp_account_vcpu *vcpu;
};

/* In the guest; the first interrupt of the timer has been counted in the host. */
static struct scene begin(struct rig *rig)
{
	struct scene scene = {rig, rig->programs, NULL};

	rig_entry(rig);
	scene.vcpu = rig_vcpu(rig, vp_own_tid());
	assert_non_null(scene.vcpu);
	rig_exit(rig, ABORT, 0x1000);
	vp_run(scene.programs->progs.begin_device, TIMER, 0, 0);
	vp_run(scene.programs->progs.end_device, TIMER, 0, 0);
	rig_entry(rig);
	assert_int_equal(scene.vcpu->irq_count[VP_IRQ_LOCAL_TIMER], 1);
	assert_int_equal(scene.vcpu->irq_device[VP_IRQ_LOCAL_TIMER], VP_IRQ_DEVICE + TIMER);
	return scene;
}

static void end(struct scene *scene)
{
	struct vp_account_exit all = rig_all_exits(scene->rig, scene->vcpu);

	rig_expect_whole(scene->vcpu);
	assert_int_equal(all.count, scene->vcpu->exits);
	assert_int_equal(all.stolen, scene->vcpu->states[VP_STATE_IRQ]);
	rig_close(scene->rig);
}

/* 2 ms after what was last, an interrupt of 1 ms. */
static void interrupt(const struct scene *scene, uint32_t device)
{
	rig_let_pass(scene->rig, scene->vcpu, 2 * MS);
	vp_run(scene->programs->progs.begin_device, device, 0, 0);
	rig_let_pass(scene->rig, scene->vcpu, MS);
	vp_run(scene->programs->progs.end_device, device, 0, 0);
}

static struct vp_thief_cost taken_by(const struct scene *scene, uint32_t device)
{
	return rig_thieves(scene->rig, scene->vcpu, 1 << VP_STATE_IRQ, VP_BY_DEVICE, device);
}

/* The exit and its interrupt change the vCPU's account only at the entry. */
static void test_hit(void **state)
{
	struct scene scene = begin(rig_open(VP_VENDOR_ARM, 1));
	struct vp_account_vcpu before = *scene.vcpu;

	interrupt(&scene, TIMER);
	vp_run(scene.programs->progs.note_exit, CODE_IRQ, 0, 0x1000);
	assert_memory_equal(scene.vcpu->states, before.states, sizeof(before.states));
	assert_int_equal(scene.vcpu->exits, before.exits);
	assert_int_equal(taken_by(&scene, TIMER).count, 1);
	rig_let_pass(scene.rig, scene.vcpu, 3 * MS);
	rig_entry(scene.rig);

	const __u64 *states = scene.vcpu->states;
	assert_int_equal(taken_by(&scene, TIMER).count, 2);
	assert_int_equal(taken_by(&scene, TIMER).ns, states[VP_STATE_IRQ]);
	assert_true(states[VP_STATE_GUEST] - before.states[VP_STATE_GUEST] >= 2 * MS);
	assert_true(states[VP_STATE_IRQ] - before.states[VP_STATE_IRQ] >= MS);
	assert_true(states[VP_STATE_KERNEL] - before.states[VP_STATE_KERNEL] >= 3 * MS);
	const struct vp_account_exit *exit = rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP);
	assert_int_equal(exit->count, 1);
	assert_true(exit->total >= 4 * MS && exit->total < 6 * MS);
	end(&scene);
}

static uint64_t exits_at(const struct scene *scene, uint64_t ip)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < VP_EXIT_SITES; i++)
		sum += scene->rig->sites[i].ip == ip ? scene->rig->sites[i].count : 0;
	return sum;
}

/* An exit with another reason, a second interrupt, or a switch: the first one still counts once. */
static void test_hit_and_more(void **state)
{
	struct scene scene = begin(rig_open(VP_VENDOR_ARM, 1));

	interrupt(&scene, TIMER);
	rig_exit(scene.rig, ABORT, 0x2000);
	rig_entry(scene.rig);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, ABORT)->count, 2);
	assert_int_equal(taken_by(&scene, TIMER).count, 2);
	assert_int_equal(exits_at(&scene, 0x2000), 1);
	interrupt(&scene, TIMER);
	interrupt(&scene, TIMER + 1);
	vp_run(scene.programs->progs.note_exit, CODE_IRQ, 0, 0x1000);
	rig_entry(scene.rig);
	assert_int_equal(taken_by(&scene, TIMER).count, 3);
	assert_int_equal(taken_by(&scene, TIMER + 1).count, 1);
	interrupt(&scene, TIMER);
	vp_run(scene.programs->progs.note_exit, CODE_SERROR, 0, 0x1000);
	rig_entry(scene.rig);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP)->count, 1);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP + 1)->count, 1);
	interrupt(&scene, TIMER);
	vp_run(scene.programs->progs.note_exit, CODE_IRQ, 0, 0x1000);
	vp_run(scene.programs->progs.note_vmm, 0, 0, 0);
	rig_let_pass(scene.rig, scene.vcpu, 4 * MS);
	rig_entry(scene.rig);
	assert_int_equal(taken_by(&scene, TIMER).count, 5);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP)->count, 2);
	assert_true(rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP)->vmm >= 4 * MS);
	end(&scene);
}

/* The first devices of a vCPU have rows of it; the others are in the table of thieves. */
static void test_more_devices_than_rows(void **state)
{
	struct scene scene = begin(rig_open(VP_VENDOR_ARM, 1));

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < ROWS + 2; i++) {
			interrupt(&scene, TIMER + i);
			vp_run(scene.programs->progs.note_exit, CODE_IRQ, 0, 0x1000);
			rig_entry(scene.rig);
		}
	uint64_t sum = 0;
	for (uint32_t i = 0; i < ROWS + 2; i++) {
		struct vp_thief_cost cost = taken_by(&scene, TIMER + i);
		assert_int_equal(cost.count, i ? 2 : 3);
		assert_true(cost.ns >= 2 * MS);
		sum += cost.ns;
	}
	assert_int_equal(sum, scene.vcpu->states[VP_STATE_IRQ]);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP)->count, 2 * (ROWS + 2));
	end(&scene);
}

/* With sampled timing, a timed one represents those before it. A device without a row is timed. */
static void test_untimed(void **state)
{
	enum { SKIPPED = 7 };
	struct scene scene = begin(rig_open_sampled(VP_VENDOR_ARM, 1));
	uint64_t irq = scene.vcpu->states[VP_STATE_IRQ];

	for (int i = 0; i < SKIPPED; i++) {
		for (uint32_t j = 0; j < scene.rig->pcpus; j++)
			scene.rig->programs->bss->heres[j].hit_skip = 1;
		interrupt(&scene, TIMER);
		vp_run(scene.programs->progs.note_exit, CODE_IRQ, 0, 0x1000);
		rig_entry(scene.rig);
	}
	const struct vp_account_exit *exit = rig_exits(scene.rig, scene.vcpu, VP_ARM_NO_TRAP);
	assert_int_equal(exit->count, SKIPPED);
	assert_int_equal(exit->untimed, SKIPPED);
	assert_int_equal(taken_by(&scene, TIMER).count, 1 + SKIPPED);
	assert_int_equal(scene.vcpu->states[VP_STATE_IRQ], irq);
	for (uint32_t j = 0; j < scene.rig->pcpus; j++)
		scene.rig->programs->bss->heres[j].hit_skip = 0;
	interrupt(&scene, TIMER);
	vp_run(scene.programs->progs.note_exit, CODE_IRQ, 0, 0x1000);
	rig_entry(scene.rig);
	irq = scene.vcpu->states[VP_STATE_IRQ] - irq;
	assert_true(irq >= (SKIPPED + 1) * MS && irq % (SKIPPED + 1) == 0);
	assert_int_equal(exit->weights, (SKIPPED + 1) * SKIPPED);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hit),
	    cmocka_unit_test(test_hit_and_more),
	    cmocka_unit_test(test_more_devices_than_rows),
	    cmocka_unit_test(test_untimed),
	};

	if (!vp_kernel_takes_programs("the account of devices"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
