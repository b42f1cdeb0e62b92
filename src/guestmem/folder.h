/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folders of a guest, by the directory entries that its kernel keeps in memory. */
#ifndef VP_GUESTMEM_FOLDER_H
#define VP_GUESTMEM_FOLDER_H

#include "base/macros.h"
#include "guestmem/tasks.h"

/* A folder in a mount: a struct dentry and a struct vfsmount. */
struct vp_guest_folder {
	uint64_t dentry, mnt;
};

/* The task's root directory; false if it has none (any more). */
bool vp_guest_folder_root(const struct vp_guest_kernel *kernel, const struct vp_guest_task *task,
			  struct vp_guest_folder *ret) VP_MUST_CHECK;
/* The folder `name` in it, and over whatever is mounted there. */
bool vp_guest_folder_enter(const struct vp_guest_kernel *kernel,
			   const struct vp_guest_folder *folder, const char *name,
			   struct vp_guest_folder *ret) VP_MUST_CHECK;
/*
 * Calls `each` for the entries that the kernel has in memory until it returns false; names that are
 * longer than any file's are left out. False if they could not be read to their end: they were
 * changed meanwhile, are a lie, or too many.
 */
bool vp_guest_folder_each(const struct vp_guest_kernel *kernel,
			  const struct vp_guest_folder *folder,
			  bool (*each)(void *context, const char *name, uint64_t dentry),
			  void *context);
/* The inode of a directory entry, or 0: no such file. */
uint64_t vp_guest_folder_inode(const struct vp_guest_kernel *kernel, uint64_t dentry);

#endif
