/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the accounting programs in the kernel close a vCPU's states, whatever comes after what. */
#include "unit.h"

#include "account_rig.h"
#include "base/macros.h"

enum { HYPERCALL = 0x16, ABORT = 0x24, IRQ = 5, BLOCK_SOFTIRQ = 4, RCU_SOFTIRQ = 9, MS = 1000000 };

struct scene {
	struct rig *rig;
	struct vp_account_vcpu *vcpu;
};

/* In the guest. */
static struct scene begin(void)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);

	rig_entry(rig);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	assert_non_null(vcpu);
	assert_int_equal(vcpu->state, VP_STATE_GUEST);
	return (struct scene){rig, vcpu};
}

/* Every exit's time is in a state, and in none of the guest's. */
static void end(struct scene *scene)
{
	struct vp_account_vcpu *vcpu = scene->vcpu;
	struct vp_account_exit all = rig_all_exits(scene->rig, vcpu);

	rig_expect_whole(vcpu);
	assert_int_equal(all.count, vcpu->exits);
	assert_int_equal(all.total, vcpu->since - vcpu->begin - vcpu->states[VP_STATE_GUEST]);
	assert_int_equal(all.poll, vcpu->states[VP_STATE_POLL]);
	assert_int_equal(all.vmm, vcpu->states[VP_STATE_VMM]);
	assert_int_equal(all.stolen, vcpu->states[VP_STATE_IRQ]);
	rig_close(scene->rig);
}

static void test_guest_and_kernel(void **state)
{
	struct scene scene = begin();

	rig_let_pass(scene.rig, scene.vcpu, 3 * MS);
	rig_exit(scene.rig, ABORT, 0x1000);
	assert_int_equal(scene.vcpu->state, VP_STATE_KERNEL);
	assert_true(scene.vcpu->states[VP_STATE_GUEST] >= 3 * MS);
	rig_let_pass(scene.rig, scene.vcpu, 5 * MS);
	rig_entry(scene.rig);
	assert_true(scene.vcpu->states[VP_STATE_KERNEL] >= 5 * MS);
	assert_true(rig_exits(scene.rig, scene.vcpu, ABORT)->max >= 5 * MS);
	end(&scene);
}

static void test_vmm(void **state)
{
	struct scene scene = begin();

	rig_exit(scene.rig, ABORT, 0x1000);
	vp_run(scene.rig->programs->progs.note_vmm, 0, 0, 0);
	assert_int_equal(scene.vcpu->state, VP_STATE_VMM);
	rig_let_pass(scene.rig, scene.vcpu, 7 * MS);
	rig_entry(scene.rig);
	assert_int_equal(scene.vcpu->state, VP_STATE_GUEST);
	assert_true(rig_exits(scene.rig, scene.vcpu, ABORT)->vmm >= 7 * MS);
	assert_true(scene.vcpu->states[VP_STATE_VMM] >= 7 * MS);
	end(&scene);
}

/* KVM says afterwards how long it polled: that time is taken from the kernel's. */
static void test_poll(void **state)
{
	const bool slept = true;
	struct scene scene = begin();

	rig_exit(scene.rig, ABORT, 0x1000);
	rig_let_pass(scene.rig, scene.vcpu, 9 * MS);
	vp_run(scene.rig->programs->progs.note_poll, 4 * MS, !slept, 0);
	assert_int_equal(scene.vcpu->states[VP_STATE_POLL], 4 * MS);
	assert_true(scene.vcpu->states[VP_STATE_KERNEL] >= 5 * MS);
	assert_int_equal(scene.vcpu->poll_wasted, 0);
	rig_entry(scene.rig);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, ABORT)->poll, 4 * MS);
	assert_int_equal(scene.vcpu->polls, 1);
	end(&scene);
}

/* More than the exit's own time was no polling, whatever KVM says; without an exit none was. */
static void test_poll_is_bounded(void **state)
{
	const bool slept = true;
	struct scene scene = begin();
	const struct bpf_program *poll = scene.rig->programs->progs.note_poll;

	vp_run(poll, 4 * MS, !slept, 0);
	assert_int_equal(scene.vcpu->states[VP_STATE_POLL], 0);
	rig_exit(scene.rig, ABORT, 0x1000);
	vp_run(poll, UINT64_MAX, slept, 0);
	assert_int_equal(scene.vcpu->states[VP_STATE_KERNEL], 0);
	assert_int_equal(scene.vcpu->poll_wasted, scene.vcpu->states[VP_STATE_POLL]);
	vp_run(poll, UINT64_MAX, slept, 0);
	assert_int_equal(scene.vcpu->states[VP_STATE_KERNEL], 0);
	rig_entry(scene.rig);
	end(&scene);
}

/* On its way to the scheduler, and back, a vCPU that does not poll has work. */
static void test_no_poll(void **state)
{
	const bool slept = true;
	struct scene scene = begin();

	rig_exit(scene.rig, ABORT, 0x1000);
	rig_let_pass(scene.rig, scene.vcpu, 5 * MS);
	scene.vcpu->flags |= VP_POLLS_NOT;
	vp_run(scene.rig->programs->progs.note_poll, 4 * MS, slept, 0);
	assert_int_equal(scene.vcpu->states[VP_STATE_POLL], 0);
	assert_int_equal(scene.vcpu->polls, 0);
	assert_int_equal(scene.vcpu->poll_wasted, 0);
	assert_int_equal(scene.vcpu->flags & VP_POLLS_NOT, 0); /* it is not known of the next one */
	rig_entry(scene.rig);
	end(&scene);
}

/* Of what KVM says after a sleep, the sleep was no polling. */
static void test_poll_and_sleep(void **state)
{
	const bool slept = true;
	struct scene scene = begin();

	rig_exit(scene.rig, ABORT, 0x1000);
	rig_let_pass(scene.rig, scene.vcpu, 5 * MS);
	scene.vcpu->block_at = vp_now();
	scene.vcpu->flags |= VP_BLOCKED_ONCE;
	rig_let_pass(scene.rig, scene.vcpu, 20 * MS);
	vp_run(scene.rig->programs->progs.note_poll, 23 * MS, slept, 0);
	assert_true(scene.vcpu->states[VP_STATE_POLL] <= 3 * MS);
	assert_true(scene.vcpu->poll_wasted == scene.vcpu->states[VP_STATE_POLL]);
	rig_entry(scene.rig);
	end(&scene);
}

static void test_seen_first_at_its_exit(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);

	rig_exit(rig, ABORT, 0x1000);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	assert_int_equal(vcpu->state, VP_STATE_KERNEL);
	rig_entry(rig);
	assert_int_equal(vcpu->exits, 1);
	end(&(struct scene){rig, vcpu});
}

/* The places of an exit reason waited as long as the reason did. */
static void expect_waits_of_sites(const struct scene *scene, uint32_t reason)
{
	const struct vp_account_exit *exits = rig_exits(scene->rig, scene->vcpu, reason);
	const struct vp_account_site *row =
	    &scene->rig->sites[(scene->vcpu - scene->rig->vcpus) * VP_EXIT_SITES];
	uint64_t idle = 0, stolen = 0;

	for (size_t i = 0; i < VP_EXIT_SITES; i++) {
		idle += row[i].idle;
		stolen += row[i].stolen;
	}
	assert_int_equal(idle, exits->blocked);
	assert_int_equal(stolen, exits->stolen + exits->waking);
}

/* KVM lets an interrupt in before it says that there was an exit: the exit began with it. */
static void test_late_exit(void **state)
{
	struct scene scene = begin();

	vp_run(scene.rig->programs->progs.begin_device, IRQ, 0, 0);
	rig_let_pass(scene.rig, scene.vcpu, 6 * MS);
	vp_run(scene.rig->programs->progs.end_device, IRQ, 0, 0);
	assert_int_equal(scene.vcpu->state, VP_STATE_KERNEL);
	uint64_t exit_at = scene.vcpu->exit_at;
	assert_true(scene.vcpu->since - exit_at >= 6 * MS);
	rig_exit(scene.rig, ABORT, 0x1000);
	assert_int_equal(scene.vcpu->exit_at, exit_at);
	rig_entry(scene.rig);
	assert_int_equal(scene.vcpu->exits, 1);
	assert_true(rig_exits(scene.rig, scene.vcpu, ABORT)->stolen >= 6 * MS);
	expect_waits_of_sites(&scene, ABORT);
	end(&scene);
}

static void test_exit_without_entry(void **state)
{
	struct scene scene = begin();

	rig_exit(scene.rig, ABORT, 0x1000);
	rig_let_pass(scene.rig, scene.vcpu, 4 * MS);
	rig_exit(scene.rig, HYPERCALL, 0x2000);
	rig_let_pass(scene.rig, scene.vcpu, 2 * MS);
	rig_entry(scene.rig);
	const struct vp_account_exit *first = rig_exits(scene.rig, scene.vcpu, ABORT);
	const struct vp_account_exit *second = rig_exits(scene.rig, scene.vcpu, HYPERCALL);
	assert_true(first->count == 1 && first->total >= 4 * MS);
	assert_true(second->count == 1 && second->total >= 2 * MS);
	end(&scene);
}

static void test_entry_without_exit(void **state)
{
	struct scene scene = begin();

	rig_let_pass(scene.rig, scene.vcpu, 4 * MS);
	rig_entry(scene.rig);
	rig_entry(scene.rig);
	assert_int_equal(scene.vcpu->exits, 0);
	assert_true(scene.vcpu->states[VP_STATE_GUEST] >= 4 * MS);
	end(&scene);
}

/* A device's interrupt while a soft one is handled: each gets its own time. */
static void test_hard_in_soft(void **state)
{
	struct scene scene = begin();
	struct vp_account_vcpu *vcpu = scene.vcpu;

	rig_exit(scene.rig, ABORT, 0x1000);
	vp_run(scene.rig->programs->progs.begin_softirq, BLOCK_SOFTIRQ, 0, 0);
	assert_int_equal(vcpu->state, VP_STATE_IRQ);
	rig_let_pass(scene.rig, vcpu, 2 * MS);
	vp_run(scene.rig->programs->progs.begin_device, IRQ, 0, 0);
	rig_let_pass(scene.rig, vcpu, 3 * MS);
	vp_run(scene.rig->programs->progs.end_device, IRQ, 0, 0);
	assert_int_equal(vcpu->state, VP_STATE_IRQ);
	rig_let_pass(scene.rig, vcpu, 2 * MS);
	vp_run(scene.rig->programs->progs.end_softirq, BLOCK_SOFTIRQ, 0, 0);
	assert_int_equal(vcpu->state, VP_STATE_KERNEL);
	rig_entry(scene.rig);
	struct vp_thief_cost device =
	    rig_thieves(scene.rig, vcpu, 1 << VP_STATE_IRQ, VP_BY_DEVICE, IRQ);
	assert_true(device.ns >= 3 * MS && device.count == 1);
	assert_true(vcpu->irq_ns[BLOCK_SOFTIRQ] >= 4 * MS);
	assert_int_equal(vcpu->irq_count[BLOCK_SOFTIRQ], 1);
	assert_int_equal(vcpu->irq_ns[BLOCK_SOFTIRQ] + device.ns, vcpu->states[VP_STATE_IRQ]);
	end(&scene);
}

/* Its begin changes nothing that is read; what ends is the one that began last. */
static void test_hard_at_its_end(void **state)
{
	struct scene scene = begin();
	const struct account_bpf *programs = scene.rig->programs;
	struct vp_account_vcpu before = *scene.vcpu;

	vp_run(programs->progs.begin_device, IRQ, 0, 0);
	assert_memory_equal(&before, scene.vcpu, sizeof(before));
	vp_run(programs->progs.begin_device, IRQ + 1, 0, 0);
	vp_run(programs->progs.end_device, IRQ, 0, 0);
	assert_memory_equal(&before, scene.vcpu, sizeof(before));
	vp_run(programs->progs.end_device, IRQ + 1, 0, 0);
	vp_run(programs->progs.end_device, IRQ + 1, 0, 0);
	assert_int_equal(scene.vcpu->state, VP_STATE_KERNEL);
	rig_exit(scene.rig, ABORT, 0x1000);
	rig_entry(scene.rig);
	struct vp_thief_cost cost =
	    rig_thieves(scene.rig, scene.vcpu, 1 << VP_STATE_IRQ, VP_BY_DEVICE, IRQ + 1);
	assert_int_equal(cost.count, 1);
	assert_int_equal(cost.ns, scene.vcpu->states[VP_STATE_IRQ]);
	end(&scene);
}

/* One that nests in its own kind is the outer one's time; it returns to the VMM if it was there. */
static void test_nested_and_alone(void **state)
{
	struct scene scene = begin();
	struct vp_account_vcpu *vcpu = scene.vcpu;

	rig_exit(scene.rig, ABORT, 0x1000);
	vp_run(scene.rig->programs->progs.note_vmm, 0, 0, 0);
	vp_run(scene.rig->programs->progs.end_softirq, BLOCK_SOFTIRQ, 0, 0);
	vp_run(scene.rig->programs->progs.end_device, IRQ, 0, 0);
	assert_int_equal(vcpu->state, VP_STATE_VMM);
	vp_run(scene.rig->programs->progs.begin_softirq, BLOCK_SOFTIRQ, 0, 0);
	vp_run(scene.rig->programs->progs.begin_softirq, RCU_SOFTIRQ, 0, 0);
	vp_run(scene.rig->programs->progs.end_softirq, RCU_SOFTIRQ, 0, 0);
	vp_run(scene.rig->programs->progs.end_device, IRQ, 0, 0);
	assert_int_equal(vcpu->state, VP_STATE_IRQ);
	vp_run(scene.rig->programs->progs.end_softirq, BLOCK_SOFTIRQ, 0, 0);
	assert_int_equal(vcpu->state, VP_STATE_VMM);
	rig_entry(scene.rig);
	assert_int_equal(vcpu->irq_count[BLOCK_SOFTIRQ], 1);
	assert_int_equal(vcpu->irq_count[RCU_SOFTIRQ], 0);
	assert_int_equal(vcpu->irq_ns[BLOCK_SOFTIRQ], vcpu->states[VP_STATE_IRQ]);
	end(&scene);
}

#if defined(__x86_64__)
static void test_vectors(void **state)
{
	struct scene scene = begin();
	const struct account_bpf *programs = scene.rig->programs;
	const struct {
		const struct bpf_program *begin, *end;
		enum vp_irq_source source;
	} vectors[] = {
	    {programs->progs.begin_local_timer, programs->progs.end_local_timer,
	     VP_IRQ_LOCAL_TIMER},
	    {programs->progs.begin_reschedule, programs->progs.end_reschedule, VP_IRQ_RESCHEDULE},
	    {programs->progs.begin_call_function, programs->progs.end_call_function,
	     VP_IRQ_CALL_FUNCTION},
	    {programs->progs.begin_call_function_single, programs->progs.end_call_function_single,
	     VP_IRQ_CALL_FUNCTION_SINGLE},
	    {programs->progs.begin_irq_work, programs->progs.end_irq_work, VP_IRQ_WORK},
	};
	uint64_t sum = 0;

	rig_exit(scene.rig, ABORT, 0x1000);
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(vectors); i++) {
		vp_run(vectors[i].begin, 0, 0, 0);
		rig_let_pass(scene.rig, scene.vcpu, (i + 1) * MS);
		vp_run(vectors[i].end, 0, 0, 0);
		assert_int_equal(scene.vcpu->irq_count[vectors[i].source], 1);
		assert_true(scene.vcpu->irq_ns[vectors[i].source] >= (i + 1) * MS);
		sum += scene.vcpu->irq_ns[vectors[i].source];
	}
	rig_entry(scene.rig);
	assert_int_equal(sum, scene.vcpu->states[VP_STATE_IRQ]);
	end(&scene);
}

/* A timer interrupt of 1 ms, 2 ms after what was last. */
static void interrupt(const struct scene *scene)
{
	const struct account_bpf *programs = scene->rig->programs;

	rig_let_pass(scene->rig, scene->vcpu, 2 * MS);
	vp_run(programs->progs.begin_local_timer, 0, 0, 0);
	rig_let_pass(scene->rig, scene->vcpu, MS);
	vp_run(programs->progs.end_local_timer, 0, 0, 0);
}

/* One that hits the guest, on a host where an entry says that it may. */
static void hit_guest(const struct scene *scene)
{
	for (uint32_t i = 0; i < scene->rig->pcpus; i++)
		scene->rig->programs->bss->heres[i].in_guest = 1;
	interrupt(scene);
}

static void expect_hits(const struct scene *scene, uint64_t count)
{
	const struct vp_account_vcpu *vcpu = scene->vcpu;

	assert_int_equal(vcpu->irq_count[VP_IRQ_LOCAL_TIMER], count);
	assert_int_equal(vcpu->irq_ns[VP_IRQ_LOCAL_TIMER], vcpu->states[VP_STATE_IRQ]);
	assert_true(vcpu->states[VP_STATE_IRQ] >= count * MS);
	assert_true(vcpu->states[VP_STATE_GUEST] >= count * 2 * MS);
	rig_expect_whole(vcpu);
}

/* Counted by whichever program comes next, once. */
static void test_hits(void **state)
{
	struct scene scene = begin();
	const struct account_bpf *programs = scene.rig->programs;

	rig_exit(scene.rig, ABORT, 0x1000);
	rig_entry(scene.rig);
	hit_guest(&scene);
	expect_hits(&scene, 0);
	rig_exit(scene.rig, ABORT, 0x1000);
	expect_hits(&scene, 1);
	rig_entry(scene.rig);
	expect_hits(&scene, 1);
	assert_int_equal(rig_exits(scene.rig, scene.vcpu, ABORT)->stolen,
			 scene.vcpu->states[VP_STATE_IRQ]);

	hit_guest(&scene);
	expect_hits(&scene, 1);
	vp_run(programs->progs.note_vmm, 0, 0, 0);
	expect_hits(&scene, 2);
	rig_exit(scene.rig, ABORT, 0x1000);
	rig_entry(scene.rig);
	hit_guest(&scene);
	interrupt(&scene); /* in the host's kernel, behind the first */
	assert_int_equal(scene.vcpu->irq_count[VP_IRQ_LOCAL_TIMER], 4);
	assert_true(scene.vcpu->states[VP_STATE_GUEST] >= 3 * 2 * MS);
	rig_exit(scene.rig, ABORT, 0x1000);
	rig_entry(scene.rig);
	end(&scene);
}

/* All of an exit that was for the interrupt only is counted at the entry. */
static void test_exit_of_hit(void **state)
{
	enum { INTERRUPT = 0x60 };
	struct scene scene = begin();

	rig_exit(scene.rig, ABORT, 0x1000);
	rig_entry(scene.rig);
	uint64_t exits = scene.vcpu->exits, kernel = scene.vcpu->states[VP_STATE_KERNEL];
	hit_guest(&scene);
	for (uint32_t i = 0; i < scene.rig->pcpus; i++)
		scene.rig->programs->bss->heres[i].hit_reason = INTERRUPT;
	rig_let_pass(scene.rig, scene.vcpu, 3 * MS);
	rig_entry(scene.rig);
	expect_hits(&scene, 1);
	assert_int_equal(scene.vcpu->exits, exits + 1);
	kernel = scene.vcpu->states[VP_STATE_KERNEL] - kernel;
	assert_true(kernel >= 3 * MS);
	const struct vp_account_exit *exit = rig_exits(scene.rig, scene.vcpu, INTERRUPT);
	assert_int_equal(exit->count, 1);
	assert_int_equal(exit->stolen, scene.vcpu->states[VP_STATE_IRQ]);
	assert_int_equal(exit->total, kernel + exit->stolen);
	rig_entry(scene.rig);
	assert_int_equal(scene.vcpu->exits, exits + 1);
	end(&scene);
}
#endif

/* Any sequence at all: nothing is in two states, or in none. */
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
		vp_run(program, (uint64_t)rand_r(&seed) % 4, (uint64_t)rand_r(&seed) % 64, 0x1000);
		rig_expect_whole(scene.vcpu);
	}
	struct vp_account_exit all = rig_all_exits(scene.rig, scene.vcpu);
	const __u64 *states = scene.vcpu->states;
	assert_true(all.count > 1000 && all.count == scene.vcpu->exits);
	assert_true(all.total <= scene.vcpu->since - scene.vcpu->begin - states[VP_STATE_GUEST]);
	assert_true(all.vmm && all.vmm <= states[VP_STATE_VMM]);
	assert_true(all.poll && all.poll <= states[VP_STATE_POLL]);
	assert_true(all.stolen && all.stolen <= states[VP_STATE_IRQ]);
	rig_close(scene.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guest_and_kernel),
		cmocka_unit_test(test_vmm),
		cmocka_unit_test(test_poll),
		cmocka_unit_test(test_poll_is_bounded),
		cmocka_unit_test(test_no_poll),
		cmocka_unit_test(test_poll_and_sleep),
		cmocka_unit_test(test_seen_first_at_its_exit),
		cmocka_unit_test(test_late_exit),
		cmocka_unit_test(test_exit_without_entry),
		cmocka_unit_test(test_entry_without_exit),
		cmocka_unit_test(test_hard_in_soft),
		cmocka_unit_test(test_hard_at_its_end),
		cmocka_unit_test(test_nested_and_alone),
#if defined(__x86_64__)
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_hits),
		cmocka_unit_test(test_exit_of_hit),
#endif
		cmocka_unit_test(test_any_sequence),
	};

	if (!vp_kernel_takes_programs("the account of states"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
