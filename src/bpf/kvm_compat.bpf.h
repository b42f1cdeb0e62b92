/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences of KVM between kernels: CO-RE flavours (`___name`) of the few struct members that are
 * needed, and one function per fact. Presence is checked in the running kernel's BTF, never by its
 * version. Members not listed here are not used.
 *
 * The vCPU of a thread is found by its preempt notifiers: KVM registers one (embedded in struct
 * kvm_vcpu) while the thread is inside KVM_RUN, so neither kvm_entry nor kvm_exit has to be traced.
 */
#ifndef VP_BPF_KVM_COMPAT_H
#define VP_BPF_KVM_COMPAT_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "bpf/vmcb_memo.h"

#include "schema/records.h"

#define CORE __attribute__((preserve_access_index))

struct hlist_node {
	struct hlist_node *next;
} CORE;

struct hlist_head {
	struct hlist_node *first;
} CORE;

struct preempt_notifier {
	struct hlist_node link;
} CORE;

struct mm_struct;

struct task_struct {
	int pid;
	int tgid;
	char comm[16];
	struct hlist_head preempt_notifiers;
} CORE;

/* v5.14, 2f064a59a11f "sched: Change task_struct::state" renamed `state`. */
struct task_struct___old_state {
	volatile long state;
} CORE;
struct task_struct___new_state {
	unsigned int __state;
} CORE;

/* Replaces a per-CPU pointer of 5.10 in later kernels (6.1, 7.2): handling_intr_from_guest. */
struct kvm_vcpu_arch {
	unsigned long regs[17];
	__u32 regs_avail;
	unsigned long cr3;
	__u64 efer;
	unsigned char handling_intr_from_guest;
} CORE;

struct kvm_vcpu {
	struct preempt_notifier preempt_notifier;
	int vcpu_id;
	unsigned int halt_poll_ns;
	struct kvm_vcpu_arch arch;
} CORE;

/* 7.2 has RIP as a member of its own instead of the last of `regs`. */
struct kvm_vcpu_arch___own_rip {
	unsigned long rip;
	unsigned long regs_avail[1];
} CORE;

struct kvm_vcpu___own_rip {
	struct kvm_vcpu_arch___own_rip arch;
} CORE;

/*
 * AMD SVM. The VMCB is in memory: exit reason, CR3 and CPL are valid after every exit. Its layout
 * is the processor's (AMD64 Architecture Programmer's Manual, volume 2, appendix B), not the
 * kernel's, whose names change (7.2 has no nested_ctl).
 */
enum vmcb_offset {
	VMCB_EXIT_CODE = 0x70,
	VMCB_EXIT_INFO_1 = 0x78,
	VMCB_EXIT_INFO_2 = 0x80,
	VMCB_NESTED_CTL = 0x90,       /* bit 0: nested paging */
	VMCB_SAVE_GS = 0x400 + 0x58,  /* base */
	VMCB_SAVE_IDT = 0x400 + 0x88, /* base */
	VMCB_SAVE_TR = 0x400 + 0x98,  /* base */
	VMCB_SAVE_CPL = 0x400 + 0xcb,
	VMCB_SAVE_CR4 = 0x400 + 0x148,
	VMCB_SAVE_CR3 = 0x400 + 0x150,
	VMCB_SAVE_RIP = 0x400 + 0x178,
	VMCB_SAVE_RSP = 0x400 + 0x1d8,
	/* Written by VMSAVE, which KVM executes after every exit. */
	VMCB_SAVE_LSTAR = 0x400 + 0x208,
	VMCB_SAVE_KERNEL_GS = 0x400 + 0x220,
};

/* Adjacent in the VMCB: reading all costs little more than reading the first. */
struct vmcb_regs {
	__u64 cr3;
	__u64 between[(VMCB_SAVE_RIP - VMCB_SAVE_CR3) / 8 - 1];
	__u64 rip;
};

struct vmcb_info {
	__u64 first, second;
};

/*
 * For plain loads checked by the verifier, which cost a tenth of bpf_probe_read_kernel(). Before
 * v6.1 (73412dfeea72 "KVM: SVM: do not allocate struct svm_cpu_data dynamically") svm_data was a
 * pointer; then, and if svm_data is not in the kernel's BTF (7.2), has_svm_data is 0.
 */
struct vmcb;

struct svm_cpu_data {
	struct vmcb *current_vmcb;
} CORE;

struct kvm_vmcb_info {
	void *ptr;
} CORE;

/* `vmcb` is vmcb01, or another one while a nested guest runs. */
struct vcpu_svm {
	struct kvm_vcpu vcpu;
	void *vmcb;
	struct kvm_vmcb_info vmcb01;
} CORE;

/* Exit code of vmcb01 while a nested guest runs. */
enum { VMEXIT_VMRUN = 0x80 };

/* Exit codes of interrupts. */
enum { AMD_INTR = 0x60, AMD_NMI = 0x61, AMD_SMI = 0x62 };

/* Intel VMX. */
union vmx_exit_reason {
	__u32 full;
} CORE;

struct vcpu_vmx {
	struct kvm_vcpu vcpu;
	union vmx_exit_reason exit_reason;
} CORE;

/* Newer kernels have the members shared by VMX and TDX in struct vcpu_vt. */
struct vcpu_vt___split {
	union vmx_exit_reason exit_reason;
} CORE;
struct vcpu_vmx___split {
	struct vcpu_vt___split vt;
} CORE;

/* Set by the loader: enum vp_vendor, and whether all guests have nested paging (KVM's
 * parameters). */
const volatile __u32 vendor = 0;
const volatile __u32 nested_paging = 0;
/* collect/programs/svm_data.c has replaced VP_SVM_DATA by the per-CPU variable svm_data. */
const volatile __u32 has_svm_data = 0;

/* The task's preempt notifier, or 0: only threads inside KVM_RUN have one. */
static __always_inline void *kvm_notifier_of_task(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->preempt_notifiers))
		return 0;
	return BPF_CORE_READ(task, preempt_notifiers.first);
}

/* The same for a task whose type the verifier knows: a load instead of a call. */
static __always_inline void *kvm_notifier_of_known_task(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->preempt_notifiers))
		return 0;
	return task->preempt_notifiers.first;
}

/* The vCPU of a notifier, or 0 if the kernel's BTF lacks KVM's structs (5.10). */
static __always_inline struct kvm_vcpu *vcpu_of_notifier(void *notifier)
{
	if (!bpf_core_type_exists(struct kvm_vcpu))
		return 0;
	return notifier - bpf_core_field_offset(struct kvm_vcpu, preempt_notifier) -
	       bpf_core_field_offset(struct preempt_notifier, link);
}

/* Whether KVM will not poll in the vCPU's next halt. */
static __always_inline bool polls_not(struct kvm_vcpu *vcpu)
{
	unsigned int ns;

	return bpf_core_type_exists(struct kvm_vcpu) && bpf_core_field_exists(vcpu->halt_poll_ns) &&
	       !bpf_core_read(&ns, sizeof(ns), &vcpu->halt_poll_ns) && !ns;
}

/*
 * The VMCB. If the kernel has no BTF of modules (before 5.11), struct vcpu_svm is assumed to start
 * with struct kvm_vcpu and then the pointer, as in all versions; an address outside kernel pages is
 * rejected.
 */
static __always_inline void *vmcb_of(struct kvm_vcpu *vcpu)
{
	void *svm = vcpu, *vmcb = 0;

	if (bpf_core_type_exists(struct vcpu_svm))
		svm += bpf_core_field_offset(struct vcpu_svm, vmcb) -
		       bpf_core_field_offset(struct vcpu_svm, vcpu);
	else
		svm += bpf_core_type_size(struct kvm_vcpu);
	if (bpf_probe_read_kernel(&vmcb, sizeof(vmcb), svm) || (__s64)vmcb >= 0 ||
	    ((__u64)vmcb & 0xfff))
		return 0;
	return vmcb;
}

/* Whether the VMCB is the guest's own, not a nested guest's; false: the kernel does not show it. */
static __always_inline bool vmcb_is_own(struct kvm_vcpu *vcpu, void *vmcb)
{
	struct vcpu_svm *svm = (void *)vcpu;

	if (!bpf_core_type_exists(struct vcpu_svm) || !bpf_core_field_exists(svm->vmcb01))
		return false;
	svm = (void *)vcpu - bpf_core_field_offset(struct vcpu_svm, vcpu);
	return BPF_CORE_READ(svm, vmcb01.ptr) == vmcb;
}

static __always_inline bool read_vmcb_reason(const void *vmcb, __u64 *ret)
{
	return vmcb && !bpf_probe_read_kernel(ret, sizeof(*ret), vmcb + VMCB_EXIT_CODE);
}

/* The VMCB that KVM has loaded on this pCPU, if it is at that address. */
static __always_inline struct vmcb *loaded_vmcb(__u64 address)
{
	struct svm_cpu_data *data;

	if (!has_svm_data)
		return 0;
	asm volatile("%0 = " VP_SVM_DATA_TEXT " ll" : "=r"(data));
	data = bpf_this_cpu_ptr(data);
	struct vmcb *loaded = data->current_vmcb;
	__u64 its_address = (__u64)loaded;
	/* otherwise the compiler reads at `address`, which the verifier does not know */
	barrier_var(its_address);
	return its_address == address ? loaded : 0;
}

/* A member of a VMCB with a type known to the verifier. */
#define LOAD_VMCB(vmcb, type, offset) (*(const volatile type *)((const char *)(vmcb) + (offset)))

/* Maximum number of uses of a cached VMCB pointer. */
enum { VMCB_USES = 16 };

/* A VMCB; `loaded`: the same if plain loads are possible, otherwise 0. */
struct vmcb_view {
	void *at;
	struct vmcb *loaded;
};

/* Reads the cached VMCB, if its guest has no nested guest. */
static __always_inline bool read_known_vmcb(struct vp_vmcb_memo *memo, __u64 *reason,
					    struct vmcb_view *ret)
{
	ret->at = (void *)memo->vmcb;
	ret->loaded = loaded_vmcb(memo->vmcb);
	if (ret->loaded)
		*reason = LOAD_VMCB(ret->loaded, __u32, VMCB_EXIT_CODE);
	else if (!(++memo->uses % VMCB_USES) || !read_vmcb_reason(ret->at, reason))
		return false;
	return *reason != VMEXIT_VMRUN;
}

/*
 * Reads the last exit reason of the vCPU, and its VMCB; false: unknown. Finding a VMCB costs as
 * much as reading it, so the guest's own is cached: it is valid unless the last exit was from a
 * nested guest. The address of a vCPU may be reused by one with another VMCB: the one loaded on
 * this pCPU certainly belongs to the running vCPU, and others are looked up again from time to
 * time.
 */
static __always_inline bool read_exit_reason(struct kvm_vcpu *vcpu, struct vp_vmcb_memo *memo,
					     __u64 *reason, struct vmcb_view *ret)
{
	if (memo->vmcb && read_known_vmcb(memo, reason, ret))
		return true;
	ret->at = vmcb_of(vcpu);
	ret->loaded = 0;
	memo->vmcb = vmcb_is_own(vcpu, ret->at) ? (__u64)ret->at : 0;
	return read_vmcb_reason(ret->at, reason);
}

static __always_inline bool read_vmcb_regs(const struct vmcb_view *vmcb, struct vmcb_regs *ret)
{
	if (!vmcb->loaded)
		return !bpf_probe_read_kernel(ret, sizeof(*ret), vmcb->at + VMCB_SAVE_CR3);
	ret->cr3 = LOAD_VMCB(vmcb->loaded, __u64, VMCB_SAVE_CR3);
	ret->rip = LOAD_VMCB(vmcb->loaded, __u64, VMCB_SAVE_RIP);
	return true;
}

static __always_inline bool read_vmcb_info(const struct vmcb_view *vmcb, struct vmcb_info *ret)
{
	if (!vmcb->loaded)
		return !bpf_probe_read_kernel(ret, sizeof(*ret), vmcb->at + VMCB_EXIT_INFO_1);
	ret->first = LOAD_VMCB(vmcb->loaded, __u64, VMCB_EXIT_INFO_1);
	ret->second = LOAD_VMCB(vmcb->loaded, __u64, VMCB_EXIT_INFO_2);
	return true;
}

static __always_inline bool read_vmcb_cpl(const struct vmcb_view *vmcb, __u8 *ret)
{
	if (!vmcb->loaded)
		return !bpf_probe_read_kernel(ret, sizeof(*ret), vmcb->at + VMCB_SAVE_CPL);
	*ret = LOAD_VMCB(vmcb->loaded, __u8, VMCB_SAVE_CPL);
	return true;
}

/* The exit reason outside the VMCB: Intel's. */
static __always_inline bool read_vmx_exit_reason(struct kvm_vcpu *vcpu, __u32 *ret)
{
	if (vendor != 1)
		return false;
	if (bpf_core_field_exists(struct vcpu_vmx, exit_reason)) {
		struct vcpu_vmx *vmx = (void *)vcpu - bpf_core_field_offset(struct vcpu_vmx, vcpu);
		return !bpf_core_read(ret, sizeof(*ret), &vmx->exit_reason);
	}
	if (bpf_core_field_exists(struct vcpu_vmx___split, vt)) {
		struct vcpu_vmx___split *vmx = (void *)vcpu;
		return !bpf_core_read(ret, sizeof(*ret), &vmx->vt.exit_reason);
	}
	return false;
}

/* KVM's register number of RIP, also its bit in regs_avail. */
enum { KVM_RIP = 16 };

/* RIP, immediately followed by regs_avail. */
struct rip_in_kvm {
	__u64 rip, available;
};

static __always_inline bool read_rip_in_kvm(struct kvm_vcpu *vcpu, struct rip_in_kvm *ret)
{
	struct kvm_vcpu___own_rip *newer = (void *)vcpu;

	if (bpf_core_field_exists(newer->arch.rip)) {
		barrier(); /* otherwise both layouts are compiled in, one of which is another
			      kernel's */
		return bpf_core_field_offset(newer->arch.regs_avail) ==
			   bpf_core_field_offset(newer->arch.rip) + sizeof(ret->rip) &&
		       !bpf_core_read(ret, sizeof(*ret), &newer->arch.rip);
	}
	if (bpf_core_field_exists(vcpu->arch.regs_avail)) {
		barrier();
		__u32 rip = bpf_core_field_offset(vcpu->arch.regs) + KVM_RIP * sizeof(ret->rip);
		return bpf_core_field_offset(vcpu->arch.regs_avail) == rip + sizeof(ret->rip) &&
		       !bpf_probe_read_kernel(ret, sizeof(*ret), (void *)vcpu + rip);
	}
	return false;
}

/* Intel: the guest RIP, if KVM has read it from the VMCS since the exit (regs_avail). The event at
 * the tracepoint kvm_exit makes it do so at every exit, if requested: see exit_event.bpf.c. */
static __always_inline bool read_vmx_rip(struct kvm_vcpu *vcpu, __u64 *ret)
{
	struct rip_in_kvm in_kvm;

	if (!read_rip_in_kvm(vcpu, &in_kvm) || !(in_kvm.available & 1U << KVM_RIP))
		return false;
	*ret = in_kvm.rip;
	return true;
}

/* Intel: the privilege level of code at `ip`. The exact value is in the VMCS, but in long mode
 * Linux runs the lower half of the addresses only at level 3, and the upper half never. */
static __always_inline __u32 vmx_cpl(struct kvm_vcpu *vcpu, __u64 ip)
{
	enum { LONG_MODE = 1 << 10 };
	__u64 efer = 0;

	if ((__s64)ip < 0)
		return 0;
	/* Outside of long mode, addresses are below 4 GiB. */
	if (ip >> 32 || !bpf_core_field_exists(vcpu->arch.efer) ||
	    bpf_core_read(&efer, sizeof(efer), &vcpu->arch.efer))
		return 3;
	return efer & LONG_MODE ? 3 : 0;
}

/* Whether CR3 in the VMCB is the guest's; with shadow paging it is that of the shadow page
 * tables. */
static __always_inline bool has_nested_paging(void *vmcb)
{
	__u64 control = 0;

	return nested_paging ||
	       (!bpf_probe_read_kernel(&control, sizeof(control), vmcb + VMCB_NESTED_CTL) &&
		control & 1);
}

/* Reads the guest's registers. With nested paging, CR3 is in the VMCB, otherwise in arch.cr3. Intel
 * with EPT keeps it in the VMCS, which only the CPU reads. */
static __always_inline bool read_guest_regs(struct kvm_vcpu *vcpu, const struct vmcb_view *vmcb,
					    struct vmcb_regs *ret, __u32 *cpl)
{
	__u8 level = 0;

	if (!read_vmcb_cpl(vmcb, &level) || !read_vmcb_regs(vmcb, ret))
		return false;
	*cpl = level;
	if (!has_nested_paging(vmcb->at))
		ret->cr3 = BPF_CORE_READ(vcpu, arch.cr3);
	return true;
}

/* The guest's RBP: register number 5 in KVM (__VCPU_REGS_RBP). */
static __always_inline bool read_frame_pointer(struct kvm_vcpu *vcpu, __u64 *bp)
{
	return bpf_core_field_exists(vcpu->arch.regs) &&
	       !bpf_core_read(bp, sizeof(*bp), &vcpu->arch.regs[5]);
}

/* RSP and RBP. Intel's RSP is in the VMCS; KVM reads it only on demand. */
static __always_inline bool read_stack_registers(struct kvm_vcpu *vcpu, __u64 *sp, __u64 *bp)
{
	void *vmcb = vendor == VP_VENDOR_AMD ? vmcb_of(vcpu) : 0;

	return vmcb && !bpf_probe_read_kernel(sp, sizeof(*sp), vmcb + VMCB_SAVE_RSP) &&
	       read_frame_pointer(vcpu, bp);
}

/* The guest's address of its task state segment (AMD). */
static __always_inline bool read_task_segment(struct kvm_vcpu *vcpu, __u64 *base)
{
	void *vmcb = vendor == VP_VENDOR_AMD ? vmcb_of(vcpu) : 0;

	return vmcb && !bpf_probe_read_kernel(base, sizeof(*base), vmcb + VMCB_SAVE_TR);
}

/* KVM's registers in memory, RAX to R15. */
enum { VP_KVM_REGISTERS = 16 };

/* All of them, in DWARF's order. RBP and RSP are undefined. */
static __always_inline bool read_general_registers(struct kvm_vcpu *vcpu, __u64 *ret)
{
	if (!bpf_core_field_exists(vcpu->arch.regs) ||
	    bpf_probe_read_kernel(ret, VP_KVM_REGISTERS * sizeof(*ret),
				  (const char *)vcpu + bpf_core_field_offset(vcpu->arch.regs)))
		return false;
	__u64 rcx = ret[1];
	ret[1] = ret[2]; /* KVM's order: RCX before RDX, then RBX, RSP, RBP, RSI, RDI */
	ret[2] = rcx;
	ret[4] = ret[6];
	ret[5] = ret[7];
	return true;
}

/* Values of KVM's marker for interrupts from guests (enum kvm_intr_type). */
enum kvm_mark { KVM_MARK_IRQ = 1, KVM_MARK_NMI = 2 };

/* Whether the present interrupt or NMI hit the guest. */
static __always_inline bool interrupt_hit_guest(struct kvm_vcpu *vcpu, enum kvm_mark mark)
{
	unsigned char handling = 0;

	if (!bpf_core_field_exists(vcpu->arch.handling_intr_from_guest))
		return false;
	return !bpf_core_read(&handling, sizeof(handling), &vcpu->arch.handling_intr_from_guest) &&
	       handling == mark;
}

static __always_inline bool task_is_blocked(struct task_struct *task)
{
	struct task_struct___new_state *newer = (void *)task;
	struct task_struct___old_state *older = (void *)task;

	if (bpf_core_field_exists(newer->__state))
		return BPF_CORE_READ(newer, __state) != 0;
	return BPF_CORE_READ(older, state) != 0;
}

#endif
