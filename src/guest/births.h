/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by births.bpf.c and births.c. */
#ifndef VP_GUEST_BIRTHS_H
#define VP_GUEST_BIRTHS_H

enum vp_birth_kind {
	VP_BIRTH_EXISTING = 1, /* seen by the task iterator */
	VP_BIRTH_FORK,         /* `pgd` is the child's */
	VP_BIRTH_EXEC,         /* `pgd` is the new one */
	VP_BIRTH_EXIT,         /* the last thread of the process */
};

struct vp_birth {
	unsigned long long time_ns; /* CLOCK_MONOTONIC */
	unsigned long long pgd;     /* virtual address of the top page table */
	unsigned int kind;
	unsigned int tgid;
	unsigned int parent; /* of a fork: tgid of the parent */
	unsigned int shared; /* of a fork: parent and child have one address space (vfork) */
	char comm[16];
};

#endif
