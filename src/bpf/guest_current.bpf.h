/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The task that a guest runs, read from the guest's memory in the context of its vCPU's thread: the
 * VMM has guest RAM mapped, so that it is ordinary user memory here. At most three small reads, and
 * none of them waits: a page that the VMM has not mapped now is a failure, and counted.
 */
#ifndef VP_BPF_GUEST_CURRENT_BPF_H
#define VP_BPF_GUEST_CURRENT_BPF_H

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "bpf/guest_current_abi.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/last_exit.bpf.h"

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

/* Where in it a vCPU is: by VMM's process << 32 | vCPU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_IDENTITY_VCPUS);
	__type(key, __u64);
	__type(value, __u32);
} identity_index SEC(".maps");

/* Threads that were named lately: VMM's process, numbers and name, hashed. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} identity_names SEC(".maps");

struct guest_current {
	__u32 tid, tgid;
	__u64 as_root; /* as the caller knows it, or by the guest's memory; 0: not known */
	__u64 task;    /* the guest's address of its task_struct */
	bool known;
	bool is_new;                               /* it was not named lately … */
	char comm[16] __attribute__((aligned(8))); /* … and this is its name */
};

/*
 * A task that was seen with the same address space so recently is the same one: a task_struct is
 * given away again only after a grace period of RCU, and exec changes the address space.
 */
enum { SURELY_SAME_NS = 4000000 };
/* Another address space at the same address needs two execs of the thread; within that time it is
 * not noticed. */
enum { SAME_ROOT_NS = 64000000 };

/* The vCPU, looked for at the index that the caller remembers first; 0: its kernel is not known. */
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

/* The physical address of what the guest's kernel has in its image or its direct map. */
static __always_inline __u64 gpa_in_kernel(const struct vp_identity_vm *vm, __u64 va)
{
	__u64 in_image = va - vm->image_va;

	return in_image < vm->image_size ? vm->image_gpa + in_image : va - vm->direct_map;
}

/*
 * Translates a guest-physical range that lies in one memory slot to the VMM's address; 0: no slot
 * has it. Inlined into the global functions that call it: one more call would exceed the stack
 * limit at VM exits of `vperf record --trace`. The verifier checks each of these functions once.
 */
static __always_inline __u64 hva_in_slots(__u32 first, __u32 count, __u64 gpa, __u32 size)
{
	/* The first slot that begins beyond it is between these. */
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

/* Where in the VMM a struct at that address of the guest's kernel is; 0: nowhere. */
__noinline __u64 hva_in_kernel(__u32 number, __u64 va, __u32 size)
{
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &number);

	if (!vm)
		return 0;
	return hva_in_slots(vm->first_slot, vm->n_slots, gpa_in_kernel(vm, va), size);
}

/* The processor keeps the address space's root to itself: Intel always, Arm with VHE until the vCPU
 * is put. */
static __always_inline bool root_is_hidden(void)
{
	return vendor == VP_VENDOR_INTEL || vendor == VP_VENDOR_ARM;
}

static __always_inline bool root_is_in_memory(const struct vp_identity_vcpu *vcpu)
{
	return root_is_hidden() && vcpu->off_mm;
}

/* A task is looked for again only when the pointer to it has changed, or it was not found. */
static __always_inline bool find_task(struct vp_identity_vcpu *vcpu)
{
	__u64 task = 0;

	if (bpf_probe_read_user(&task, sizeof(task), (void *)vcpu->current_hva))
		return false;
	if (task != vcpu->task || !vcpu->task_hva) {
		__u32 last = vcpu->off_comm > vcpu->off_ids ? vcpu->off_comm : vcpu->off_ids;
		if (root_is_in_memory(vcpu) && vcpu->off_mm + VP_NEAR_WORDS * sizeof(__u64) > last)
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

/* The task's numbers, and in vcpu->mm_now the mm where the root is by memory; that is shortly
 * before them in all kernels that were seen. */
static __always_inline bool read_numbers(struct vp_identity_vcpu *vcpu, __u64 *ids)
{
	const char *task = (const char *)vcpu->task_hva;
	__u32 distance = vcpu->off_ids - vcpu->off_mm, index = distance / sizeof(*ids);
	struct vp_last_exit *room = root_is_in_memory(vcpu) ? this_cpu_last_exit() : 0;

	barrier_var(index); /* or the compiler checks one copy of it and uses another */
	if (!room || distance % sizeof(*ids) || index >= VP_NEAR_WORDS)
		return !bpf_probe_read_user(ids, sizeof(*ids), task + vcpu->off_ids) &&
		       (!root_is_in_memory(vcpu) || read_mm(vcpu));
	if (bpf_probe_read_user(room->words, sizeof(room->words), task + vcpu->off_mm))
		return false;
	vcpu->mm_now = room->words[0];
	*ids = room->words[index];
	return true;
}

/* A task_struct is reused for another task, and exec changes a task's name. Impossible values are
 * ignored. */
static __always_inline bool read_task(struct vp_identity_vcpu *vcpu, struct guest_current *ret)
{
	__u64 ids = 0;

	if (!read_numbers(vcpu, &ids) ||
	    bpf_probe_read_user(ret->comm, sizeof(ret->comm),
				(void *)vcpu->task_hva + vcpu->off_comm))
		return false;
	vcpu->tid = (__u32)ids;
	vcpu->tgid = ids >> 32;
	/* PID_MAX_LIMIT; idle tasks alone are of process 0. A name may be empty or of any script,
	 * but it ends. */
	unsigned char first = ret->comm[0];
	return !((vcpu->tid | vcpu->tgid) >> 22) && !vcpu->tid == !vcpu->tgid &&
	       (!first || first >= ' ') && !ret->comm[15];
}

/* A thread is new once more in user space: only there are its mappings those of its program. */
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
 * The root of the current task's address space by its page tables' address in the guest's kernel,
 * for a processor that keeps its own to itself: of vcpu->mm_now. Threads of the kernel have
 * none: 0. `same_task`: the root before is still good if the mm is the same; a mm_struct is used
 * again, but not for a task that has lived on.
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
 * False: the VM's kernel is not known, or its memory was unreadable. `as_root` is the address
 * space's root, or 0 if it is not known; `user`: the guest is in user space; `memo`: of
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
