/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The current task of a guest, read from guest memory in the context of the vCPU thread: the VMM
 * has guest RAM mapped, so it is ordinary user memory here. At most three small reads, which cannot
 * sleep: a page that is not mapped at the moment is a failure, and counted.
 */
#ifndef VP_BPF_GUEST_CURRENT_BPF_H
#define VP_BPF_GUEST_CURRENT_BPF_H

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "bpf/guest_current_abi.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/last_exit.bpf.h"
#include "schema/chain_end.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_IDENTITY_VMS);
	__type(key, __u32);
	__type(value, struct vp_identity_vm);
} identity_vms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_IDENTITY_VCPUS);
	__type(key, __u32);
	__type(value, struct vp_identity_vcpu);
} identity_vcpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_IDENTITY_SLOTS);
	__type(key, __u32);
	__type(value, struct vp_identity_slot);
} identity_slots SEC(".maps");

/* Index of a vCPU, by pid of the VMM << 32 | vCPU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_IDENTITY_VCPUS);
	__type(key, __u64);
	__type(value, __u32);
} identity_index SEC(".maps");

/* Recently named threads: hash of the VMM's pid, ids and name. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} identity_names SEC(".maps");

struct guest_current {
	__u32 tid, tgid;
	__u64 as_root; /* given by the caller, or read from guest memory; 0: unknown */
	__u64 task;    /* guest address of its task_struct */
	bool known;
	bool is_new;                               /* not named recently … */
	char comm[16] __attribute__((aligned(8))); /* … its name */
};

/* Within that time a task at the same address with the same page tables is the same task: a
 * task_struct is freed only after an RCU grace period, and exec changes the page tables. */
enum { SURELY_SAME_NS = 4000000 };
/* Reusing a page-table root at the same address takes two execs of the thread; within that time it
 * is not noticed. */
enum { SAME_ROOT_NS = 64000000 };

/* The vCPU, looked up first at the index remembered by the caller; 0: its kernel is unknown. */
static __always_inline struct vp_identity_vcpu *find_identity(__u32 pid, __u32 number, __u32 *memo)
{
	__u64 key = (__u64)pid << 32 | number;
	__u32 index = *memo;
	struct vp_identity_vcpu *vcpu = bpf_map_lookup_elem(&identity_vcpus, &index);

	if (vcpu && vcpu->key == key)
		return vcpu;
	__u32 *found = bpf_map_lookup_elem(&identity_index, &key);
	if (!found)
		return 0;
	index = *memo = *found;
	vcpu = bpf_map_lookup_elem(&identity_vcpus, &index);
	return vcpu && vcpu->key == key ? vcpu : 0;
}

/* Guest physical address of an address in the kernel's image or direct map. */
static __always_inline __u64 gpa_in_kernel(const struct vp_identity_vm *vm, __u64 va)
{
	__u64 in_image = va - vm->image_va;

	return in_image < vm->image_size ? vm->image_gpa + in_image : va - vm->direct_map;
}

/*
 * Translates a guest physical range within one memory slot to the VMM's address; 0: no slot.
 * Inlined into global functions: another call would exceed the stack limit at VM exits of `vperf
 * record --trace`. The verifier checks each of these functions once.
 */
static __always_inline __u64 hva_in_slots(__u32 first, __u32 count, __u64 gpa, __u32 size)
{
	/* The first slot that starts beyond it is between these. */
	__u32 low = 0, high = count;

	for (int i = 0; i <= VP_IDENTITY_SLOT_BITS && low < high; i++) {
		__u32 middle = (low + high) / 2, index = first + middle;
		struct vp_identity_slot *slot = bpf_map_lookup_elem(&identity_slots, &index);
		if (!slot)
			return 0;
		if (slot->gpa > gpa)
			high = middle;
		else
			low = middle + 1;
	}
	__u32 index = first + low - 1;
	struct vp_identity_slot *slot = low ? bpf_map_lookup_elem(&identity_slots, &index) : 0;
	if (!slot)
		return 0;
	__u64 at = gpa - slot->gpa;
	return at < slot->size && slot->size - at >= size ? slot->hva + at : 0;
}

/* The VMM's address of a struct at that kernel address; 0: none. */
__noinline __u64 hva_in_kernel(__u32 number, __u64 va, __u32 size)
{
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &number);

	if (!vm)
		return 0;
	return hva_in_slots(vm->first_slot, vm->n_slots, gpa_in_kernel(vm, va), size);
}

/* Whether the host cannot read the page-table root: on Intel, and on Arm with VHE until the vCPU is
 * put. */
static __always_inline bool root_is_hidden(void)
{
	return vendor == VP_VENDOR_INTEL || vendor == VP_VENDOR_ARM;
}

static __always_inline bool root_is_in_memory(const struct vp_identity_vcpu *vcpu)
{
	return root_is_hidden() && vcpu->off_mm;
}

/* Bits of CR3 that are the same in both tables of a process. */
#define CR3_ROOT_BITS 0x000fffffffffe000ULL

/*
 * Whether these page tables are those of the current task, found before: WHOLE, or why not. From
 * some point on, a process that exits has none, and runs with those of any other one. When the
 * kernel switches processes, it changes the page tables first. Not for 64-bit Arm.
 */
static __always_inline enum vp_chain_end memory_of_task(const struct vp_identity_vcpu *vcpu,
							__u64 as_root)
{
	const struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &vcpu->vm);
	__u64 mm = 0, pgd = 0;

	if (!vm || !vcpu->off_mm)
		return VP_CHAIN_WHOLE; /* unknown */
	if (bpf_probe_read_user(&mm, sizeof(mm), (void *)vcpu->task_hva + vcpu->off_mm))
		return VP_CHAIN_UNREADABLE;
	if (!mm)
		return VP_CHAIN_EXITED;
	__u64 hva = hva_in_kernel(vcpu->vm, mm + vcpu->off_pgd, sizeof(pgd));
	if (!hva || bpf_probe_read_user(&pgd, sizeof(pgd), (void *)hva) ||
	    (gpa_in_kernel(vm, pgd) ^ as_root) & CR3_ROOT_BITS)
		return VP_CHAIN_UNREADABLE;
	return VP_CHAIN_WHOLE;
}

/* Finds the task; searches again only if the pointer to it has changed, or it was not found. */
static __always_inline bool find_task(struct vp_identity_vcpu *vcpu)
{
	__u64 task = 0;

	if (bpf_probe_read_user(&task, sizeof(task), (void *)vcpu->current_hva))
		return false;
	if (task != vcpu->task || !vcpu->task_hva) {
		__u32 last = vcpu->off_comm > vcpu->off_ids ? vcpu->off_comm : vcpu->off_ids;
		if (vcpu->off_mm && vcpu->off_mm + VP_NEAR_WORDS * sizeof(__u64) > last)
			last = vcpu->off_mm + VP_NEAR_WORDS * sizeof(__u64);
		__u32 size = (last > vcpu->off_stack ? last : vcpu->off_stack) + 16;
		vcpu->task_hva = hva_in_kernel(vcpu->vm, task, size);
		vcpu->task = task;
		vcpu->nowhere += !vcpu->task_hva;
	}
	return vcpu->task_hva != 0;
}

static __always_inline bool read_mm(struct vp_identity_vcpu *vcpu)
{
	return !bpf_probe_read_user(&vcpu->mm_now, sizeof(vcpu->mm_now),
				    (void *)vcpu->task_hva + vcpu->off_mm);
}

/* Reads the task's ids, and in vcpu->mm_now its mm if the root is read from memory; mm is shortly
 * before the ids in all known kernels. */
static __always_inline bool read_numbers(struct vp_identity_vcpu *vcpu, __u64 *ids)
{
	const char *task = (const char *)vcpu->task_hva;
	__u32 distance = vcpu->off_ids - vcpu->off_mm, index = distance / sizeof(*ids);
	struct vp_last_exit *room = root_is_in_memory(vcpu) ? this_cpu_last_exit() : 0;

	barrier_var(index); /* otherwise the compiler checks one copy and uses another */
	if (!room || distance % sizeof(*ids) || index >= VP_NEAR_WORDS)
		return !bpf_probe_read_user(ids, sizeof(*ids), task + vcpu->off_ids) &&
		       (!root_is_in_memory(vcpu) || read_mm(vcpu));
	if (bpf_probe_read_user(room->words, sizeof(room->words), task + vcpu->off_mm))
		return false;
	vcpu->mm_now = room->words[0];
	*ids = room->words[index];
	return true;
}

/* Reads the whole task: a task_struct may be reused, and exec changes the name. Impossible values
 * are rejected. */
static __always_inline bool read_task(struct vp_identity_vcpu *vcpu, struct guest_current *ret)
{
	__u64 ids = 0;

	if (!read_numbers(vcpu, &ids) ||
	    bpf_probe_read_user(ret->comm, sizeof(ret->comm),
				(void *)vcpu->task_hva + vcpu->off_comm))
		return false;
	vcpu->tid = (__u32)ids;
	vcpu->tgid = ids >> 32;
	/* PID_MAX_LIMIT; only idle tasks have pid 0. A name may be empty or of any script, but is
	 * terminated. */
	unsigned char first = ret->comm[0];
	return !((vcpu->tid | vcpu->tgid) >> 22) && !vcpu->tid == !vcpu->tgid &&
	       (!first || first >= ' ') && !ret->comm[15];
}

/* A thread is reported again when first seen in user space: only then are its mappings those of its
 * program. */
static __always_inline bool is_new_name(struct vp_identity_vcpu *vcpu, __u32 pid,
					const struct guest_current *current)
{
	__u64 numbers = (__u64)pid << 42 ^ (__u64)vcpu->tgid << 21 ^ vcpu->tid;
	__u64 text = *(const __u64 *)current->comm * 3 ^ *(const __u64 *)(current->comm + 8);
	__u64 name = (numbers ^ text ^ vcpu->in_user << 63) * 0x9e3779b97f4a7c15ULL;
	__u8 one = 1;

	if (name == vcpu->name)
		return false;
	vcpu->name = name;
	if (bpf_map_lookup_elem(&identity_names, &name))
		return false;
	bpf_map_update_elem(&identity_names, &name, &one, BPF_ANY);
	return true;
}

/*
 * The page-table root of vcpu->mm_now, from its address in the guest kernel, for processors that
 * hide it. Kernel threads have none: 0. `same_task`: the previous root is still valid if the mm is
 * the same; a mm_struct may be reused, but not for a task that has lived on.
 */
static __always_inline __u64 root_by_memory(struct vp_identity_vcpu *vcpu, bool same_task,
					    __u64 time)
{
	__u64 before = vcpu->mm, mm = vcpu->mm_now, pgd = 0;

	vcpu->mm = 0;
	if (!mm)
		return 0;
	if (!same_task || mm != before || time - vcpu->root_read >= SAME_ROOT_NS) {
		struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &vcpu->vm);
		__u64 hva = hva_in_kernel(vcpu->vm, mm + vcpu->off_pgd, sizeof(pgd));
		if (!vm || !hva || bpf_probe_read_user(&pgd, sizeof(pgd), (void *)hva))
			return 0;
		vcpu->root = gpa_in_kernel(vm, pgd);
		vcpu->root_read = time;
	}
	vcpu->mm = mm;
	return vcpu->root;
}

/*
 * Reads the current task. False: the VM's kernel is unknown, or its memory was unreadable.
 * `as_root`: page-table root, or 0 if unknown; `user`: the guest is in user space; `memo`: for
 * find_identity().
 */
static __always_inline bool read_guest_current(__u32 pid, __u32 number, __u64 as_root, bool user,
					       __u64 time, __u32 *memo, struct guest_current *ret)
{
	struct vp_identity_vcpu *vcpu = find_identity(pid, number, memo);

	ret->known = ret->is_new = false;
	ret->tid = ret->tgid = 0;
	ret->as_root = as_root;
	if (!vcpu)
		return false;
	__u64 before = vcpu->task;
	bool found = find_task(vcpu);
	bool lately = found && before == vcpu->task && time - vcpu->checked < SURELY_SAME_NS;
	bool by_memory = root_is_in_memory(vcpu);
	if (by_memory && lately && read_mm(vcpu))
		as_root = root_by_memory(vcpu, true, time);
	bool same = lately && (as_root || by_memory) && as_root == vcpu->as_root &&
		    (!user || vcpu->in_user);
	if (!same) {
		__u32 tid = vcpu->tid;
		vcpu->checked = 0;
		if (!found || !read_task(vcpu, ret)) {
			vcpu->failed++;
			return false;
		}
		if (by_memory)
			as_root =
			    root_by_memory(vcpu, before == vcpu->task && tid == vcpu->tid, time);
		vcpu->checked = time;
		vcpu->in_user = user;
		vcpu->as_root = as_root;
		ret->is_new = is_new_name(vcpu, pid, ret);
	}
	vcpu->good++;
	ret->known = true;
	ret->as_root = as_root;
	ret->task = vcpu->task;
	ret->tid = vcpu->tid;
	ret->tgid = vcpu->tgid;
	return true;
}

#endif
