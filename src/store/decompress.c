/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/decompress.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/io.h"
#include "schema/schema.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

/* Maximum depth: folders of a recording have no subfolders. */
enum { DEPTH = 1, PIECE = 256 * 1024 };

struct copy {
	uint64_t damaged;
};

static struct vp_error *cannot_write(const char *path, int errnum)
{
	return vp_error_errno(errnum, "cannot write '%s'", path);
}

static struct vp_error *copy_bytes(const char *from, const char *path, int to)
{
	VP_AUTO_FREE char *piece = vp_alloc(PIECE);
	VP_AUTO_CLOSE int fd = vp_file_open_regular(from, UINT64_MAX, O_NOFOLLOW);
	ssize_t got;
	int status = 0;

	if (fd < 0)
		return vp_error_errno(errno, "cannot open '%s'", from);
	while (!status && (got = vp_read(fd, piece, PIECE)) > 0)
		status = vp_fd_write_all(to, piece, (size_t)got);
	if (status)
		return cannot_write(path, -status);
	return got < 0 ? vp_error_errno(errno, "cannot read '%s'", from) : NULL;
}

static struct vp_error *copy_packets(struct copy *copy, const char *from, const char *path, int to)
{
	const struct vp_packet_header *packet;
	struct vp_stream_reader *stream;
	int status = 0;

	VP_TRY(vp_stream_open(from, &stream));
	while (!status && (packet = vp_stream_next_packet(stream)))
		status = vp_fd_write_all(to, packet, vp_packet_header_size(packet));
	copy->damaged += vp_stream_health(stream).damaged;
	vp_stream_free(stream);
	return status ? cannot_write(path, -status) : NULL;
}

static struct vp_error *copy_file(struct copy *copy, const char *from, const char *to)
{
	size_t size = strlen(to) - (vp_stream_is_compressed(from) ? strlen(VP_ZSTD_SUFFIX) : 0);
	VP_AUTO_FREE char *path = vp_strndup(to, size);
	VP_AUTO_CLOSE int fd =
	    open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return cannot_write(path, errno);
	return vp_stream_is_compressed(from) ? copy_packets(copy, from, path, fd)
					     : copy_bytes(from, path, fd);
}

static struct vp_error *copy_folder(struct copy *copy, const char *from, const char *to, int depth);

/* Other kinds of files, such as a flight recorder's socket, are not part of the recording. */
static struct vp_error *copy_entry(struct copy *copy, const char *from, const char *to, int depth)
{
	struct stat status;

	if (lstat(from, &status))
		return vp_error_errno(errno, "cannot read '%s'", from);
	if (S_ISREG(status.st_mode))
		return copy_file(copy, from, to);
	if (!S_ISDIR(status.st_mode) || depth == DEPTH)
		return NULL;
	if (mkdir(to, 0755))
		return vp_error_errno(errno, "cannot make '%s'", to);
	return copy_folder(copy, from, to, depth + 1);
}

static struct vp_error *copy_folder(struct copy *copy, const char *from, const char *to, int depth)
{
	struct vp_error *error = NULL;
	DIR *folder = opendir(from);

	if (!folder)
		return vp_error_errno(errno, "cannot read directory '%s'", from);
	for (struct dirent *entry; !error && (entry = readdir(folder));) {
		VP_AUTO_FREE char *one = vp_format("%s/%s", from, entry->d_name);
		VP_AUTO_FREE char *other = vp_format("%s/%s", to, entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = copy_entry(copy, one, other, depth);
	}
	closedir(folder);
	return error;
}

struct vp_error *vp_recording_decompress(const char *from, const char *to, uint64_t *damaged)
{
	struct copy copy = {.damaged = 0};
	struct vp_recording recording;

	VP_TRY(vp_recording_read(from, &recording));
	recording.compression = 0;
	struct vp_error *error = copy_folder(&copy, from, to, 0);
	if (!error)
		error = vp_recording_write(to, &recording);
	vp_recording_deinit(&recording);
	*damaged = copy.damaged;
	return error;
}
