/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole files in and out. */
#ifndef VP_BASE_FILE_H
#define VP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"

/* Appends the file's bytes to `buffer`; more than `limit` bytes is an error. Works on /proc too. */
struct vp_error *vp_file_read(const char *path, size_t limit,
			      struct vp_buffer *buffer) VP_MUST_CHECK;
/* Opens a regular file of at most `most` bytes for reading; otherwise -1 and errno. The file's type
 * is checked before the open, because opening a device can have side effects. `flags`: 0, or
 * O_NOFOLLOW to refuse a link. */
int vp_file_open_regular(const char *path, uint64_t most, int flags) VP_MUST_CHECK;
/* Writes all of `size` bytes to `fd`, however many calls it takes; 0 or -errno. */
int vp_fd_write_all(int fd, const void *bytes, size_t size) VP_MUST_CHECK;
/* The same of `n` parts by as few calls as possible; `parts` is used up. */
int vp_fd_write_parts(int fd, struct iovec *parts, int n) VP_MUST_CHECK;
/* A new file in the folder of `path` that later replaces it. It has no name until then, so that
 * nothing of it is left if the program is killed; on file systems that cannot do this, it has an
 * unpredictable one, so that other users of the folder cannot have put a link there. */
struct vp_new_file {
	const char *path;
	char *name; /* NULL: it has none, became `path`, or is written to it */
	int fd;
	bool is_nameless;
};

/* 0 or -errno; `path` is not copied. */
int vp_new_file_create(struct vp_new_file *file, const char *path, unsigned mode) VP_MUST_CHECK;
/* The same of an output that a user named: a device or a pipe that is there is written to instead
 * of being replaced. */
int vp_new_file_create_output(struct vp_new_file *file, const char *path,
			      unsigned mode) VP_MUST_CHECK;
/* Writes what was renamed in the folder of `path` through to the disk, as far as that can be done.
 */
void vp_file_sync_parent(const char *path);
/* The file is on disk before it has its name, unless it is a device or pipe. 0 or -errno. */
int vp_new_file_publish(struct vp_new_file *file) VP_MUST_CHECK;
/* Closes it, and removes it if it was not published. */
void vp_new_file_deinit(struct vp_new_file *file);
#define VP_AUTO_NEW_FILE VP_CLEANUP(vp_new_file_deinit)

/* Replaces `path` atomically: writes a new file, syncs and renames it, so that readers see all or
 * nothing, after a crash, too. If the disk is full, the file is overwritten in place, as far as its
 * own blocks go. */
struct vp_error *vp_file_publish(const char *path, const void *bytes, size_t size) VP_MUST_CHECK;
/* The same of an output that a user named, see vp_new_file_create_output(). */
struct vp_error *vp_file_publish_output(const char *path, const void *bytes,
					size_t size) VP_MUST_CHECK;

/* Removes a file, or a directory with all that is in it, as far as that can be done. */
void vp_file_remove_all(const char *path);

#endif
