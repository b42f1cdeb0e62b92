/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's tasks, and the current task of each of its CPUs. */
#ifndef VP_GUESTMEM_TASKS_TASKS_H
#define VP_GUESTMEM_TASKS_TASKS_H

#include "base/macros.h"
#include "base/vec.h"
#include "guestmem/kernel/kernel.h"

struct vp_guest_task {
	uint64_t address; /* of its task_struct */
	uint64_t next;    /* the next process's task_struct, if this is a thread group leader */
	uint64_t mm;      /* 0: a kernel thread, or an exiting task */
	uint64_t root;    /* physical address of its page tables; 0: none */
	uint32_t tgid, tid;
	char comm[16];
};

/* Reads a task; false if it does not look like one: an impossible tid, an unterminated name. */
bool vp_guest_task_read(const struct vp_guest_kernel *kernel, uint64_t address,
			struct vp_guest_task *ret) VP_MUST_CHECK;
/*
 * Calls `each` for every process (thread group leader) until it returns false. Stops at an invalid
 * or repeated task; *damaged: it could not continue after that (the list changed while being read,
 * or is invalid).
 */
void vp_guest_tasks_each(const struct vp_guest_kernel *kernel,
			 bool (*each)(void *context, const struct vp_guest_task *task),
			 void *context, bool *damaged);

/* Checks whether the pack fits the memory: the first task is the idle task, the second is process
 * 1, and its page tables map the kernel at the expected address. The error has the reason. */
struct vp_error *vp_guest_kernel_check(const struct vp_guest_kernel *kernel) VP_MUST_CHECK;

/* Whether user space has separate page tables (KPTI), according to those of process 1. */
bool vp_guest_kernel_isolates(const struct vp_guest_kernel *kernel);

/* The guest CPU of a vCPU, and the address of the pointer to its current task. */
struct vp_guest_cpu {
	uint32_t vcpu, cpu;
	uint64_t base;        /* per-CPU base */
	uint64_t current_gpa; /* physical address of the pointer; 0: unknown */
};
typedef VP_VEC(struct vp_guest_cpu) vp_guest_cpus;

/* Finds the CPU of each vCPU from registers, or from the APIC id or MPIDR that the guest stored,
 * which identifies KVM's vCPU. *unsettled: a CPU without a valid current task at this moment was
 * left out. */
struct vp_error *vp_guest_cpus_find(const struct vp_guest_kernel *kernel, vp_guest_cpus *cpus,
				    bool *unsettled) VP_MUST_CHECK;
/* Reads the current task of the CPU. */
bool vp_guest_cpu_task(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
		       struct vp_guest_task *ret) VP_MUST_CHECK;

#endif
