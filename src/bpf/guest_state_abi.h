/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of the program that lists VMs' memory and registers. */
#ifndef VP_BPF_GUEST_STATE_ABI_H
#define VP_BPF_GUEST_STATE_ABI_H

#include <linux/types.h>

/* How a VM's memory is protected from the host; the last value if the kind is unknown. */
enum vp_guest_protection {
	VP_NOT_PROTECTED,
	VP_PROTECTED_SEV,
	VP_PROTECTED_SEV_ES,
	VP_PROTECTED_SNP,
	VP_PROTECTED_TDX,
	VP_PROTECTED_PKVM,
	VP_PROTECTED_BY_KVM, /* private guest memory (KVM_X86_SW_PROTECTED_VM) */
	VP_PROTECTED_REGISTERS,
	VP_GUEST_PROTECTIONS
};

/* KVM's limit is 32,764 (KVM_USER_MEM_SLOTS), plus three of its own. */
enum { VP_LISTED_SLOTS = 32768 };

/* Stored in the program's own memory: an iterator's output for a file is limited to 32 KiB. */
struct vp_guest_listed_slot {
	__u64 gpa, size, hva;
	__u32 flags;
	__u32 pid; /* pid of the VMM */
};

/* A vCPU; 0: unknown. */
struct vp_guest_item {
	__u32 pid;               /* pid of the VMM */
	__u32 vcpu, has_counter; /* has_counter: the next field is valid */
	__u32 reserved;
	__u64 counter_offset; /* Arm: the host's counter minus the guest's */
	__u64 cr3, cr4, lstar, idt, gs_base, kernel_gs_base;
	__u64 ttbr1, tcr, vbar,
	    tpidr1; /* Arm: with VHE, from the time when the vCPU was last put */
};

#endif
