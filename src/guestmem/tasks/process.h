/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings of a guest process. */
#ifndef VP_GUESTMEM_TASKS_PROCESS_H
#define VP_GUESTMEM_TASKS_PROCESS_H

#include "base/macros.h"
#include "guestmem/tasks/tasks.h"

struct vp_guest_mapping {
	uint64_t start, end;
	uint64_t pgoff; /* file offset of `start`, bytes */
	uint64_t file;  /* a struct file; 0: none */
};

/* Calls `each` for the executable mappings of address space `mm`. False: they cannot be read
 * completely, because they changed meanwhile or are invalid. */
bool vp_guest_mappings_each(const struct vp_guest_kernel *kernel, uint64_t mm,
			    void (*each)(void *context, const struct vp_guest_mapping *mapping),
			    void *context);

enum { VP_GUEST_PATH_MAX = 4096 };

/* Appends the file's path as seen by the task, from its root directory, across mounts. */
bool vp_guest_path(const struct vp_guest_kernel *kernel, const struct vp_guest_task *task,
		   uint64_t file, struct vp_buffer *path) VP_MUST_CHECK;

#endif
