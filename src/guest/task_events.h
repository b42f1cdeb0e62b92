/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Task events, shared by task_events.bpf.c and task_events.c. */
#ifndef VP_GUEST_TASK_EVENTS_H
#define VP_GUEST_TASK_EVENTS_H

enum vp_task_event_kind {
	VP_TASK_EXISTING = 1, /* found by the task iterator */
	VP_TASK_FORK,         /* `pgd` is the child's */
	VP_TASK_EXEC,         /* `pgd` is the new one */
	VP_TASK_EXIT,         /* the last thread of the process */
};

struct vp_task_event {
	unsigned long long time_ns; /* CLOCK_MONOTONIC */
	unsigned long long pgd;     /* virtual address of the top-level page table */
	unsigned int kind;
	unsigned int tgid;
	unsigned int parent; /* with VP_TASK_FORK: tgid of the parent */
	unsigned int
	    shared; /* with VP_TASK_FORK: parent and child share an address space (vfork) */
	char comm[16];
};

#endif
