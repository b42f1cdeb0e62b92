/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the task of a guest sample in guest memory, as bpf/guest_current.bpf.h does on KVM. The
 * guest controls the data, so only words at places that it has are read. */
#ifndef VP_XEN_XEN_GUEST_CURRENT_H
#define VP_XEN_XEN_GUEST_CURRENT_H

#include "base/macros.h"
#include "collect/guests/guest_answer.h"
#include "schema/records.h"

/* How a kernel's addresses become guest physical ones, and what is where. */
struct vp_xen_kernel {
	uint64_t direct_map, image_va, image_size, image_gpa;
	uint32_t off_tid, off_comm, off_mm, off_pgd;
};

struct vp_xen_task {
	uint64_t address;
	uint32_t tid, pid;
	char comm[VP_COMM_SIZE];
};

/* Reads guest physical memory. */
struct vp_xen_memory {
	bool (*read)(void *context, uint64_t address, void *bytes, size_t size);
	void *context;
};

/* Errors: a layout that is not believed. */
struct vp_error *vp_xen_kernel_init(const struct vp_guest_finding *finding,
				    struct vp_xen_kernel *ret) VP_MUST_CHECK;
/*
 * The task that the word at `current` points to, if it has the address space of which the vCPU had
 * the `root`: the vCPU runs on, and another task may be there by now. A kernel thread has none of
 * its own, and is never in user space.
 */
bool vp_xen_task_read(const struct vp_xen_kernel *kernel, const struct vp_xen_memory *memory,
		      uint64_t current, uint64_t root, bool user,
		      struct vp_xen_task *ret) VP_MUST_CHECK;

#endif
