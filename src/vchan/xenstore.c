/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vchan/xenstore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/file.h"
#include "base/io.h"

enum {
	ANSWER_MS = 5000,
	PAYLOAD_MAX = 4096,
	/* Message types. */
	XENSTORE_READ = 2,
	XENSTORE_WATCH = 4,
	XENSTORE_WRITE = 11,
	XENSTORE_REMOVE = 13,
	XENSTORE_CHANGE = 15,
	XENSTORE_ERROR = 16
};

struct message {
	uint32_t kind, request, transaction, size;
	char bytes[PAYLOAD_MAX + 1]; /* NUL-terminated */
};
#define HEAD_SIZE offsetof(struct message, bytes)

struct vp_error *vp_xenstore_open(int *ret)
{
	int fd = open(VP_XENSTORE_DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open '" VP_XENSTORE_DEVICE "'");
	*ret = fd;
	return NULL;
}

static struct vp_error *silent(int errnum)
{
	return vp_error_errno(errnum, "xenstore does not reply");
}

static struct vp_error *receive_all(int fd, char *bytes, size_t size)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (size) {
		int result = vp_poll(&ready, 1, ANSWER_MS);
		if (result <= 0)
			return silent(result ? errno : ETIMEDOUT);
		ssize_t got = vp_read(fd, bytes, size);
		if (got < 0 && errno == EAGAIN)
			continue;
		if (got <= 0)
			return silent(got ? errno : EPIPE);
		bytes += got;
		size -= (size_t)got;
	}
	return NULL;
}

static struct vp_error *xenstore_receive(int fd, struct message *message)
{
	VP_TRY(receive_all(fd, (char *)message, HEAD_SIZE));
	if (message->size > PAYLOAD_MAX)
		return vp_error_new("xenstore sent a message that is too long");
	VP_TRY(receive_all(fd, message->bytes, message->size));
	message->bytes[message->size] = 0;
	return NULL;
}

/* xenstore's error name as errno. */
static int errnum_of(const struct message *answer)
{
	return !strcmp(answer->bytes, "ENOENT")   ? ENOENT
	       : !strcmp(answer->bytes, "EACCES") ? EACCES
	       : !strcmp(answer->bytes, "ENOSPC") ? ENOSPC
	       : !strcmp(answer->bytes, "EQUOTA") ? EDQUOT
						  : EIO;
}

/* Sends a request with two strings, the second one NUL-terminated if `is_closed`, and receives
 * the reply. *errnum: 0, or xenstore's error. */
static struct vp_error *xenstore_request(int fd, uint32_t kind, const char *path, const char *value,
					 bool is_closed, struct message *message, int *errnum)
{
	size_t first = strlen(path) + 1, second = value ? strlen(value) + is_closed : 0;

	*message = (struct message){.kind = kind, .size = (uint32_t)(first + second)};
	if (first + second > PAYLOAD_MAX)
		return vp_error_new("'%s' is too long for xenstore", path);
	memcpy(message->bytes, path, first);
	if (value)
		memcpy(message->bytes + first, value, second);
	int result = vp_fd_write_all(fd, message, HEAD_SIZE + first + second);
	if (result)
		return silent(-result);
	do
		VP_TRY(xenstore_receive(fd, message));
	while (message->kind == XENSTORE_CHANGE);
	*errnum = message->kind == XENSTORE_ERROR ? errnum_of(message) : 0;
	return NULL;
}

static struct vp_error *refused(int errnum, const char *path)
{
	return errnum ? vp_error_errno(errnum, "xenstore refuses '%s'", path) : NULL;
}

struct vp_error *vp_xenstore_read(int fd, const char *path, char *ret, size_t room, bool *found)
{
	struct message message;
	int errnum;

	VP_TRY(xenstore_request(fd, XENSTORE_READ, path, NULL, false, &message, &errnum));
	*found = errnum != ENOENT;
	if (!*found)
		return NULL;
	VP_TRY(refused(errnum, path));
	size_t size = strlen(message.bytes);
	if (size >= room)
		return vp_error_new("the value of '%s' in xenstore is too long", path);
	memcpy(ret, message.bytes, size + 1);
	return NULL;
}

struct vp_error *vp_xenstore_write(int fd, const char *path, const char *value)
{
	struct message message;
	int errnum;

	VP_TRY(xenstore_request(fd, XENSTORE_WRITE, path, value, false, &message, &errnum));
	return refused(errnum, path);
}

struct vp_error *vp_xenstore_remove(int fd, const char *path)
{
	struct message message;
	int errnum;

	VP_TRY(xenstore_request(fd, XENSTORE_REMOVE, path, NULL, false, &message, &errnum));
	return errnum == ENOENT ? NULL : refused(errnum, path);
}

struct vp_error *vp_xenstore_watch(int fd, const char *path)
{
	struct message message;
	int errnum;

	VP_TRY(xenstore_request(fd, XENSTORE_WATCH, path, "vperf", true, &message, &errnum));
	return refused(errnum, path);
}

struct vp_error *vp_xenstore_take_change(int fd)
{
	struct message message;

	return xenstore_receive(fd, &message);
}
