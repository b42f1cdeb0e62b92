/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists folders of a guest from the kernel's dentry cache. */
#ifndef VP_GUESTMEM_TASKS_FOLDER_H
#define VP_GUESTMEM_TASKS_FOLDER_H

#include "base/macros.h"
#include "guestmem/tasks/tasks.h"

/* A folder in a mount: a struct dentry and a struct vfsmount. */
struct vp_guest_folder {
	uint64_t dentry, mnt;
};

/* Finds the task's root directory; false: none, or no longer. */
bool vp_guest_folder_root(const struct vp_guest_kernel *kernel, const struct vp_guest_task *task,
			  struct vp_guest_folder *ret) VP_MUST_CHECK;
/* Finds the folder `name` in `folder`, and follows mounts. */
bool vp_guest_folder_enter(const struct vp_guest_kernel *kernel,
			   const struct vp_guest_folder *folder, const char *name,
			   struct vp_guest_folder *ret) VP_MUST_CHECK;
/*
 * Calls `each` for the cached entries until it returns false; names longer than any file name are
 * skipped. False: the list could not be read completely: changed meanwhile, invalid, or too long.
 */
bool vp_guest_folder_each(const struct vp_guest_kernel *kernel,
			  const struct vp_guest_folder *folder,
			  bool (*each)(void *context, const char *name, uint64_t dentry),
			  void *context);
/* The inode of a directory entry; 0: no such file. */
uint64_t vp_guest_folder_inode(const struct vp_guest_kernel *kernel, uint64_t dentry);

#endif
