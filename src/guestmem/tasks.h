/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's tasks, and which of them each of its CPUs runs. */
#ifndef VP_GUESTMEM_TASKS_H
#define VP_GUESTMEM_TASKS_H

#include "base/macros.h"
#include "base/vec.h"
#include "guestmem/kernel.h"

struct vp_guest_task {
	uint64_t address; /* of its task_struct */
	uint64_t next;    /* the same of the next process's, where this one is its group's leader */
	uint64_t mm;      /* 0: a kernel thread, or a task that is ending */
	uint64_t root;    /* physical address of its page tables; 0: none */
	uint32_t tgid, tid;
	char comm[16];
};

/* Reads a task; false if it does not look like one: a tid that cannot be, a name without end. */
bool vp_guest_task_read(const struct vp_guest_kernel *kernel, uint64_t address,
			struct vp_guest_task *ret) VP_MUST_CHECK;
/*
 * Calls `each` for every process (for its thread group's leader) until it returns false. Ends at
 * the first task that is no task or was seen before; *damaged then, if there is nothing to resume
 * with: the list was changed while it was read, or is a lie.
 */
void vp_guest_tasks_each(const struct vp_guest_kernel *kernel,
			 bool (*each)(void *context, const struct vp_guest_task *task),
			 void *context, bool *damaged);

/*
 * Whether the pack explains what is in memory: the first task is the idle one, the second is
 * process 1, and its page tables map the kernel to where it is. The error has the reason.
 */
struct vp_error *vp_guest_kernel_check(const struct vp_guest_kernel *kernel) VP_MUST_CHECK;

/* Whether user space runs on page tables of its own (KPTI), by those of process 1. */
bool vp_guest_kernel_isolates(const struct vp_guest_kernel *kernel);

/* The guest CPU of a vCPU, and the address of its pointer to the current task. */
struct vp_guest_cpu {
	uint32_t vcpu, cpu;
	uint64_t base;        /* per-CPU base */
	uint64_t current_gpa; /* physical address of the pointer; 0: not known */
};
typedef VP_VEC(struct vp_guest_cpu) vp_guest_cpus;

/*
 * All CPUs that have a vCPU, by the APIC ids that the guest noted; KVM numbers vCPUs by these.
 * *unsettled: a CPU has no valid current task at this moment; it is left out.
 */
struct vp_error *vp_guest_cpus_find(const struct vp_guest_kernel *kernel, vp_guest_cpus *cpus,
				    bool *unsettled) VP_MUST_CHECK;
/* The task that the CPU runs. */
bool vp_guest_cpu_task(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
		       struct vp_guest_task *ret) VP_MUST_CHECK;

#endif
