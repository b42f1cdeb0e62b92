/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the accounting programs in the kernel count of exits: by reason and by place in the guest.
 */
#include "unit.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "account_rig.h"
#include "base/macros.h"
#include "bpf/guest_current_abi.h"
#include "bpf/last_exit_abi.h"
#include "fake_vcpu.h"

enum {
	HALT = 0x01,
	HYPERCALL = 0x16,
	ABORT = 0x24,
	AMD_INTR = 0x60,
	AMD_CPUID = 0x72,
	AMD_IOIO = 0x7b,
	AMD_NPF = 0x400
};
enum { INTEL_CPUID = 10, EPT_VIOLATION = 48, EPT_MISCONFIG = 49 };
enum { EXIT_INFO_1 = 0x78, EXIT_INFO_2 = 0x80 }; /* in the VMCB */
/* Of KVM's event kvm_mmio: a read that the VMM will answer, its answer, a write. */
enum { MMIO_UNSATISFIED, MMIO_READ, MMIO_WRITE };

/* No memory of the kernel's is there. */
#define NOWHERE 0xffffff0000001000ULL

struct sum {
	uint64_t count, ns, sites;
};

static struct sum sum_sites(const struct rig *rig, const struct vp_account_vcpu *vcpu)
{
	const struct vp_account_site *row = &rig->sites[(vcpu - rig->vcpus) * VP_EXIT_SITES];
	struct sum sum = {0};

	for (size_t i = 0; i < VP_EXIT_SITES; i++) {
		sum.count += row[i].count;
		sum.ns += row[i].ns;
		sum.sites += row[i].count > 0;
	}
	return sum;
}

static struct sum sum_old_sites(const struct rig *rig)
{
	int map = bpf_map__fd(rig->programs->maps.old_sites);
	struct vp_site_key key, *before = NULL;
	struct vp_site_cost cost;
	struct sum sum = {0};

	for (; !bpf_map_get_next_key(map, before, &key); before = &key) {
		assert_int_equal(bpf_map_lookup_elem(map, &key, &cost), 0);
		assert_int_equal(key.pid, getpid());
		sum.count += cost.count;
		sum.ns += cost.ns;
		sum.sites++;
	}
	return sum;
}

/* Each exit is in the bucket of its time, by whichever way the programs find that. */
static void test_buckets_of_exits(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);
	unsigned seed = 1;

	rig_entry(rig);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	struct vp_account_exit before = {0};
	for (int i = 0; i < 2000; i++) {
		rig_exit(rig, ABORT, 0x1000);
		rig_let_pass(rig, vcpu, (uint64_t)rand_r(&seed) >> rand_r(&seed) % 31);
		rig_entry(rig);
		const struct vp_account_exit *exit = rig_exits(rig, vcpu, ABORT);
		uint32_t bucket = vp_bucket_of(exit->total - before.total);
		assert_int_equal(exit->buckets[bucket], before.buckets[bucket] + 1);
		before = *exit;
	}
	rig_close(rig);
}

static void test_by_reason(void **state)
{
	static const uint32_t reasons[] = {HALT, HYPERCALL, HYPERCALL, ABORT};
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);
	uint64_t ns = 1;

	rig_entry(rig);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	rig_expect_whole(vcpu);
	assert_int_equal(vcpu->pid, getpid());
	for (uint32_t i = 0; i < 400; i++) {
		rig_exit(rig, reasons[i % 4], 0x1000);
		ns = i % 40 ? ns * 2 : 1;
		rig_let_pass(rig, vcpu, ns);
		rig_entry(rig);
		rig_expect_whole(vcpu);
	}
	struct vp_account_exit all = rig_all_exits(rig, vcpu);
	assert_int_equal(all.count, 400);
	assert_int_equal(vcpu->exits, 400);
	assert_int_equal(all.total, vcpu->states[VP_STATE_KERNEL]);
	assert_int_equal(rig_exits(rig, vcpu, HALT)->count, 100);
	assert_int_equal(rig_exits(rig, vcpu, HYPERCALL)->count, 200);
	assert_int_equal(rig_exits(rig, vcpu, ABORT)->count, 100);
	assert_true(rig_exits(rig, vcpu, ABORT)->max >= 1ULL << 39);
	assert_int_equal(vcpu->state, VP_STATE_GUEST);
	rig_close(rig);
}

/* 64-bit Arm: a visit of the guest of `ns`, switches included, and the exit after it. Returns what
 * is counted as the guest's. */
static uint64_t visit(struct rig *rig, uint64_t ns, uint64_t code, uint64_t entry_pc, uint64_t pc)
{
	enum { LATE = 700 };
	int map = bpf_map__fd(rig->programs->maps.last_exit);

	vp_run(rig->programs->progs.note_entry, entry_pc, 0, 0);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	rig_let_pass(rig, vcpu, 1000000);
	for (uint32_t pcpu = 0; pcpu < rig->pcpus; pcpu++) {
		struct vp_last_exit last;
		assert_int_equal(bpf_map_lookup_elem(map, &pcpu, &last), 0);
		last.late_ns = LATE;
		last.entered_at = vcpu->since + LATE;
		last.left_at = last.entered_at + ns;
		assert_int_equal(bpf_map_update_elem(map, &pcpu, &last, BPF_ANY), 0);
	}
	uint64_t before = vcpu->states[VP_STATE_GUEST];
	vp_run(rig->programs->progs.note_exit, code, ABORT, pc);
	return vcpu->states[VP_STATE_GUEST] - before;
}

/* The shortest visit that an interrupt ended at the guest's first instruction is what the switches
 * take, which is the host's time. */
static void test_switches(void **state)
{
	enum { INTERRUPT = 0, TRAP = 2, PC = 0x1000, LONG = 500000 };
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);

	rig_entry(rig);
	rig_exit(rig, ABORT, PC);
	assert_int_equal(visit(rig, 5000, INTERRUPT, PC, PC), 5000); /* too long for switches */
	assert_int_equal(visit(rig, 3000, TRAP, PC, PC), 3000);
	assert_int_equal(visit(rig, 3000, INTERRUPT, PC, PC + 8), 3000);
	assert_int_equal(visit(rig, 3000, INTERRUPT, PC, PC - 4), 3000);
	assert_int_equal(visit(rig, 3000, INTERRUPT, PC, PC), 0);
	assert_int_equal(visit(rig, LONG, TRAP, PC, PC), LONG - 3000);
	assert_int_equal(visit(rig, 4000, INTERRUPT, PC, PC), 1000);  /* it stays the shortest */
	assert_int_equal(visit(rig, 2000, INTERRUPT, PC, PC + 4), 0); /* KVM skips an instruction */
	assert_int_equal(visit(rig, LONG, TRAP, PC, PC), LONG - 2000);
	assert_int_equal(visit(rig, 1000, TRAP, PC, PC), 0);
	rig_entry(rig);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	rig_expect_whole(vcpu);
	assert_int_equal(rig_all_exits(rig, vcpu).total, vcpu->states[VP_STATE_KERNEL]);
	rig_close(rig);
}

/* An interrupt of the host's is no trap: no code of the guest's caused it. */
static void test_arm_interrupt_has_no_place(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);

	rig_entry(rig);
	vp_run(rig->programs->progs.note_exit, 0, ABORT, 0x1000);
	rig_entry(rig);
	rig_exit(rig, ABORT, 0x1000);
	rig_entry(rig);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	assert_int_equal(rig_exits(rig, vcpu, VP_ARM_NO_TRAP)->count, 1);
	assert_int_equal(rig_exits(rig, vcpu, ABORT)->count, 1);
	assert_int_equal(sum_sites(rig, vcpu).count, 1);
	rig_close(rig);
}

/* Old kernels say the reason, and then whose it is. */
static void test_reason_comes_first(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_AMD, 1);

	vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	vp_run(rig->programs->progs.note_exit, AMD_CPUID, NOWHERE, 0);
	vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	rig_expect_whole(vcpu);
	assert_int_equal(vcpu->kvm_vcpu, NOWHERE);
	assert_int_equal(rig_exits(rig, vcpu, AMD_CPUID)->count, 1);
	assert_int_equal(sum_sites(rig, vcpu).count, 0);
	rig_close(rig);
}

/* What cannot be read is an exit all the same, for a reason that nobody knows. */
static void test_unreadable_vcpu(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_AMD, 1);

	for (int i = 0; i < 3; i++) {
		vp_run(rig->programs->progs.note_exit, NOWHERE, 0, 0);
		vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	}
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	rig_expect_whole(vcpu);
	assert_int_equal(vcpu->exits, 3);
	assert_int_equal(rig_exits(rig, vcpu, UINT32_MAX)->count, 3);
	assert_int_equal(sum_sites(rig, vcpu).count, 0);
	rig_close(rig);
}

/* Reason and place from a VMCB; an interrupt hits any place. */
static void test_vmcb(void **state)
{
	struct fake_vcpu fake;

	if (!fake_vcpu_make(&fake)) {
		print_message("skipped: this kernel does not describe struct kvm_vcpu\n");
		skip();
	}
	struct rig *rig = rig_open(VP_VENDOR_AMD, 1);
	*fake.number = 7;
	for (uint64_t i = 0; i < 60; i++) {
		fake_vcpu_leaves(&fake, i % 3 ? AMD_CPUID : AMD_INTR, 0x400000 + i % 2, 0x5000);
		vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
		vp_run(rig->programs->progs.note_exit, fake.address, 0, 0);
	}
	vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	rig_expect_whole(vcpu);
	assert_int_equal(vcpu->number, 7);
	assert_int_equal(rig_exits(rig, vcpu, AMD_CPUID)->count, 40);
	assert_int_equal(rig_exits(rig, vcpu, AMD_INTR)->count, 20);
	struct sum sites = sum_sites(rig, vcpu), old = sum_old_sites(rig);
	assert_int_equal(sites.count + old.count, 40);
	assert_int_equal(sites.sites + old.sites, 2);
	for (size_t i = 0; i < VP_EXIT_SITES; i++)
		assert_true(!rig->sites[i].count ||
			    (rig->sites[i].cr3 == 0x5000 && rig->sites[i].ip >> 1 == 0x200000 &&
			     rig->sites[i].reason == AMD_CPUID));
	rig_close(rig);
	fake_vcpu_free(&fake);
}

/* One instruction, and each port that it was to is counted by itself. */
static void test_ports(void **state)
{
	struct fake_vcpu fake;

	if (!fake_vcpu_make(&fake)) {
		print_message("skipped: this kernel does not describe struct kvm_vcpu\n");
		skip();
	}
	struct rig *rig = rig_open(VP_VENDOR_AMD, 1);
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t info = (0x70 + i % 3) << 16 | (i & 1);
		fake_vcpu_leaves(&fake, AMD_IOIO, 0x400000, 0x5000);
		memcpy(fake.vmcb + EXIT_INFO_1, &info, sizeof(info));
		vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
		vp_run(rig->programs->progs.note_exit, fake.address, 0, 0);
	}
	vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
	struct sum sites = sum_sites(rig, rig_vcpu(rig, vp_own_tid())), old = sum_old_sites(rig);
	assert_int_equal(sites.count + old.count, 60);
	assert_int_equal(sites.sites + old.sites, 6);
	for (size_t i = 0; i < VP_EXIT_SITES; i++)
		assert_true(!rig->sites[i].count ||
			    (rig->sites[i].detail - 0x70 < 3 && rig->sites[i].count == 10 &&
			     rig->sites[i].detail_kind - VP_DETAIL_PORT_IN < 2));
	rig_close(rig);
	fake_vcpu_free(&fake);
}

static void leave_for_memory(const struct rig *rig, const struct fake_vcpu *fake, uint64_t access,
			     uint64_t address)
{
	const uint64_t info[] = {access, address};

	_Static_assert(EXIT_INFO_2 == EXIT_INFO_1 + sizeof(info[0]), "neighbours");
	fake_vcpu_leaves(fake, AMD_NPF, 0x400000, 0x5000);
	memcpy(fake->vmcb + EXIT_INFO_1, info, sizeof(info));
	vp_run(rig->programs->progs.note_entry, fake->address, 0, 0);
	vp_run(rig->programs->progs.note_exit, fake->address, 0, 0);
}

static uint64_t count_at(const struct rig *rig, uint32_t kind, uint64_t address)
{
	uint64_t count = 0;

	for (size_t i = 0; i < VP_EXIT_SITES; i++)
		if (rig->sites[i].detail_kind == kind && rig->sites[i].address == address)
			count += rig->sites[i].count;
	return count;
}

/* Pages of memory by 2 MiB; a device's by address, once for each exit, whatever KVM does for it. */
static void test_memory(void **state)
{
	const uint64_t device = 0x38000001004;
	struct fake_vcpu fake;

	if (!fake_vcpu_make(&fake)) {
		print_message("skipped: this kernel does not describe struct kvm_vcpu\n");
		skip();
	}
	struct rig *rig = rig_open(VP_VENDOR_AMD, 1);
	const struct bpf_program *mmio = rig->programs->progs.note_mmio;
	for (uint64_t i = 0; i < 20; i++) {
		leave_for_memory(rig, &fake, 2, 0x600000 + 4096 * i);
		leave_for_memory(rig, &fake, 0, device);
		vp_run(mmio, MMIO_UNSATISFIED, 4, device);
		vp_run(mmio, MMIO_READ, 4, device);
		leave_for_memory(rig, &fake, 2, device);
		vp_run(mmio, MMIO_WRITE, 4, device);
		/* Not for memory: it may be said for what KVM has to emulate. */
		fake_vcpu_leaves(&fake, AMD_CPUID, 0x400000, 0x5000);
		vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
		vp_run(rig->programs->progs.note_exit, fake.address, 0, 0);
		vp_run(mmio, MMIO_WRITE, 4, device);
	}
	vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
	assert_int_equal(sum_old_sites(rig).count, 0);
	assert_int_equal(count_at(rig, VP_DETAIL_MEMORY_WRITE, 0x600000), 20);
	assert_int_equal(count_at(rig, VP_DETAIL_MMIO_READ, device), 20);
	assert_int_equal(count_at(rig, VP_DETAIL_MMIO_WRITE, device), 20);
	assert_int_equal(count_at(rig, VP_DETAIL_NONE, VP_NO_ADDRESS), 20);
	assert_int_equal(sum_sites(rig, rig_vcpu(rig, vp_own_tid())).sites, 4);
	rig_close(rig);
	fake_vcpu_free(&fake);
}

/* As exit_event.bpf.c notes it before. */
static void leave_intel(const struct rig *rig, uint32_t reason, uint64_t qualification)
{
	const struct vp_last_exit now = {
	    .rip = 0x1000, .reason = reason, .qualification = qualification, .known = 1};
	uint32_t pcpu = vp_stay_here();

	vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(rig->programs->maps.last_exit), &pcpu, &now, BPF_ANY),
	    0);
	vp_run(rig->programs->progs.note_exit, NOWHERE, 0, 0);
}

/* KVM tells the address later, by one event or another; older kernels do not say whose it is. */
static void test_memory_of_intel(void **state)
{
	enum { WRITTEN = 2 };
	const uint64_t device = 0x38000001004, notify = 0x38000003000;
	struct rig *rig = rig_open(VP_VENDOR_INTEL, 1);
	const struct account_bpf *programs = rig->programs;

	for (uint64_t i = 0; i < 20; i++) {
		leave_intel(rig, EPT_VIOLATION, WRITTEN);
		if (i % 2)
			vp_run(programs->progs.note_fault, NOWHERE, 0x600000 + 4096 * i, 0);
		else
			vp_run(programs->progs.note_fault, 0x600000 + 4096 * i, WRITTEN, 0);
		leave_intel(rig, EPT_MISCONFIG, 0);
		vp_run(programs->progs.note_mmio, MMIO_UNSATISFIED, 4, device);
		leave_intel(rig, EPT_MISCONFIG, 0);
		vp_run(programs->progs.note_fast_mmio, notify, 0, 0);
		leave_intel(rig, EPT_MISCONFIG, 0);
		leave_intel(rig, INTEL_CPUID, 0);
		vp_run(programs->progs.note_fault, 0x600000, WRITTEN, 0);
	}
	vp_run(programs->progs.note_entry, NOWHERE, 0, 0);
	assert_int_equal(sum_old_sites(rig).count, 0);
	assert_int_equal(count_at(rig, VP_DETAIL_MEMORY_WRITE, 0x600000), 20);
	assert_int_equal(count_at(rig, VP_DETAIL_MMIO_READ, device), 20);
	assert_int_equal(count_at(rig, VP_DETAIL_MMIO_WRITE, notify), 20);
	assert_int_equal(count_at(rig, VP_DETAIL_NONE, VP_NO_ADDRESS), 40);
	assert_int_equal(sum_sites(rig, rig_vcpu(rig, vp_own_tid())).sites, 5);
	rig_close(rig);
}

/* A guest's memory: where its pointer to the current task is, tasks, their mm. */
enum { AT_CURRENT = 0, AT_TASKS = 0x1000, AT_MMS = 0x2000, AT_ROOTS = 0x8000, AT_MM = 0x40 };
enum { AT_PGD = 0x48, TASK_SIZE = 0x400, GUEST_SIZE = 0x10000 };
#define DIRECT_MAP 0xffff888000000000ULL

static void put_word(char *memory, uint64_t at, uint64_t word)
{
	memcpy(memory + at, &word, sizeof(word));
}

/* Tasks 0 to 3 of the guest: the last is a thread of its kernel. */
static void make_guest(const struct rig *rig, char *memory)
{
	const struct account_bpf *programs = rig->programs;
	const struct vp_identity_vm vm = {.direct_map = DIRECT_MAP, .n_slots = 1};
	const struct vp_identity_slot row = {0, GUEST_SIZE, (uintptr_t)memory};
	const struct vp_identity_vcpu vcpu = {.key = (uint64_t)getpid() << 32,
					      .current_hva = (uintptr_t)memory + AT_CURRENT,
					      .off_mm = AT_MM,
					      .off_pgd = AT_PGD};
	uint32_t slot = 0;

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t mm = AT_MMS + i * TASK_SIZE;
		put_word(memory, AT_TASKS + i * TASK_SIZE + AT_MM, DIRECT_MAP + mm);
		put_word(memory, mm + AT_PGD, DIRECT_MAP + AT_ROOTS + 0x1000 * i);
	}
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_vms), &slot, &vm, BPF_ANY), 0);
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_slots), &slot, &row, BPF_ANY),
	    0);
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_vcpus), &slot, &vcpu, BPF_ANY),
	    0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(programs->maps.identity_index), &vcpu.key,
					     &slot, BPF_ANY),
			 0);
}

static uint64_t count_of_root(const struct rig *rig, uint64_t root)
{
	uint64_t count = 0;

	for (size_t i = 0; i < VP_EXIT_SITES; i++)
		count += rig->sites[i].cr3 == root ? rig->sites[i].count : 0;
	return count;
}

/* Whose an exit is: the current task's, which may have changed since, or got another mm (exec). */
static void test_roots_by_memory(void **state)
{
	static char memory[GUEST_SIZE];
	struct rig *rig = rig_open(VP_VENDOR_INTEL, 1);

	make_guest(rig, memory);
	for (uint64_t i = 0; i < 80; i++) {
		put_word(memory, AT_CURRENT, DIRECT_MAP + AT_TASKS + i / 2 % 4 * TASK_SIZE);
		leave_intel(rig, INTEL_CPUID, 0);
	}
	/* Task 3 becomes a program with the address space that was task 2's. */
	put_word(memory, AT_TASKS + 3 * TASK_SIZE + AT_MM, DIRECT_MAP + AT_MMS + 2 * TASK_SIZE);
	leave_intel(rig, INTEL_CPUID, 0);
	vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	assert_int_equal(sum_old_sites(rig).count, 0);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(count_of_root(rig, AT_ROOTS + 0x1000 * i), 20);
	assert_int_equal(count_of_root(rig, AT_ROOTS + 0x2000), 21);
	assert_int_equal(count_of_root(rig, 0), 20);
	rig_close(rig);
}

/* A guest that fills its memory leaves functions their room. */
static void test_more_memory_than_room(void **state)
{
	const uint64_t blocks = 3 * VP_SITE_BLOCKS;
	struct fake_vcpu fake;

	if (!fake_vcpu_make(&fake)) {
		print_message("skipped: this kernel does not describe struct kvm_vcpu\n");
		skip();
	}
	struct rig *rig = rig_open(VP_VENDOR_AMD, 1);
	for (uint64_t i = 0; i < blocks; i++)
		leave_for_memory(rig, &fake, 2, i * VP_MEMORY_BLOCK);
	vp_run(rig->programs->progs.note_entry, fake.address, 0, 0);
	struct sum sites = sum_sites(rig, rig_vcpu(rig, vp_own_tid())), old = sum_old_sites(rig);
	assert_int_equal(sites.count + old.count, blocks);
	assert_int_equal(old.sites, VP_SITE_BLOCKS + 1);
	assert_int_equal(rig->programs->bss->lost.sites, 0);
	rig_close(rig);
	fake_vcpu_free(&fake);
}

/* The last row takes all reasons that are too many. */
static void test_more_reasons_than_rows(void **state)
{
	const uint32_t reasons = VP_EXIT_REASONS + 20;
	struct rig *rig = rig_open(VP_VENDOR_AMD, 2);

	for (uint32_t i = 0; i < 3 * reasons; i++) {
		vp_run(rig->programs->progs.note_exit, i % reasons, NOWHERE, 0);
		vp_run(rig->programs->progs.note_entry, NOWHERE, 0, 0);
	}
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	size_t slot = (size_t)(vcpu - rig->vcpus);
	const struct vp_account_exit *row = &rig->exits[slot * VP_EXIT_REASONS];
	for (uint32_t i = 0; i + 1 < VP_EXIT_REASONS; i++)
		assert_true(row[i].reason == i && row[i].count == 3);
	assert_int_equal(row[VP_EXIT_REASONS - 1].count, 3 * 21);
	assert_int_equal(rig_all_exits(rig, vcpu).count, 3 * reasons);
	assert_int_equal(rig_all_exits(rig, vcpu).total, vcpu->states[VP_STATE_KERNEL]);
	/* The next vCPU's rows are none of its. */
	assert_int_equal(rig_all_exits(rig, &rig->vcpus[!slot]).count, 0);
	rig_close(rig);
}

static void exit_at(const struct rig *rig, uint32_t slots, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds * slots; i++) {
		rig_exit(rig, HYPERCALL, 0xffffffff81000000ULL + 5ULL * (i % slots));
		rig_entry(rig);
	}
}

/* A site that loses its place to another keeps its counts. */
static void test_sites_are_evicted(void **state)
{
	const uint32_t slots = 4 * VP_EXIT_SITES;
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);

	rig_entry(rig);
	exit_at(rig, slots, 3);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	struct sum sites = sum_sites(rig, vcpu), old = sum_old_sites(rig);
	assert_true(sites.sites > 0 && old.sites > VP_EXIT_SITES);
	assert_true(old.sites <= slots);
	assert_int_equal(sites.count + old.count, 3 * slots);
	assert_int_equal(sites.ns + old.ns, rig_all_exits(rig, vcpu).total);
	assert_int_equal(rig->programs->bss->lost.sites, 0);
	rig_close(rig);
}

/* What finds no room at all is counted as lost. */
static void test_sites_are_lost(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);
	uint32_t slots = bpf_map__max_entries(rig->programs->maps.old_sites) + 4 * VP_EXIT_SITES;

	rig_entry(rig);
	exit_at(rig, slots, 1);
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	uint64_t lost = rig->programs->bss->lost.sites;
	assert_true(lost > 0);
	assert_int_equal(sum_sites(rig, vcpu).count + sum_old_sites(rig).count + lost, slots);
	rig_close(rig);
}

/* The bucket as the definition says it, by division and not by bits. */
static uint32_t plain_bucket(uint64_t ns)
{
	uint64_t begin = 16;
	uint32_t bucket = 4;

	if (ns < begin)
		return (uint32_t)(ns / 4);
	for (; begin < 1ULL << 40; begin *= 2, bucket += 4)
		if (ns / 2 < begin)
			return bucket + (uint32_t)((ns - begin) / (begin / 4));
	return bucket;
}

static void test_buckets(void **state)
{
	for (uint64_t ns = 0; ns < 1 << 16; ns++)
		assert_int_equal(vp_bucket_of(ns), plain_bucket(ns));
	for (uint64_t power = 2; power; power <<= 1)
		for (uint64_t part = 4; part < 8; part++)
			for (uint64_t near = 0; near < 3; near++) {
				uint64_t ns = power / 4 * part + near - 1;
				assert_int_equal(vp_bucket_of(ns), plain_bucket(ns));
			}
	assert_int_equal(plain_bucket(UINT64_MAX), VP_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_buckets),
	    cmocka_unit_test(test_by_reason),
	    cmocka_unit_test(test_buckets_of_exits),
	    cmocka_unit_test(test_switches),
	    cmocka_unit_test(test_arm_interrupt_has_no_place),
	    cmocka_unit_test(test_reason_comes_first),
	    cmocka_unit_test(test_unreadable_vcpu),
	    cmocka_unit_test(test_vmcb),
	    cmocka_unit_test(test_ports),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_memory_of_intel),
	    cmocka_unit_test(test_roots_by_memory),
	    cmocka_unit_test(test_more_memory_than_room),
	    cmocka_unit_test(test_more_reasons_than_rows),
	    cmocka_unit_test(test_sites_are_evicted),
	    cmocka_unit_test(test_sites_are_lost),
	};

	if (!vp_kernel_takes_programs("the account of exits"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
