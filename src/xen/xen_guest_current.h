/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the task of a guest sample in guest memory, like bpf/guest_current.bpf.h on KVM. The guest
 * controls the data, so only addresses in guest RAM are read. */
#ifndef VP_XEN_XEN_GUEST_CURRENT_H
#define VP_XEN_XEN_GUEST_CURRENT_H

#include "base/macros.h"
#include "collect/guests/guest_answer.h"
#include "schema/records.h"

/* Address translation of a kernel, and offsets in its structs. */
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

/* Errors: an implausible layout. */
struct vp_error *vp_xen_kernel_init(const struct vp_guest_finding *finding,
				    struct vp_xen_kernel *ret) VP_MUST_CHECK;
/*
 * Reads the task that the word at `current` points to, if its address space has the vCPU's CR3
 * `root`: the vCPU keeps running, and another task may be current by now. A kernel thread has no
 * address space, and is never in user space.
 */
bool vp_xen_task_read(const struct vp_xen_kernel *kernel, const struct vp_xen_memory *memory,
		      uint64_t current, uint64_t root, bool user,
		      struct vp_xen_task *ret) VP_MUST_CHECK;

#endif
