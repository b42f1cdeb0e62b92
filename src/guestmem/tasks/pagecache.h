/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a guest's files from its page cache. */
#ifndef VP_GUESTMEM_TASKS_PAGECACHE_H
#define VP_GUESTMEM_TASKS_PAGECACHE_H

#include "base/macros.h"
#include "guestmem/kernel/kernel.h"

struct vp_guest_file {
	const struct vp_guest_kernel *kernel;
	uint64_t inode; /* address */
	uint64_t pages; /* root of the tree of cached pages */
	uint64_t size;  /* bytes */
	uint64_t memmap;
};

/* Opens a file by its struct file. */
bool vp_guest_file_open(const struct vp_guest_kernel *kernel, uint64_t file,
			struct vp_guest_file *ret) VP_MUST_CHECK;
/* Opens a file by its struct inode. */
bool vp_guest_file_open_inode(const struct vp_guest_kernel *kernel, uint64_t inode,
			      struct vp_guest_file *ret) VP_MUST_CHECK;
/* Reads the file; false unless all bytes are resident. */
bool vp_guest_file_read(const struct vp_guest_file *file, uint64_t offset, void *bytes,
			size_t size) VP_MUST_CHECK;
/* Reads bytes of a file; false: they cannot be read. */
typedef bool (*vp_file_bytes)(void *context, uint64_t offset, void *bytes, size_t size);
/* Reads the build-id from a file's ELF notes. */
bool vp_file_build_id(vp_file_bytes get, void *context, struct vp_build_id *ret);
bool vp_guest_file_build_id(const struct vp_guest_file *file, struct vp_build_id *ret);
/* Substitute for a missing build-id: a hash of the size and the first page, with the ELF headers.
 * 0: that page is not resident. */
uint64_t vp_guest_file_print(const struct vp_guest_file *file);

#endif
