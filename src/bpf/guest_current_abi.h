/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data about VMs for guest_current.bpf.h, set by user space. */
#ifndef VP_BPF_GUEST_CURRENT_ABI_H
#define VP_BPF_GUEST_CURRENT_ABI_H

#include <linux/types.h>

#include "schema/paging.h"

/* Slots of all VMs together. */
enum {
	VP_IDENTITY_SLOTS = 65536,
	VP_IDENTITY_SLOT_BITS = 16,
	VP_IDENTITY_VMS = 4096,
	VP_IDENTITY_VCPUS = 16384
};

/* Guest RAM at guest physical address `gpa` is at `hva` in the VMM. */
struct vp_identity_slot {
	__u64 gpa, size, hva;
};

/* A VM: translation of its kernel's addresses. */
struct vp_identity_vm {
	__u64 direct_map;
	__u64 image_va, image_size, image_gpa;
	struct vp_paging paging;
	__u64
	    kernel_root; /* page tables of the upper half only; 0: a process's tables cover both */
	__u32 first_slot, n_slots; /* sorted by address */
	__u32 revision;            /* changes with the slots; 0: translations are not remembered */
};

/* A vCPU. The guest controls the data read through it; only addresses in its slots are accessed. */
struct vp_identity_vcpu {
	__u64 key;         /* pid of the VMM << 32 | vCPU; 0: free */
	__u64 current_hva; /* of the pointer to its CPU's current task */
	__u32 vm;          /* index of its vp_identity_vm */
	__u32 off_ids;     /* in task_struct: tid, immediately followed by tgid */
	__u32 off_comm;
	__u32 off_stack; /* 0: unknown */
	__u32 off_mm;    /* … and in mm_struct: if the host cannot read the page-table root */
	__u32 off_pgd;
	/* From the previous sample: */
	__u64 task, task_hva;
	__u64 mm, root;         /* address of the mm_struct, 0: unknown; its root */
	__u64 mm_now;           /* mm of the present sample */
	__u64 root_read;        /* time of reading `root`, ns */
	__u64 as_root, checked; /* time of reading the whole task, ns */
	__u64 name;             /* hash of its ids and name */
	__u32 tid, tgid;
	__u64 in_user;      /* in user space */
	__u64 good, failed; /* samples with and without a task */
	__u64 nowhere;      /* number of tasks outside all slots: slots may have changed */
};

#endif
