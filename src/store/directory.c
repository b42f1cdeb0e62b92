/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/io.h"
#include "base/seed.h"
#include "store/recording.h"

/* Locks the directory; locking errors of some network file systems are ignored. */
static struct vp_error *lock_directory(const char *path, int *lock)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open directory '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return vp_error_new("'%s' is in use by another 'vperf record'", path);
	}
	*lock = fd;
	return NULL;
}

/* Files of a recording's folders; an unfinished new version of a file may be next to it. */
#define HALF_WRITTEN "?(?(.+([0-9a-f])).tmp)"
#define TRACE_FILES                                                                                \
	"@(metadata|@(account|vcpus|guest-samples|hypervisor|?(intervals-|trace-|tracepoints-)"    \
	"cpu+([0-9]))"                                                                             \
	"?(.zst))" HALF_WRITTEN
#define GUEST_TRACE "guest-*" /* folders of guests */
static const struct folder {
	const char *name;
	const char *files; /* a pattern of fnmatch(3) */
} folders[] = {
    {"host", TRACE_FILES},
    {"packs", "+([0-9a-f]).pack" HALF_WRITTEN},
    {".", "@(recording|vms|cgroups|recipe|host.@(maps|events)|guest-*.@(maps|orc|events)|agent-*."
	  "maps)" HALF_WRITTEN},
};

static bool is_guest_trace(int directory, const char *name)
{
	struct stat status;

	return !fnmatch(GUEST_TRACE, name, 0) &&
	       !fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) && S_ISDIR(status.st_mode);
}

static bool is_folder_of_recording(int directory, const char *name)
{
	if (is_guest_trace(directory, name))
		return true;
	for (size_t i = 0; i < VP_ARRAY_SIZE(folders); i++)
		if (!strcmp(name, folders[i].name))
			return true;
	return false;
}

/* Whether the directory's file `recording` was written by vperf. */
static bool is_recording(int directory)
{
	static const char first[] = VP_RECORDING_MAGIC; /* of any format version */
	VP_AUTO_CLOSE int fd =
	    openat(directory, "recording", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char bytes[sizeof(first) - 1];
	struct stat status;

	return fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) &&
	       vp_read(fd, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       !memcmp(bytes, first, sizeof(bytes));
}

/* The next entry of the directory except "." and "..". */
static struct dirent *next_entry(DIR *entries)
{
	struct dirent *entry = readdir(entries);

	while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")))
		entry = readdir(entries);
	return entry;
}

static DIR *open_entries(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !entries)
		close(fd);
	return entries;
}

/* A file in an open folder of a recording. */
struct file {
	const char *recording;
	const struct folder *folder;
	int folder_fd;
	const char *name;
};

typedef struct vp_error *(*file_fn)(const struct file *file);

/* A flight recorder that was killed leaves its socket. */
static bool is_control(const struct file *file, const struct stat *status)
{
	return S_ISSOCK(status->st_mode) && !strcmp(file->folder->name, ".") &&
	       !strcmp(file->name, "control");
}

static struct vp_error *expect_own(const struct file *file)
{
	struct stat status;

	if (!fstatat(file->folder_fd, file->name, &status, AT_SYMLINK_NOFOLLOW) &&
	    ((S_ISREG(status.st_mode) && !fnmatch(file->folder->files, file->name, FNM_EXTMATCH)) ||
	     is_control(file, &status)))
		return NULL;
	return vp_error_new("'%s' is not removed: '%s/%s' in it is not part of a recording",
			    file->recording, file->folder->name, file->name);
}

/* Removes `recording` last: the rest of an interrupted removal is then still recognized as a
 * recording. */
static struct vp_error *remove_own(const struct file *file)
{
	if (!strcmp(file->name, "recording"))
		return NULL;
	VP_TRY(expect_own(file));
	return unlinkat(file->folder_fd, file->name, 0)
		   ? vp_error_errno(errno, "cannot remove '%s/%s/%s'", file->recording,
				    file->folder->name, file->name)
		   : NULL;
}

static struct vp_error *each_file(int directory, const char *path, const struct folder *folder,
				  file_fn take)
{
	DIR *entries = open_entries(directory, folder->name);
	struct file file = {.recording = path, .folder = folder};
	struct vp_error *error = NULL;

	if (!entries)
		return errno == ENOENT ? NULL
				       : vp_error_errno(errno, "cannot read directory '%s/%s'",
							path, folder->name);
	file.folder_fd = dirfd(entries);
	for (struct dirent *entry; !error && (entry = next_entry(entries));) {
		file.name = entry->d_name;
		if (strcmp(folder->name, ".") != 0 ||
		    !is_folder_of_recording(file.folder_fd, file.name))
			error = take(&file);
	}
	closedir(entries);
	return error;
}

/* The same for guests' traces; `remove`: also removes their folders. */
static struct vp_error *each_guest_file(int directory, const char *path, file_fn take, bool remove)
{
	DIR *entries = open_entries(directory, ".");
	struct vp_error *error = NULL;

	if (!entries)
		return vp_error_errno(errno, "cannot read directory '%s'", path);
	for (struct dirent *entry; !error && (entry = next_entry(entries));) {
		const struct folder folder = {entry->d_name, TRACE_FILES};
		if (!is_guest_trace(directory, entry->d_name))
			continue;
		error = each_file(directory, path, &folder, take);
		if (!error && remove && unlinkat(directory, entry->d_name, AT_REMOVEDIR))
			error = vp_error_errno(errno, "cannot remove '%s/%s'", path, entry->d_name);
	}
	closedir(entries);
	return error;
}

static struct vp_error *expect_own_files(int directory, const char *path)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(folders); i++)
		VP_TRY(each_file(directory, path, &folders[i], expect_own));
	return each_guest_file(directory, path, expect_own, false);
}

static bool directory_is_empty(int directory)
{
	DIR *entries = open_entries(directory, ".");
	bool empty = entries && !next_entry(entries);

	if (entries)
		closedir(entries);
	return empty;
}

static struct vp_error *remove_recording(int directory, const char *path)
{
	VP_TRY(expect_own_files(directory, path));
	VP_TRY(each_guest_file(directory, path, remove_own, true));
	for (size_t i = 0; i < VP_ARRAY_SIZE(folders); i++) {
		VP_TRY(each_file(directory, path, &folders[i], remove_own));
		if (strcmp(folders[i].name, ".") != 0 &&
		    unlinkat(directory, folders[i].name, AT_REMOVEDIR) && errno != ENOENT)
			return vp_error_errno(errno, "cannot remove '%s/%s'", path,
					      folders[i].name);
	}
	if ((unlinkat(directory, "recording", 0) && errno != ENOENT) || rmdir(path))
		return vp_error_errno(errno, "cannot remove '%s'", path);
	return NULL;
}

/* Removes an older recording; an empty directory may stay. */
static struct vp_error *clear_old(const char *path)
{
	VP_AUTO_CLOSE int lock = -1;
	struct stat status;

	if (lstat(path, &status))
		return errno == ENOENT ? NULL : vp_error_errno(errno, "cannot stat '%s'", path);
	if (!S_ISDIR(status.st_mode))
		return vp_error_new("'%s' exists and is not a directory", path);
	VP_TRY(lock_directory(path, &lock));
	if (is_recording(lock))
		return remove_recording(lock, path);
	return !rmdir(path) ? NULL : vp_error_new("'%s' exists and is not a recording", path);
}

/* Whether PATH.old can be removed. */
static struct vp_error *expect_old_removable(const char *path)
{
	VP_AUTO_FREE char *old = vp_format("%s.old", path);
	VP_AUTO_CLOSE int lock = -1;
	struct stat status;

	if (lstat(old, &status))
		return errno == ENOENT ? NULL : vp_error_errno(errno, "cannot stat '%s'", old);
	if (!S_ISDIR(status.st_mode))
		return vp_error_new("'%s' exists and is not a directory", old);
	VP_TRY(lock_directory(old, &lock));
	if (is_recording(lock))
		return expect_own_files(lock, old);
	return directory_is_empty(lock) ? NULL
					: vp_error_new("'%s' exists and is not a recording", old);
}

/* *lock: lock on the older recording, or -1. */
static struct vp_error *expect_replaceable(const char *path, int *lock)
{
	struct stat status;

	*lock = -1;
	if (stat(path, &status))
		return errno == ENOENT ? NULL : vp_error_errno(errno, "cannot stat '%s'", path);
	if (!S_ISDIR(status.st_mode))
		return vp_error_new("'%s' exists and is not a directory", path);
	VP_TRY(lock_directory(path, lock));
	struct vp_error *error = NULL;
	if (is_recording(*lock))
		error = expect_old_removable(path);
	else if (!directory_is_empty(*lock))
		error = vp_error_new("'%s' exists and is not a recording", path);
	if (error) {
		close(*lock);
		*lock = -1;
	}
	return error;
}

struct vp_error *vp_recording_dir_claim(const char *path, struct vp_recording_dir *ret)
{
	*ret = VP_NO_RECORDING_DIR;
	if (!strcmp(path, "-"))
		return vp_error_usage("option -o: a recording is a directory, it cannot be written "
				      "to standard output");
	ret->path = vp_strdup(path);
	for (size_t size = strlen(path); size > 1 && ret->path[size - 1] == '/'; size--)
		ret->path[size - 1] = 0; /* ".old" is appended to the name */
	struct vp_error *error = expect_replaceable(ret->path, &ret->older);
	if (!error) {
		ret->now = vp_format("%s.%016" PRIx64 ".new", ret->path, vp_seed_new());
		if (mkdir(ret->now, 0777))
			error = vp_error_errno(errno, "cannot create directory '%s'", ret->now);
		else
			error = lock_directory(ret->now, &ret->lock);
	}
	if (error)
		vp_recording_dir_leave(ret);
	return error;
}

/* Renames an older recording to PATH.old; removes an empty directory. */
static struct vp_error *make_way(const struct vp_recording_dir *dir)
{
	VP_AUTO_FREE char *old = vp_format("%s.old", dir->path);

	if (dir->older < 0)
		return NULL;
	if (!is_recording(dir->older))
		return !rmdir(dir->path) || errno == ENOENT
			   ? NULL
			   : vp_error_errno(errno, "cannot remove '%s'", dir->path);
	VP_TRY(clear_old(old));
	return rename(dir->path, old)
		   ? vp_error_errno(errno, "cannot rename '%s' to '%s'", dir->path, old)
		   : NULL;
}

struct vp_error *vp_recording_dir_publish(struct vp_recording_dir *dir)
{
	VP_TRY(make_way(dir));
	/* RENAME_NOREPLACE: a directory created meanwhile belongs to another process. */
	if (renameat2(AT_FDCWD, dir->now, AT_FDCWD, dir->path, RENAME_NOREPLACE) &&
	    (errno != EINVAL || rename(dir->now, dir->path)))
		return vp_error_errno(errno, "cannot rename '%s' to '%s'", dir->now, dir->path);
	strcpy(dir->now, dir->path); /* the new name is shorter */
	dir->is_published = true;
	vp_file_sync_parent(dir->path);
	return NULL;
}

void vp_recording_dir_leave(struct vp_recording_dir *dir)
{
	VP_AUTO_ERROR struct vp_error *error = NULL;

	if (dir->lock >= 0 && !dir->is_published) {
		error = remove_recording(dir->lock, dir->now);
		if (error)
			rmdir(dir->now);
	}
	if (dir->lock >= 0)
		close(dir->lock);
	if (dir->older >= 0)
		close(dir->older);
	free(dir->path);
	free(dir->now);
	*dir = VP_NO_RECORDING_DIR;
}
