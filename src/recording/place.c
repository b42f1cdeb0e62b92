/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"

/* Locks the directory; one that cannot be locked at all (on some network file systems) is let be.
 */
static struct vp_error *lock_directory(const char *path, int *lock)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open directory '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return vp_error_new("'%s' is being written by another 'vperf record'", path);
	}
	*lock = fd;
	return NULL;
}

static bool is_recording(const char *path)
{
	VP_AUTO_FREE char *inside = vp_format("%s/recording", path);

	return !access(inside, F_OK);
}

static void remove_all(char *path)
{
	char *const words[] = {"rm", "-rf", "--", path, NULL};
	pid_t child = fork();

	if (child == 0) {
		execvp(words[0], words);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static struct vp_error *make_way(const char *path)
{
	VP_AUTO_FREE char *old = vp_format("%s.old", path);
	VP_AUTO_CLOSE int lock = -1;
	struct stat status;

	if (stat(path, &status))
		return errno == ENOENT ? NULL : vp_error_errno(errno, "cannot look at '%s'", path);
	if (!S_ISDIR(status.st_mode))
		return vp_error_new("'%s' is there already and is not a directory", path);
	VP_TRY(lock_directory(path, &lock));
	if (!is_recording(path))
		return !rmdir(path)
			   ? NULL
			   : vp_error_new("'%s' is there already and is not a recording", path);
	if (is_recording(old))
		remove_all(old);
	if (rename(path, old))
		return vp_error_errno(errno, "cannot rename '%s' to '%s'", path, old);
	return NULL;
}

struct vp_error *vp_recording_place(const char *path, int *lock)
{
	VP_AUTO_FREE char *bare = vp_strdup(path);

	for (size_t size = strlen(bare); size > 1 && bare[size - 1] == '/'; size--)
		bare[size - 1] = 0; /* so that ".old" goes behind the name */
	VP_TRY(make_way(bare));
	if (mkdir(bare, 0755) && errno != EEXIST)
		return vp_error_errno(errno, "cannot create directory '%s'", path);
	return lock_directory(bare, lock);
}
