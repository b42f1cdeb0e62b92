/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake_vcpu.h"

#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/filter.h>

#include "base/macros.h"

/* The VMCB is the first page, struct kvm_vcpu lies behind it, and then struct kvm and its slots. */
enum {
	PAGE = 4096,
	ROOM = 128 * PAGE,
	AT_KVM = 64 * PAGE,
	AT_SLOTS = 120 * PAGE,
	EXIT_CODE = 0x70,
	SAVE_CR3 = 0x400 + 0x150,
	SAVE_RIP = 0x400 + 0x178,
	KVM_RIP = 16, /* among KVM's registers */
};

static const struct btf_type *find_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

/* In bytes, or -1. */
static int find_member(const struct btf *btf, const struct btf_type *type, const char *name)
{
	for (int i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), name))
			return (int)btf_member_bit_offset(type, (uint32_t)i) / 8;
	return -1;
}

/* Of the kernel's struct kvm_vcpu: where RIP is. */
static int find_rip(const struct btf *btf, const struct btf_type *vcpu)
{
	const struct btf_type *arch = find_struct(btf, "kvm_vcpu_arch");
	int at = find_member(btf, vcpu, "arch"), own = find_member(btf, arch, "rip");
	int regs = find_member(btf, arch, "regs");

	assert_true(at >= 0 && regs >= 0);
	return at + (own >= 0 ? own : regs + KVM_RIP * (int)sizeof(uint64_t));
}

/* A program may write where a map's memory is: here into that memory's first word. */
static void write_address(int map)
{
	const struct bpf_insn write_own_place[] = {
	    {.code = BPF_LD | BPF_DW | BPF_IMM,
	     .dst_reg = BPF_REG_1,
	     .src_reg = BPF_PSEUDO_MAP_VALUE,
	     .imm = map},
	    {0},
	    {.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_1},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_test_run_opts, options, .flags = 0);
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "place", "GPL", write_own_place,
			       VP_ARRAY_SIZE(write_own_place), NULL);

	assert_true(fd >= 0);
	assert_int_equal(bpf_prog_test_run_opts(fd, &options), 0);
	close(fd);
}

static void place_vcpu(struct fake_vcpu *fake, int at_vmcb, int at_number)
{
	uint64_t vmcb;

	write_address(fake->map);
	memcpy(&vmcb, fake->bytes, sizeof(vmcb));
	assert_true((int64_t)vmcb < 0 && !(vmcb % PAGE));
	fake->vmcb = fake->bytes;
	fake->address = vmcb + PAGE;
	fake->number = (void *)(fake->bytes + PAGE + at_number);
	memcpy(fake->bytes + PAGE + at_vmcb, &vmcb, sizeof(vmcb));
}

static void place_protection(struct fake_vcpu *fake, const struct btf *btf)
{
	int arch = find_member(btf, find_struct(btf, "kvm"), "arch");
	int type = find_member(btf, find_struct(btf, "kvm_arch"), "vm_type");
	int sev = find_member(btf, find_struct(btf, "kvm_svm"), "sev_info");
	int vcpu_arch = find_member(btf, find_struct(btf, "kvm_vcpu"), "arch");
	int registers =
	    find_member(btf, find_struct(btf, "kvm_vcpu_arch"), "guest_state_protected");

	fake->vm_type = type >= 0 && arch >= 0 ? fake->bytes + AT_KVM + arch + type : NULL;
	fake->sev_info = sev >= 0 && sev < AT_SLOTS - AT_KVM ? fake->bytes + AT_KVM + sev : NULL;
	fake->is_protected = registers >= 0 ? fake->bytes + PAGE + vcpu_arch + registers : NULL;
}

/* Its VM, with a set of memory slots. */
static void place_vm(struct fake_vcpu *fake, const struct btf *btf)
{
	int at_kvm = find_member(btf, find_struct(btf, "kvm_vcpu"), "kvm");
	int at_slots = find_member(btf, find_struct(btf, "kvm"), "memslots");
	int at_generation = find_member(btf, find_struct(btf, "kvm_memslots"), "generation");
	uint64_t first = fake->address - PAGE, kvm = first + AT_KVM, slots = first + AT_SLOTS;

	assert_true(at_kvm >= 0 && at_slots >= 0 && at_slots < AT_SLOTS - AT_KVM);
	assert_true(at_generation >= 0);
	memcpy(fake->bytes + PAGE + at_kvm, &kvm, sizeof(kvm));
	memcpy(fake->bytes + AT_KVM + at_slots, &slots, sizeof(slots));
	fake->kvm_address = kvm;
	place_protection(fake, btf);
	fake->generation = (void *)(fake->bytes + AT_SLOTS + at_generation);
}

/* The kernel's types; those of KVM may be its module's. */
static struct btf *load_types(struct btf **kernel)
{
	struct btf *module = NULL;

	*kernel = btf__load_vmlinux_btf();
	if (!find_struct(*kernel, "kvm_vcpu"))
		module = btf__load_module_btf("kvm_amd", *kernel);
	return module ? module : *kernel;
}

static void free_types(struct btf *types, struct btf *kernel)
{
	if (types != kernel)
		btf__free(types);
	btf__free(kernel);
}

bool fake_vcpu_make(struct fake_vcpu *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct btf *kernel, *btf = load_types(&kernel);
	const struct btf_type *vcpu = find_struct(btf, "kvm_vcpu");
	int at_vmcb = find_member(btf, find_struct(btf, "vcpu_svm"), "vmcb");
	int at_number = find_member(btf, vcpu, "vcpu_id");
	int at_rip = vcpu ? find_rip(btf, vcpu) : -1;

	if (at_vmcb < 0 && vcpu)
		at_vmcb = (int)vcpu->size;
	if (at_number < 0 || at_vmcb < 0) {
		free_types(btf, kernel);
		return false;
	}
	assert_true(PAGE + at_vmcb + (int)sizeof(uint64_t) <= ROOM);
	ret->map =
	    bpf_map_create(BPF_MAP_TYPE_ARRAY, "fake_vcpu", sizeof(uint32_t), ROOM, 1, &options);
	assert_true(ret->map >= 0);
	ret->bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, ret->map, 0);
	assert_true(ret->bytes != MAP_FAILED);
	place_vcpu(ret, at_vmcb, at_number);
	place_vm(ret, btf);
	free_types(btf, kernel);
	ret->rip = ret->bytes + PAGE + at_rip;
	return true;
}

void fake_vcpu_free(struct fake_vcpu *fake)
{
	munmap(fake->bytes, ROOM);
	close(fake->map);
}

void fake_vcpu_leaves(const struct fake_vcpu *fake, uint64_t reason, uint64_t ip, uint64_t cr3)
{
	memcpy(fake->vmcb + EXIT_CODE, &reason, sizeof(reason));
	memcpy(fake->vmcb + SAVE_RIP, &ip, sizeof(ip));
	memcpy(fake->vmcb + SAVE_CR3, &cr3, sizeof(cr3));
}

void fake_vcpu_reads_rip(const struct fake_vcpu *fake, uint64_t ip, bool read)
{
	uint32_t available = read ? 1U << KVM_RIP : ~(1U << KVM_RIP);

	memcpy(fake->rip, &ip, sizeof(ip));
	memcpy(fake->rip + sizeof(ip), &available, sizeof(available));
}
