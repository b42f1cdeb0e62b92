/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exits that are counted and not timed: counts, states and waits are as exact as where each is
 * timed, and the time of those that are timed stands for the others'. */
#include "unit.h"

#include <math.h>

#include "account_rig.h"
#include "base/macros.h"
#include "schema/account_grade.h"

enum {
	HALT = 0x01,
	HYPERCALL = 0x16,
	ABORT = 0x24,
	INTERRUPT = 0x60, /* AMD's */
	CPUID = 0x72,
	IRQ = 5,
	BLOCK_SOFTIRQ = 4,
	US = 1000,
	MS = 1000000
};

/* No memory of the kernel's is there. */
#define NOWHERE 0xffffff0000001000ULL

struct scene {
	struct rig *rig;
	struct vp_account_vcpu *vcpu;
};

/* In the guest. */
static struct scene begin(void)
{
	struct rig *rig = rig_open_sampled(VP_VENDOR_ARM, 1);

	rig_entry(rig);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	assert_non_null(vcpu);
	return (struct scene){rig, vcpu};
}

static void pass(const struct scene *scene, uint64_t ns)
{
	rig_let_pass(scene->rig, scene->vcpu, ns);
}

static void leave(const struct scene *scene, uint32_t reason, uint64_t kernel_ns)
{
	rig_exit(scene->rig, reason, 0x1000);
	pass(scene, kernel_ns);
	rig_entry(scene->rig);
	rig_expect_whole(scene->vcpu);
}

static struct vp_account_exit *row_of(const struct scene *scene, uint32_t reason)
{
	return (struct vp_account_exit *)rig_exits(scene->rig, scene->vcpu, reason);
}

/* The next ones of that reason are not timed. There must have been one. */
static struct vp_account_exit *leave_untimed(const struct scene *scene, uint32_t reason)
{
	struct vp_account_exit *exit = row_of(scene, reason);

	exit->all = 0;
	exit->skip = 1000;
	exit->timed_at = vp_now() + 1000ULL * MS;
	return exit;
}

static struct vp_exit_timing timing_of(const struct vp_account_exit *exit)
{
	return (struct vp_exit_timing){exit->timed, exit->sum, exit->squares, exit->weights};
}

/* Of each time in a state other than the guest's, a reason has its part. */
static void end(struct scene *scene)
{
	struct vp_account_vcpu *vcpu = scene->vcpu;
	struct vp_account_exit all = rig_all_exits(scene->rig, vcpu);

	rig_expect_whole(vcpu);
	assert_int_equal(all.count, vcpu->exits);
	assert_int_equal(all.total, vcpu->since - vcpu->begin - vcpu->states[VP_STATE_GUEST]);
	assert_int_equal(all.vmm, vcpu->states[VP_STATE_VMM]);
	assert_int_equal(all.stolen, vcpu->states[VP_STATE_IRQ]);
	rig_close(scene->rig);
}

/* Most of the frequent ones are not timed, and their time is known within its error all the same.
 * Two kinds that alternate are no problem: which are timed is random. */
static void test_frequent_exits(void **state)
{
	enum { EXITS = 60000, SHORT = 20 * US, LONG = 100 * US };
	struct scene scene = begin();
	unsigned seed = 1;
	uint64_t kernel = 0, start = vp_now();

	for (int i = 0; i < EXITS; i++) {
		uint64_t ns = (i % 2 ? LONG : SHORT) + (uint64_t)rand_r(&seed) % (10 * US);
		pass(&scene, 50 * US);
		leave(&scene, ABORT, ns);
		kernel += ns;
	}
	const struct vp_account_exit *exit = row_of(&scene, ABORT);
	const struct vp_exit_timing timing = timing_of(exit);
	assert_int_equal(exit->count, EXITS);
	assert_in_range(exit->timed, EXITS / 200, EXITS / 20);
	double error = sqrt(vp_exit_timing_variance(&timing));
	double off = (double)scene.vcpu->states[VP_STATE_KERNEL] +
		     (double)(exit->untimed * (uint64_t)(SHORT + LONG) / 2) - (double)kernel;
	assert_true(error > 0.005 * (double)kernel);
	/* Running the programs takes time, too. */
	assert_true(off > -4 * error && off < 4 * error + (double)(vp_now() - start));
	assert_int_equal(exit->total, scene.vcpu->states[VP_STATE_KERNEL]);
	end(&scene);
}

/* Of those that come less often than that, each is. */
static void test_rare_exits(void **state)
{
	struct scene scene = begin();

	for (int i = 0; i < 500; i++) {
		pass(&scene, 20 * MS);
		leave(&scene, i % 2 ? ABORT : HYPERCALL, 3 * US);
	}
	assert_int_equal(row_of(&scene, ABORT)->timed, 250);
	assert_int_equal(row_of(&scene, HYPERCALL)->timed, 250);
	assert_int_equal(row_of(&scene, ABORT)->weights, 0);
	end(&scene);
}

/* Frequent ones become few: the next one is timed, whatever was planned. */
static void test_they_become_few(void **state)
{
	struct scene scene = begin();

	leave(&scene, ABORT, US);
	struct vp_account_exit *exit = leave_untimed(&scene, ABORT);
	exit->timed_at = vp_now();
	leave(&scene, ABORT, US);
	assert_int_equal(exit->timed, 1);
	assert_int_equal(exit->untimed, 1);
	pass(&scene, 100 * MS);
	leave(&scene, HYPERCALL, US); /* tells the time */
	leave(&scene, ABORT, US);
	assert_int_equal(exit->timed, 2);
	assert_int_equal(exit->untimed, 0);
	assert_int_equal(exit->weights, 2);
	end(&scene);
}

/* Nothing is known of the time of one that is not timed, until one is. */
static void test_one_for_all(void **state)
{
	struct scene scene = begin();

	pass(&scene, 100 * MS);
	leave(&scene, ABORT, 5 * MS);
	struct vp_account_exit *exit = leave_untimed(&scene, ABORT);
	uint64_t total = exit->total;
	for (int i = 0; i < 9; i++) {
		pass(&scene, MS);
		leave(&scene, ABORT, 3 * MS);
	}
	assert_int_equal(exit->count, 10);
	assert_int_equal(exit->untimed, 9);
	assert_int_equal(exit->total, total);
	exit->skip = 0;
	leave(&scene, ABORT, 2 * MS);
	assert_int_equal(exit->untimed, 0);
	total = exit->total - total;
	assert_true(total >= 10 * 2 * MS && total % 10 == 0);
	assert_int_equal(exit->weights, 10 * 9);
	uint32_t most = 0;
	for (size_t i = 0; i < VP_BUCKETS; i++)
		most = exit->buckets[i] > most ? exit->buckets[i] : most;
	assert_int_equal(most, 10);
	end(&scene);
}

static void test_vmm(void **state)
{
	struct scene scene = begin();

	leave(&scene, ABORT, US);
	struct vp_account_exit *exit = leave_untimed(&scene, ABORT);
	rig_exit(scene.rig, ABORT, 0x1000);
	pass(&scene, MS);
	vp_run(scene.rig->programs->progs.note_vmm, 0, 0, 0);
	pass(&scene, 7 * MS);
	rig_entry(scene.rig);
	assert_true(exit->vmm >= 7 * MS);
	assert_int_equal(exit->timed, 1);
	assert_int_equal(exit->vmm, scene.vcpu->states[VP_STATE_VMM]);
	/* From now on those of that reason are timed. */
	leave(&scene, ABORT, US);
	assert_int_equal(exit->timed, 2);
	for (int i = 0; i < VP_TIMED_AFTER_LONG - 1; i++) {
		assert_int_equal(exit->skip, 0);
		leave(&scene, ABORT, US);
	}
	assert_int_equal(exit->all, 0);
	end(&scene);
}

/* KVM says how long a halt polled: each is timed. */
static void test_halts(void **state)
{
	struct scene scene = begin();

	leave(&scene, HALT, US);
	const struct vp_account_exit *exit = leave_untimed(&scene, HALT);
	leave(&scene, HALT, US);
	assert_int_equal(exit->timed, 2);
	leave_untimed(&scene, HALT);
	rig_exit(scene.rig, HALT, 0x1000);
	pass(&scene, 9 * MS);
	vp_run(scene.rig->programs->progs.note_poll, 4 * MS, 0, 0);
	rig_entry(scene.rig);
	assert_int_equal(scene.vcpu->states[VP_STATE_POLL], 4 * MS);
	end(&scene);
}

/* Interrupts and softirqs in one that is not timed are. */
static void test_interrupts(void **state)
{
	struct scene scene = begin();
	const struct account_bpf *programs = scene.rig->programs;

	leave(&scene, ABORT, US);
	const struct vp_account_exit *exit = leave_untimed(&scene, ABORT);
	uint64_t kernel = scene.vcpu->states[VP_STATE_KERNEL];
	rig_exit(scene.rig, ABORT, 0x1000);
	pass(&scene, MS);
	vp_run(programs->progs.begin_device, IRQ, 0, 0);
	pass(&scene, 3 * MS);
	vp_run(programs->progs.end_device, IRQ, 0, 0);
	assert_int_equal(scene.vcpu->state, VP_STATE_GUEST);
	vp_run(programs->progs.begin_softirq, BLOCK_SOFTIRQ, 0, 0);
	pass(&scene, 5 * MS);
	vp_run(programs->progs.end_softirq, BLOCK_SOFTIRQ, 0, 0);
	pass(&scene, MS);
	rig_entry(scene.rig);
	assert_int_equal(exit->timed, 1);
	assert_true(exit->stolen >= 8 * MS);
	assert_int_equal(scene.vcpu->states[VP_STATE_KERNEL], kernel);
	end(&scene);
}

/* The entry of one that is not timed was not told. */
static void test_exit_without_entry(void **state)
{
	struct scene scene = begin();

	leave(&scene, ABORT, US);
	const struct vp_account_exit *exit = leave_untimed(&scene, ABORT);
	rig_exit(scene.rig, ABORT, 0x1000);
	rig_exit(scene.rig, ABORT, 0x1000);
	rig_entry(scene.rig);
	assert_int_equal(exit->count, 3);
	assert_int_equal(exit->untimed, 2);
	end(&scene);
}

/* Where they were is counted of all, and their time where there is one that is timed. */
static void test_sites(void **state)
{
	struct scene scene = begin();
	uint64_t count = 0, untimed = 0, ns = 0;

	pass(&scene, 1000 * MS);
	leave(&scene, ABORT, US);
	struct vp_account_exit *exit = leave_untimed(&scene, ABORT);
	uint64_t total = exit->total;
	for (int i = 0; i < 100; i++) {
		rig_exit(scene.rig, ABORT, 0x2000 + 0x1000 * (uint64_t)(i % 4));
		rig_entry(scene.rig);
	}
	exit->skip = 0;
	rig_exit(scene.rig, ABORT, 0x3000);
	pass(&scene, MS);
	rig_entry(scene.rig);
	for (size_t i = 0; i < VP_EXIT_SITES; i++) {
		const struct vp_account_site *site = &scene.rig->sites[i];
		count += site->count;
		untimed += site->untimed;
		if (site->count && site->ip == 0x3000) {
			assert_int_equal(site->count, 26);
			ns = site->ns;
		}
	}
	assert_int_equal(count, 102);
	assert_int_equal(untimed, 75);
	total = exit->total - total;
	assert_true(ns >= 26 * MS);
	assert_int_equal(ns / 26, total / 101);
	end(&scene);
}

#if defined(__x86_64__)
/* AMD's, which has them; the reason is KVM's argument, as old kernels have it. */
static struct scene begin_hits(void)
{
	struct rig *rig = rig_open_sampled(VP_VENDOR_AMD, 1);

	vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	struct scene scene = {rig, rig_vcpu(rig, vp_own_tid())};
	assert_non_null(scene.vcpu);
	pass(&scene, 1000 * MS);
	vp_run(rig->programs->progs.note_exit, CPUID, NOWHERE, 0);
	vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	return scene;
}

static struct vp_account_here *here_of(const struct scene *scene, int pcpu)
{
	return &scene->rig->programs->bss->heres[pcpu];
}

/* An interrupt hits the guest, KVM's exit is for it alone, and the guest goes on. */
static void hit(const struct scene *scene, uint32_t skip, uint64_t irq_ns, uint64_t kernel_ns)
{
	const struct account_bpf *programs = scene->rig->programs;

	for (uint32_t i = 0; i < scene->rig->pcpus; i++) {
		here_of(scene, (int)i)->in_guest = 1;
		here_of(scene, (int)i)->hit_skip = skip;
	}
	vp_run(programs->progs.begin_local_timer, 0, 0, 0);
	pass(scene, irq_ns);
	vp_run(programs->progs.end_local_timer, 0, 0, 0);
	for (uint32_t i = 0; i < scene->rig->pcpus; i++)
		here_of(scene, (int)i)->hit_reason = INTERRUPT;
	pass(scene, kernel_ns);
	vp_run(programs->progs.note_entry, NOWHERE, 0, 0);
	rig_expect_whole(scene->vcpu);
}

static void test_hits(void **state)
{
	struct scene scene = begin_hits();
	const struct vp_account_vcpu *vcpu = scene.vcpu;

	hit(&scene, 0, 2 * MS, MS);
	uint64_t irq = vcpu->states[VP_STATE_IRQ], kernel = vcpu->states[VP_STATE_KERNEL];
	assert_true(irq >= 2 * MS);
	for (int i = 0; i < 7; i++)
		hit(&scene, 1, 2 * MS, MS);
	const struct vp_account_exit *exit = row_of(&scene, INTERRUPT);
	assert_int_equal(exit->count, 8);
	assert_int_equal(exit->untimed, 7);
	assert_int_equal(vcpu->irq_count[VP_IRQ_LOCAL_TIMER], 8);
	assert_int_equal(vcpu->states[VP_STATE_IRQ], irq);
	hit(&scene, 0, 2 * MS, MS);
	irq = vcpu->states[VP_STATE_IRQ] - irq;
	kernel = vcpu->states[VP_STATE_KERNEL] - kernel;
	assert_true(irq >= 8 * 2 * MS && irq % 8 == 0);
	assert_true(kernel >= 8 * MS && kernel % 8 == 0);
	assert_int_equal(vcpu->irq_ns[VP_IRQ_LOCAL_TIMER], vcpu->states[VP_STATE_IRQ]);
	assert_int_equal(exit->weights, 8 * 7);
	assert_int_equal(vcpu->irq_count[VP_IRQ_LOCAL_TIMER], 9);
	end(&scene);
}

/* After one that is not timed, KVM tells of something else than an entry. */
static void test_hit_turns_long(void **state)
{
	struct scene scene = begin_hits();
	const struct account_bpf *programs = scene.rig->programs;

	for (uint32_t i = 0; i < scene.rig->pcpus; i++) {
		here_of(&scene, (int)i)->in_guest = 1;
		here_of(&scene, (int)i)->hit_skip = 1;
	}
	vp_run(programs->progs.begin_local_timer, 0, 0, 0);
	vp_run(programs->progs.end_local_timer, 0, 0, 0);
	for (uint32_t i = 0; i < scene.rig->pcpus; i++)
		here_of(&scene, (int)i)->hit_reason = INTERRUPT;
	vp_run(programs->progs.note_vmm, 0, 0, 0);
	pass(&scene, 4 * MS);
	vp_run(programs->progs.note_entry, NOWHERE, 0, 0);
	const struct vp_account_exit *exit = row_of(&scene, INTERRUPT);
	assert_int_equal(exit->count, 1);
	assert_true(exit->vmm >= 4 * MS);
	end(&scene);
}
#endif

/* Any sequence at all: nothing is in two states, or in none, and no exit is lost. */
static void test_any_sequence(void **state)
{
	struct scene scene = begin();
	const struct account_bpf *programs = scene.rig->programs;
	const struct bpf_program *any[] = {
	    programs->progs.note_exit,     programs->progs.note_entry,   programs->progs.note_vmm,
	    programs->progs.note_poll,     programs->progs.begin_device, programs->progs.end_device,
	    programs->progs.begin_softirq, programs->progs.end_softirq,
	};
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		const struct bpf_program *program = any[rand_r(&seed) % VP_ARRAY_SIZE(any)];
		rig_let_pass(scene.rig, scene.vcpu, rand_r(&seed) % 4096);
		for (size_t j = 0; i % 2 == 0 && j < VP_EXIT_REASONS; j++) {
			scene.rig->exits[j].all = 0;
			scene.rig->exits[j].skip = rand_r(&seed) % 4;
		}
		/* Half of them are traps (2), of a few reasons. */
		uint64_t code = rand_r(&seed) % 2 ? 2 : (uint64_t)rand_r(&seed) % 4;
		vp_run(program, code, (uint64_t)rand_r(&seed) % 8, 0x1000);
		rig_expect_whole(scene.vcpu);
	}
	struct vp_account_exit all = rig_all_exits(scene.rig, scene.vcpu);
	const __u64 *states = scene.vcpu->states;
	uint64_t timed = 0;
	for (size_t j = 0; j < VP_EXIT_REASONS; j++)
		timed += scene.rig->exits[j].timed;
	assert_true(all.count > 1000 && all.count == scene.vcpu->exits);
	assert_true(timed > 100 && timed + 100 < all.count);
	assert_true(all.total <= scene.vcpu->since - scene.vcpu->begin - states[VP_STATE_GUEST]);
	assert_true(all.vmm && all.vmm <= states[VP_STATE_VMM]);
	assert_true(all.stolen && all.stolen <= states[VP_STATE_IRQ]);
	rig_close(scene.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frequent_exits),
		cmocka_unit_test(test_rare_exits),
		cmocka_unit_test(test_they_become_few),
		cmocka_unit_test(test_one_for_all),
		cmocka_unit_test(test_vmm),
		cmocka_unit_test(test_halts),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_exit_without_entry),
		cmocka_unit_test(test_sites),
#if defined(__x86_64__)
		cmocka_unit_test(test_hits),
		cmocka_unit_test(test_hit_turns_long),
#endif
		cmocka_unit_test(test_any_sequence),
	};

	if (!vp_kernel_takes_programs("the sampled account"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
