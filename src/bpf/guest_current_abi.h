/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data about a VM for guest_current.bpf.h, from user space. */
#ifndef VP_BPF_GUEST_CURRENT_ABI_H
#define VP_BPF_GUEST_CURRENT_ABI_H

#include <linux/types.h>

#include "schema/paging.h"

/* Slots are those of all VMs together. */
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

/* A VM: how its kernel's addresses become the VMM's. */
struct vp_identity_vm {
	__u64 direct_map;
	__u64 image_va, image_size, image_gpa;
	struct vp_paging paging;
	__u64 kernel_root; /* of tables of the upper half alone; 0: a process's are of both */
	__u32 first_slot, n_slots; /* in order of their addresses */
};

/* A vCPU. The guest decides what is read here, so nothing of it is trusted beyond its slots. */
struct vp_identity_vcpu {
	__u64 key;         /* VMM's process << 32 | vCPU; 0: nobody has this index */
	__u64 current_hva; /* of the pointer to the current task of its CPU */
	__u32 vm;          /* which vp_identity_vm */
	__u32 off_ids;     /* in task_struct: tid, and the tgid right after it */
	__u32 off_comm;
	__u32 off_stack; /* 0: not known */
	__u32 off_mm; /* … and in mm_struct: where the host cannot read the address space's root */
	__u32 off_pgd;
	/* From the previous sample: */
	__u64 task, task_hva;
	__u64 mm, root;         /* where its mm_struct is, 0: not known; and its root */
	__u64 mm_now;           /* the same of the sample at hand */
	__u64 root_read;        /* when the root was, ns */
	__u64 as_root, checked; /* when all of the task was read last, ns */
	__u64 name;             /* its numbers and name, hashed */
	__u32 tid, tgid;
	__u64 in_user;      /* it was in user space */
	__u64 good, failed; /* samples that were named, and that could not be */
	__u64 nowhere;      /* times that the task was in no slot: there may be new ones */
};

#endif
