/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/host_copy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "guestmem/tasks/pagecache.h"
#include "maps/debuginfod.h"

/* Larger files are not passed. */
#define MAX_BYTES (1ULL << 30)

/* Folders of installed programs. On hosts with a merged /usr, all but two are links. */
static const char *const folders[] = {"/usr/", "/opt/", "/lib/", "/lib64/", "/bin/", "/sbin/"};
/* Links to installed programs by build-id, as Fedora's packages have them. */
static const char *const by_build_id[] = {"/usr/lib/.build-id", "/usr/lib/debug/.build-id"};

/* Files that may be opened, after all links. */
struct place {
	const char *folder; /* with a '/' at its end */
	uid_t owner;
	mode_t mode; /* bits that the file must have */
};

static bool is_in(int fd, const struct place *place)
{
	VP_AUTO_FREE char *link = vp_format("/proc/self/fd/%d", fd);
	char path[PATH_MAX];
	ssize_t size = readlink(link, path, sizeof(path) - 1);
	struct stat status;

	if (size < 0 || fstat(fd, &status))
		return false;
	path[size] = 0;
	return !strncmp(path, place->folder, strlen(place->folder)) &&
	       status.st_uid == place->owner && (status.st_mode & place->mode) == place->mode;
}

static int open_in(const char *path, const struct place *place)
{
	/* Not opened for reading before its place is known: that alone has effects elsewhere, as in
	 * tracefs. */
	VP_AUTO_CLOSE int file = path[0] == '/' ? open(path, O_PATH | O_CLOEXEC) : -1;
	VP_AUTO_FREE char *itself = vp_format("/proc/self/fd/%d", file);

	return file >= 0 && is_in(file, place) ? vp_file_open_regular(itself, MAX_BYTES, 0) : -1;
}

int vp_host_copy_open(const char *path, const char *folder)
{
	const struct place place = {.folder = folder, .owner = 0, .mode = S_IROTH};

	return open_in(path, &place);
}

static bool read_bytes(void *context, uint64_t offset, void *bytes, size_t size)
{
	const int *fd = context;

	return offset <= INT64_MAX && vp_pread(*fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* Returns the descriptor, or closes it and returns -1 if the file has another build-id. */
static int if_same(int fd, const struct vp_build_id *build_id)
{
	struct vp_build_id found;

	if (fd < 0 ||
	    (vp_file_build_id(read_bytes, &fd, &found) && vp_build_id_equal(&found, build_id)))
		return fd;
	close(fd);
	return -1;
}

static int find_installed(const char *path, const struct vp_build_id *build_id)
{
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < VP_ARRAY_SIZE(folders); i++)
		fd = if_same(vp_host_copy_open(path, folders[i]), build_id);
	return fd;
}

/* The cache folder without links, with a '/' at its end; NULL: none, or another user's, who could
 * have put links into it. */
static char *own_cache(void)
{
	VP_AUTO_FREE char *named = vp_debuginfod_cache();
	VP_AUTO_FREE char *folder = named ? realpath(named, NULL) : NULL;
	struct stat status;

	return folder && !stat(folder, &status) && status.st_uid == geteuid()
		   ? vp_format("%s/", folder)
		   : NULL;
}

int vp_host_copy_download(const struct vp_build_id *build_id)
{
	VP_AUTO_FREE char *cache = own_cache();
	const struct place place = {.folder = cache, .owner = geteuid()};

	if (!cache)
		return -1;
	VP_AUTO_FREE char *path = vp_debuginfod_cached(cache, build_id, VP_DEBUGINFOD_EXECUTABLE);
	return if_same(open_in(path, &place), build_id);
}

int vp_host_copy_find(const char *path, const struct vp_build_id *build_id)
{
	struct vp_buffer digits = {0};
	int fd = find_installed(path, build_id);

	if (build_id->size < 2)
		return fd;
	vp_build_id_put(build_id, &digits);
	const char *text = vp_buffer_text(&digits);
	for (size_t i = 0; fd < 0 && i < VP_ARRAY_SIZE(by_build_id); i++) {
		VP_AUTO_FREE char *link = vp_format("%s/%.2s/%s", by_build_id[i], text, text + 2);
		fd = find_installed(link, build_id);
	}
	vp_buffer_deinit(&digits);
	return fd < 0 ? vp_host_copy_download(build_id) : fd;
}
