/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/host_copy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/macros.h"

/* Larger files are not passed. */
#define MAX_BYTES (1ULL << 30)

static bool is_public(int fd, const char *folder)
{
	VP_AUTO_FREE char *link = vp_format("/proc/self/fd/%d", fd);
	char path[PATH_MAX];
	ssize_t size = readlink(link, path, sizeof(path) - 1);
	struct stat status;

	if (size < 0 || fstat(fd, &status))
		return false;
	path[size] = 0;
	return !strncmp(path, folder, strlen(folder)) && status.st_uid == 0 &&
	       status.st_mode & S_IROTH;
}

int vp_host_copy_open(const char *path, const char *folder)
{
	/* Not opened for reading before it is known to be public: that alone has effects elsewhere,
	 * as in tracefs. */
	VP_AUTO_CLOSE int place = path[0] == '/' ? open(path, O_PATH | O_CLOEXEC) : -1;
	VP_AUTO_FREE char *itself = vp_format("/proc/self/fd/%d", place);

	return place >= 0 && is_public(place, folder) ? vp_file_open_regular(itself, MAX_BYTES, 0)
						      : -1;
}
