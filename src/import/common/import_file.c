/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/common/import_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"

enum { LONGEST_MAGIC = 16 };
#define MAX_BESIDE (1ULL << 30) /* of a further file, opened inside the confined process */
#define MAX_FILE (1ULL << 46)   /* limit of address space: pages are dropped after use */

bool vp_import_file_begins(const char *path, const char *magic, size_t size)
{
	VP_AUTO_CLOSE int fd = vp_file_open_regular(path, UINT64_MAX, 0);
	char bytes[LONGEST_MAGIC];

	return fd >= 0 && size <= sizeof(bytes) && vp_pread(fd, bytes, size, 0) == (ssize_t)size &&
	       !memcmp(bytes, magic, size);
}

struct vp_slice vp_import_file_map_confined(const char *path)
{
	/* Not vp_file_open_regular(): the seccomp filter allows fewer system calls. */
	VP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status = {0};

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || !status.st_size ||
	    (uint64_t)status.st_size > MAX_BESIDE)
		return (struct vp_slice){"", 0};
	void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	return bytes == MAP_FAILED ? (struct vp_slice){"", 0}
				   : (struct vp_slice){bytes, (size_t)status.st_size};
}

struct vp_error *vp_import_file_map(const char *path, struct vp_slice *ret)
{
	VP_AUTO_CLOSE int fd = vp_file_open_regular(path, MAX_FILE, 0);
	struct stat status = {0};

	if (fd < 0)
		return vp_error_errno(errno, "cannot read '%s'", path);
	if (fstat(fd, &status))
		return vp_error_errno(errno, "cannot read '%s'", path);
	if (!status.st_size)
		return vp_error_new("'%s' is empty", path);
	void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return vp_error_errno(errno, "cannot read '%s'", path);
	*ret = (struct vp_slice){bytes, (size_t)status.st_size};
	return NULL;
}
