/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of the scheduler's structs used by the programs, and their differences between kernels.
 * For programs with a typed task_struct argument (tp_btf): members are loaded directly. */
#ifndef VP_BPF_SCHED_COMPAT_H
#define VP_BPF_SCHED_COMPAT_H

#include "bpf/kvm_compat.bpf.h"

struct rq___vp {
	int cpu;
} CORE;

/* Without CONFIG_CFS_BANDWIDTH there is no throttle_count. */
struct cfs_rq___vp {
	int throttle_count;
	struct rq___vp *rq;
} CORE;

struct sched_entity___vp {
	struct cfs_rq___vp *cfs_rq;
} CORE;

struct task_struct___vp {
	unsigned int flags;
	int wake_cpu;
	struct sched_entity___vp se;
} CORE;

/* Kernels that throttle tasks individually, on return to user space, set a flag (7.2 does). */
struct task_struct___throttled {
	bool throttled;
} CORE;

enum { TASK_DEAD = 0x80, KERNEL_THREAD = 0x00200000 /* PF_KTHREAD */ };

static __always_inline __u32 task_state(struct task_struct *task)
{
	struct task_struct___new_state *newer = (void *)task;
	struct task_struct___old_state *older = (void *)task;

	if (bpf_core_field_exists(newer->__state))
		return newer->__state;
	return (__u32)older->state;
}

/* Whether the quota of the task's cgroup, or of one above it, is used up. */
static __always_inline bool task_is_throttled(struct task_struct *task)
{
	struct task_struct___throttled *marked = (void *)task;
	struct task_struct___vp *plain = (void *)task;

	if (bpf_core_field_exists(marked->throttled))
		return marked->throttled;
	if (!bpf_core_field_exists(struct cfs_rq___vp, throttle_count))
		return false;
	struct cfs_rq___vp *queue = plain->se.cfs_rq;
	return queue && queue->throttle_count > 0;
}

/* The pCPU of the run queue of a task that was just woken. */
static __always_inline __u32 task_cpu(struct task_struct *task)
{
	struct task_struct___vp *plain = (void *)task;

	return (__u32)plain->wake_cpu;
}

#endif
