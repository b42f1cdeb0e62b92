/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads, creates and replaces whole files. */
#ifndef VP_BASE_FILE_H
#define VP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"

/* Appends the file's contents to `buffer`. Errors: unreadable, or more than `limit` bytes. Also
 * works on /proc, where sizes are unknown. */
struct vp_error *vp_file_read(const char *path, size_t limit,
			      struct vp_buffer *buffer) VP_MUST_CHECK;
/*
 * Opens a regular file of at most `most` bytes for reading; otherwise returns -1 and sets errno.
 * The type is checked before the open, because opening a device can have side effects. `flags`: 0,
 * or O_NOFOLLOW to refuse a symbolic link.
 */
int vp_file_open_regular(const char *path, uint64_t most, int flags) VP_MUST_CHECK;
/* Writes all `size` bytes to `fd` (short writes are continued); 0 or -errno. */
int vp_fd_write_all(int fd, const void *bytes, size_t size) VP_MUST_CHECK;
/* The same for `n` parts, with as few calls as possible; modifies `parts`. */
int vp_fd_write_parts(int fd, struct iovec *parts, int n) VP_MUST_CHECK;
/*
 * A new file that replaces `path` when it is published. Until then it has no name (O_TMPFILE), so a
 * killed program leaves nothing; on file systems without that, it has an unpredictable name, which
 * other users of the folder cannot have prepared a link for.
 */
struct vp_new_file {
	const char *path;
	char *name; /* NULL: unnamed, published, or `path` is written directly */
	int fd;
	bool is_nameless;
};

/* 0 or -errno; `path` must stay valid. */
int vp_new_file_create(struct vp_new_file *file, const char *path, unsigned mode) VP_MUST_CHECK;
/* The same for an output path given by the user: an existing device or pipe is written to, not
 * replaced. */
int vp_new_file_create_output(struct vp_new_file *file, const char *path,
			      unsigned mode) VP_MUST_CHECK;
/* Syncs the folder of `path` after a rename; failures are ignored. */
void vp_file_sync_parent(const char *path);
/* Syncs the file, then gives it its name (unless it is a device or pipe). 0 or -errno. */
int vp_new_file_publish(struct vp_new_file *file) VP_MUST_CHECK;
/* Closes the file; removes it unless it was published. */
void vp_new_file_deinit(struct vp_new_file *file);
#define VP_AUTO_NEW_FILE VP_CLEANUP(vp_new_file_deinit)

/*
 * Replaces `path` atomically (new file, sync, rename): readers see the old or the new contents,
 * also after a crash. If the disk is full, the file is overwritten in place as far as its blocks
 * suffice.
 */
struct vp_error *vp_file_publish(const char *path, const void *bytes, size_t size) VP_MUST_CHECK;
/* The same for an output path given by the user, see vp_new_file_create_output(). */
struct vp_error *vp_file_publish_output(const char *path, const void *bytes,
					size_t size) VP_MUST_CHECK;

/* Removes a file or a directory tree; failures are ignored. */
void vp_file_remove_all(const char *path);

#endif
