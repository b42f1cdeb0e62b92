/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An iterator over open files that lists, for every process with an open KVM VM, the VM's memory
 * slots and those vCPU registers that are in host memory. Reading it has no side effects and
 * pauses no vCPU. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/guest_state_abi.h"
#include "bpf/kvm_arm.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/kvm_protection.bpf.h"

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} CORE;

struct qstr {
	const unsigned char *name;
} CORE;

struct dentry {
	struct qstr d_name;
} CORE;

struct path {
	struct dentry *dentry;
} CORE;

struct file {
	struct path f_path;
	void *private_data;
} CORE;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} CORE;

struct task_struct___mm {
	struct mm_struct *mm;
} CORE;

struct kvm___mm {
	struct mm_struct *mm;
} CORE;

/* 64-bit Arm: since v6.4 (47053904e182 "KVM: arm64: timers: Convert per-vcpu virtual offset to a
 * global value") the counter offset is per VM; before, it is a register of each vCPU. */
struct arch_timer_vm_data {
	__u64 voffset;
} CORE;
struct kvm_arch___arm {
	struct arch_timer_vm_data timer_data;
} CORE;
struct kvm___arm {
	struct kvm_arch___arm arch;
} CORE;

struct kvm_memory_slot {
	__u64 base_gfn;
	unsigned long npages;
	unsigned long userspace_addr;
	__u32 flags;
} CORE;

/* Until v5.17, commits 0f9bdef3d933 to a54d806688fe "KVM: Keep memslots in tree-based
 * structures". */
struct kvm_memslots___array {
	int used_slots;
	struct kvm_memory_slot memslots[1];
} CORE;

/* Since then. Every slot is in a hash table by number, in addition to the trees. */
struct kvm_memslots___hash {
	struct hlist_head id_hash[128];
	int node_idx;
} CORE;
struct kvm_memory_slot___hash {
	struct hlist_node id_node[2];
} CORE;

enum { BUCKETS = 128, MAX_IN_BUCKET = 1024, ARRAY_PIECE = 256, PAGE_BITS = 12 };

/* Lists only this process; 0: all. */
__u32 only_pid = 0;

/* The listed slots; slots beyond the limit are only counted. */
struct vp_guest_listed_slot found[VP_LISTED_SLOTS] = {};
__u32 n_found = 0;
/* Generation of the slots listed last: it changes with any slot. */
__u64 generation = 0;
/* enum vp_guest_protection of the VM listed last. */
__u32 protection = 0;

/* Global functions with scalar arguments: the verifier checks each once, not once per possible
 * slot. */
__noinline int find_slot(__u64 address, __u32 pid)
{
	struct kvm_memory_slot *slot = (void *)address;
	__u32 at_offset = n_found++;

	if (at_offset >= VP_LISTED_SLOTS)
		return 0;
	struct vp_guest_listed_slot *item = &found[at_offset];
	item->pid = pid;
	item->gpa = BPF_CORE_READ(slot, base_gfn) << PAGE_BITS;
	item->size = BPF_CORE_READ(slot, npages) << PAGE_BITS;
	item->hva = BPF_CORE_READ(slot, userspace_addr);
	item->flags = BPF_CORE_READ(slot, flags);
	return 0;
}

/* The slots of a list; `at_offset`: offset of the list node in a slot. */
__noinline int find_list(__u64 head, __u64 at_offset, __u32 pid)
{
	__u64 node = 0;

	bpf_probe_read_kernel(&node, sizeof(node), (void *)head);
	for (int i = 0; i < MAX_IN_BUCKET && node; i++) {
		find_slot(node - at_offset, pid);
		bpf_probe_read_kernel(&node, sizeof(node), (void *)node);
	}
	return 0;
}

/* The slots of an array, starting with `first`. */
__noinline int find_array(__u64 first, __u32 count, __u32 pid)
{
	for (__u32 i = 0; i < ARRAY_PIECE && i < count; i++)
		find_slot(first + i * bpf_core_type_size(struct kvm_memory_slot), pid);
	return 0;
}

static __always_inline void list_hash(__u32 pid, struct kvm_memslots___hash *slots)
{
	struct kvm_memory_slot___hash *shape = 0;
	__u32 active = BPF_CORE_READ(slots, node_idx) & 1;
	__u64 at_offset = bpf_core_field_offset(shape->id_node) + active * sizeof(void *) * 2;
	__u64 heads = (__u64)slots + bpf_core_field_offset(slots->id_hash);

	for (int i = 0; i < BUCKETS; i++)
		find_list(heads + i * sizeof(void *), at_offset, pid);
}

static __always_inline void list_array(__u32 pid, struct kvm_memslots___array *slots)
{
	__u32 used = BPF_CORE_READ(slots, used_slots);
	__u64 first = (__u64)slots + bpf_core_field_offset(slots->memslots);

	for (__u32 i = 0; i < VP_LISTED_SLOTS && i < used; i += ARRAY_PIECE)
		find_array(first + i * bpf_core_type_size(struct kvm_memory_slot), used - i, pid);
}

static __always_inline void list_slots(__u32 pid, struct kvm *kvm)
{
	struct kvm_memslots *slots = BPF_CORE_READ(kvm, memslots[0]);
	struct kvm_memslots___hash *hash = (void *)slots;
	struct kvm_memslots___array *array = (void *)slots;

	if (!slots)
		return;
	generation = slots_generation(kvm);
	if (bpf_core_field_exists(hash->id_hash))
		list_hash(pid, hash);
	else if (bpf_core_field_exists(array->used_slots))
		list_array(pid, array);
}

static __always_inline __u64 saved(const void *vmcb, __u32 offset)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), vmcb + offset);
	return value;
}

/* On x86, KVM shows it in debugfs. */
static __always_inline bool read_counter_offset(struct kvm_vcpu *vcpu, __u64 *ret)
{
	struct kvm___arm *kvm = (void *)BPF_CORE_READ((struct kvm_vcpu___vm *)vcpu, kvm);
	struct kvm_vcpu___arm *arm = (void *)vcpu;

	if (bpf_core_field_exists(kvm->arch.timer_data)) {
		barrier(); /* keeps out the code for the other kernels' layout */
		return !bpf_core_read(ret, sizeof(*ret), &kvm->arch.timer_data.voffset);
	}
	if (bpf_core_field_exists(arm->arch.ctxt) &&
	    bpf_core_enum_value_exists(enum vcpu_sysreg, CNTVOFF_EL2)) {
		barrier();
		__u32 at_offset = bpf_core_field_offset(arm->arch.ctxt.sys_regs) +
				  bpf_core_enum_value(enum vcpu_sysreg, CNTVOFF_EL2) * sizeof(*ret);
		return !bpf_probe_read_kernel(ret, sizeof(*ret), (void *)vcpu + at_offset);
	}
	return false;
}

/* Intel's registers are in the VMCS, which only the processor can read. */
static __always_inline void list_vcpu(struct seq_file *seq, __u32 pid, struct kvm_vcpu *vcpu)
{
	struct vp_guest_item item = {.pid = pid};
	void *vmcb = vendor == 2 ? vmcb_of(vcpu) : 0;

	item.vcpu = BPF_CORE_READ(vcpu, vcpu_id);
	item.has_counter = read_counter_offset(vcpu, &item.counter_offset);
	if (vmcb) {
		bool nested_paging = saved(vmcb, VMCB_NESTED_CTL) & 1;
		item.cr3 =
		    nested_paging ? saved(vmcb, VMCB_SAVE_CR3) : BPF_CORE_READ(vcpu, arch.cr3);
		item.cr4 = saved(vmcb, VMCB_SAVE_CR4);
		item.lstar = saved(vmcb, VMCB_SAVE_LSTAR);
		item.idt = saved(vmcb, VMCB_SAVE_IDT);
		item.gs_base = saved(vmcb, VMCB_SAVE_GS);
		item.kernel_gs_base = saved(vmcb, VMCB_SAVE_KERNEL_GS);
	}
	if (vendor == VP_VENDOR_ARM) {
		item.ttbr1 = READ_ARM_SYSREG(vcpu, TTBR1_EL1);
		item.tcr = READ_ARM_SYSREG(vcpu, TCR_EL1);
		item.vbar = READ_ARM_SYSREG(vcpu, VBAR_EL1);
		item.tpidr1 = READ_ARM_SYSREG(vcpu, TPIDR_EL1);
	}
	bpf_seq_write(seq, &item, sizeof(item));
}

static __always_inline bool guest_state_is_called(const char *name, const char *begin, int size)
{
	for (int i = 0; i < size; i++)
		if (name[i] != begin[i])
			return false;
	return true;
}

SEC("iter/task_file")
int list_guests(struct bpf_iter__task_file *context)
{
	struct task_struct *task = context->task;
	struct file *file = context->file;
	char name[12] = {};

	/* The threads of a process usually share its files: visit one of them. */
	if (!task || !file || !bpf_core_type_exists(struct kvm))
		return 0;
	__u32 pid = BPF_CORE_READ(task, tgid);
	if (pid != BPF_CORE_READ(task, pid) || (only_pid && pid != only_pid))
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	bool vm = guest_state_is_called(name, "kvm-vm", 7),
	     cpu = guest_state_is_called(name, "kvm-vcpu:", 9);
	if (!vm && !cpu)
		return 0;
	/* Any file may have that name, but only KVM's has a VM with the process's own mm. */
	void *data = BPF_CORE_READ(file, private_data);
	struct kvm *kvm = vm ? data : BPF_CORE_READ((struct kvm_vcpu___vm *)data, kvm);
	struct mm_struct *mm = BPF_CORE_READ((struct task_struct___mm *)task, mm);
	if (!mm || BPF_CORE_READ((struct kvm___mm *)kvm, mm) != mm)
		return 0;
	if (!vm && !protection)
		protection = protection_of_vcpu(data);
	if (!vm) {
		list_vcpu(context->meta->seq, pid, data);
		return 0;
	}
	__u32 of_vm = protection_of(kvm);
	if (of_vm)
		protection = of_vm;
	list_slots(pid, kvm);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
