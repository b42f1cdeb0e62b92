/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of the program that lists VMs' memory and registers. */
#ifndef VP_BPF_GUEST_STATE_ABI_H
#define VP_BPF_GUEST_STATE_ABI_H

#include <linux/types.h>

/* How a VM's memory is kept from the host; the last one if that is all that is known. */
enum vp_guest_protection {
	VP_NOT_PROTECTED,
	VP_PROTECTED_SEV,
	VP_PROTECTED_SEV_ES,
	VP_PROTECTED_SNP,
	VP_PROTECTED_TDX,
	VP_PROTECTED_PKVM,
	VP_PROTECTED_BY_KVM, /* memory that only the guest has (KVM_X86_SW_PROTECTED_VM) */
	VP_PROTECTED_REGISTERS,
	VP_GUEST_PROTECTIONS
};

/* KVM allows 32,764 (KVM_USER_MEM_SLOTS), and needs three itself. */
enum { VP_LISTED_SLOTS = 32768 };

/* In the program's own memory, since what it writes for one file is limited to 32 KiB. */
struct vp_guest_listed_slot {
	__u64 gpa, size, hva;
	__u32 flags;
	__u32 pid; /* of the VMM */
};

/* A vCPU; 0: not known. */
struct vp_guest_item {
	__u32 pid;               /* of the VMM */
	__u32 vcpu, has_counter; /* the next one is known */
	__u32 reserved;
	__u64 counter_offset; /* Arm: the host's counter less the guest's */
	__u64 cr3, cr4, lstar, idt, gs_base, kernel_gs_base;
	__u64 ttbr1, tcr, vbar, tpidr1; /* Arm: as of when the vCPU was last put, with VHE */
};

#endif
