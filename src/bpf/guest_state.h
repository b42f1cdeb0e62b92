/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program that lists VMs' memory and registers hands to user space. */
#ifndef VP_BPF_GUEST_STATE_H
#define VP_BPF_GUEST_STATE_H

#include <linux/types.h>

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
};

#endif
