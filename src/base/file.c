/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/seed.h"

struct vp_error *vp_file_read(const char *path, size_t limit, struct vp_buffer *buffer)
{
	enum { CHUNK = 64 * 1024 };
	size_t before = buffer->size;
	/* O_NONBLOCK: does not wait for a writer of a pipe; a pipe with a writer is read normally
	 * afterwards. */
	VP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fcntl(fd, F_SETFL, 0))
		return vp_error_errno(errno, "cannot open '%s'", path);
	for (;;) {
		char *start = vp_buffer_try_extend(buffer, CHUNK);
		if (!start)
			return vp_error_new("'%s' does not fit into memory: read %zu bytes", path,
					    buffer->size - before);
		ssize_t got = vp_read(fd, start, CHUNK);
		int errnum = errno;
		buffer->size -= CHUNK - (got > 0 ? (size_t)got : 0);
		if (got < 0 && errnum == EINTR)
			continue;
		if (got < 0)
			return vp_error_errno(errnum, "cannot read '%s'", path);
		if (got == 0)
			return NULL;
		if (buffer->size - before > limit)
			return vp_error_new("'%s' is larger than the maximum of %zu bytes", path,
					    limit);
	}
}

static char *file_by_descriptor(int fd)
{
	return vp_format("/proc/self/fd/%d", fd);
}

int vp_file_open_regular(const char *path, uint64_t most, int flags)
{
	VP_AUTO_CLOSE int start = open(path, O_PATH | O_CLOEXEC | flags);
	struct stat status;

	if (start < 0 || fstat(start, &status))
		return -1;
	if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size > most) {
		errno = S_ISREG(status.st_mode) ? EFBIG : ENOTSUP;
		return -1;
	}
	/* Reopens the same file, even if the path is another file now. */
	VP_AUTO_FREE char *itself = file_by_descriptor(start);
	return open(itself, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int vp_fd_write_all(int fd, const void *bytes, size_t size)
{
	const char *next = bytes;

	while (size) {
		ssize_t written = write(fd, next, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		next += written;
		size -= (size_t)written;
	}
	return 0;
}

int vp_fd_write_parts(int fd, struct iovec *parts, int n)
{
	while (n) {
		ssize_t written = writev(fd, parts, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		for (; n && (size_t)written >= parts->iov_len; parts++, n--)
			written -= (ssize_t)parts->iov_len;
		if (n) {
			parts->iov_base = (char *)parts->iov_base + written;
			parts->iov_len -= (size_t)written;
		}
	}
	return 0;
}

static char *file_new_name(const char *path)
{
	return vp_format("%s.%016" PRIx64 ".tmp", path, vp_seed_new());
}

static char *file_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? vp_strndup(path, (size_t)(slash - path) + 1) : vp_strdup(".");
}

/* -1: the file system does not support unnamed files, or could not name them later. */
static int open_nameless(const char *path, unsigned mode)
{
	VP_AUTO_FREE char *folder = file_folder(path);
	int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
	VP_AUTO_FREE char *itself = file_by_descriptor(fd);
	struct stat status;

	if (fd >= 0 && stat(itself, &status)) {
		close(fd);
		return -1;
	}
	return fd;
}

int vp_new_file_create(struct vp_new_file *file, const char *path, unsigned mode)
{
	*file = (struct vp_new_file){.path = path, .fd = open_nameless(path, mode)};
	if (file->fd >= 0) {
		file->is_nameless = true;
		return 0;
	}
	char *name = file_new_name(path);
	file->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (file->fd >= 0) {
		file->name = name;
		return 0;
	}
	int result = -errno;
	free(name);
	return result;
}

static bool is_device_or_pipe(const char *path)
{
	struct stat status;

	return !stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

int vp_new_file_create_output(struct vp_new_file *file, const char *path, unsigned mode)
{
	if (!is_device_or_pipe(path))
		return vp_new_file_create(file, path, mode);
	*file =
	    (struct vp_new_file){.path = path, .fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC)};
	return file->fd < 0 ? -errno : 0;
}

void vp_file_sync_parent(const char *path)
{
	VP_AUTO_FREE char *folder = file_folder(path);
	VP_AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsync(fd); /* not supported by some file systems */
}

static int file_rename(const char *name, const char *path)
{
	int result = rename(name, path) ? -errno : 0;

	if (result)
		unlink(name);
	return result;
}

/* Names an unnamed file. link() cannot replace a file, so an existing one needs a temporary name
 * next to it; signals are blocked while that exists. */
static int link_nameless(const struct vp_new_file *file)
{
	VP_AUTO_FREE char *itself = file_by_descriptor(file->fd);
	VP_AUTO_FREE char *name = file_new_name(file->path);
	sigset_t all, before;

	if (!linkat(AT_FDCWD, itself, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW))
		return 0;
	if (errno != EEXIST)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int result = linkat(AT_FDCWD, itself, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
	if (!result)
		result = file_rename(name, file->path);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

int vp_new_file_publish(struct vp_new_file *file)
{
	bool has_place = file->name || file->is_nameless;
	int result = has_place && fsync(file->fd) && errno != EINVAL ? -errno : 0;

	if (!result && file->is_nameless)
		result = link_nameless(file);
	if (close(file->fd) && !result)
		result = -errno;
	file->fd = -1;
	if (!result && file->name && rename(file->name, file->path))
		result = -errno;
	if (result || !has_place)
		return result;
	free(file->name);
	file->name = NULL;
	vp_file_sync_parent(file->path);
	return 0;
}

void vp_new_file_deinit(struct vp_new_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->name)
		unlink(file->name);
	free(file->name);
	*file = (struct vp_new_file){.fd = -1};
}

/* Disk full: overwrites the file in place, within its own blocks. */
static int write_in_place(const char *path, const void *bytes, size_t size)
{
	VP_AUTO_CLOSE int fd =
	    open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int result = vp_fd_write_all(fd, bytes, size);
	if (!result && ftruncate(fd, (off_t)size))
		result = -errno;
	return result;
}

static bool file_is_full(int result)
{
	return result == -ENOSPC || result == -EDQUOT;
}

struct vp_error *vp_file_publish(const char *path, const void *bytes, size_t size)
{
	VP_AUTO_NEW_FILE struct vp_new_file file;
	int result = vp_new_file_create(&file, path, 0644);

	if (file_is_full(result) && !write_in_place(path, bytes, size))
		return NULL;
	if (result)
		return vp_error_errno(-result, "cannot create a file next to '%s'", path);
	result = vp_fd_write_all(file.fd, bytes, size);
	if (!result)
		result = vp_new_file_publish(&file);
	if (file_is_full(result)) {
		vp_new_file_deinit(&file);
		int again = write_in_place(path, bytes, size);
		/* A file that did not exist has no blocks: the disk is the reason. */
		result = again == -ENOENT ? result : again;
	}
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}

struct vp_error *vp_file_publish_output(const char *path, const void *bytes, size_t size)
{
	VP_AUTO_NEW_FILE struct vp_new_file file = {.fd = -1};

	if (!is_device_or_pipe(path))
		return vp_file_publish(path, bytes, size);
	int result = vp_new_file_create_output(&file, path, 0);
	if (!result)
		result = vp_fd_write_all(file.fd, bytes, size);
	if (!result)
		result = vp_new_file_publish(&file);
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}

static int file_remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)!remove(path);
	return 0;
}

void vp_file_remove_all(const char *path)
{
	enum { MAX_OPEN = 16 };

	/* Not FTW_MOUNT: files of an overlay have different device numbers than their directory. */
	nftw(path, file_remove_one, MAX_OPEN, FTW_DEPTH | FTW_PHYS);
}
