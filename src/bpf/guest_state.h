/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program that lists VMs' memory and registers hands to user space. */
#ifndef VP_BPF_GUEST_STATE_H
#define VP_BPF_GUEST_STATE_H

#include <linux/types.h>

enum vp_guest_item_kind { VP_ITEM_SLOT = 1, VP_ITEM_VCPU = 2 };

struct vp_guest_item {
	__u32 kind;
	__u32 pid; /* of the VMM */
	union {
		struct {
			__u64 gpa, size, hva;
			__u32 flags;
			__u32 reserved;
		} slot;
		/* 0: not known */
		struct {
			__u32 vcpu, has_counter; /* the next one is known */
			__u64 counter_offset;    /* Arm: the host's counter less the guest's */
			__u64 cr3, cr4, lstar, idt, gs_base, kernel_gs_base;
		} cpu;
	};
};

#endif
