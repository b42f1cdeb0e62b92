/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/io.h"
#include "base/text.h"

#define NAME "control"

enum { MAX_ANSWER = 65536, WAITING = 8 };

/* The path in a socket address is short, so the directory is addressed by its descriptor. */
static int control_open_socket(const char *path, struct sockaddr_un *address, int *directory)
{
	*directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*directory < 0)
		return -1;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/" NAME,
		 *directory);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

struct vp_error *vp_control_listen(const char *path, int *ret)
{
	VP_AUTO_CLOSE int directory = -1;
	struct sockaddr_un address;
	int fd = control_open_socket(path, &address, &directory);

	/* The socket gets the mode of the descriptor: only this user may connect. */
	if (fd >= 0 && !fchmod(fd, 0600) &&
	    !bind(fd, (const struct sockaddr *)&address, sizeof(address)) && !listen(fd, WAITING) &&
	    !fcntl(fd, F_SETFL, O_NONBLOCK)) {
		*ret = fd;
		return NULL;
	}
	struct vp_error *error = vp_error_errno(errno, "cannot listen at '%s/" NAME "'", path);
	if (fd >= 0)
		close(fd);
	return error;
}

static bool control_may_ask(int connection)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) &&
	       (!who.uid || who.uid == geteuid());
}

int vp_control_accept(int listener)
{
	int connection = vp_accept(listener, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (connection < 0 || control_may_ask(connection))
		return connection;
	close(connection);
	return -1;
}

void vp_control_answer(int connection, const char *path, const struct vp_error *error)
{
	VP_AUTO_FREE char *answer =
	    error ? vp_format("error %s\n", vp_error_message(error)) : vp_format("ok %s\n", path);
	/* The client may be gone. */
	ssize_t sent = vp_send(connection, answer, strlen(answer), MSG_NOSIGNAL);

	(void)sent;
	close(connection);
}

void vp_control_close(const char *path, int listener)
{
	VP_AUTO_FREE char *file = vp_format("%s/" NAME, path);

	if (listener < 0)
		return;
	unlink(file);
	close(listener);
}

static struct vp_error *no_recorder(int reason, const char *path)
{
	if (reason == EACCES || reason == EPERM)
		return vp_error_errno(reason, "cannot contact the recorder of '%s' (try sudo)",
				      path);
	if (reason == ENOENT || reason == ECONNREFUSED || reason == ENOTDIR)
		return vp_error_new("no 'vperf record --flight' records to '%s'", path);
	return vp_error_errno(reason, "cannot contact the recorder of '%s'", path);
}

static struct vp_error *control_take_answer(const char *path, struct vp_buffer *answer, char **ret)
{
	VP_AUTO_FREE char *text = vp_strndup(answer->bytes, answer->size);
	size_t size = strcspn(text, "\n");

	if (text[size] != '\n')
		return vp_error_new("the recorder of '%s' ended before it replied", path);
	text[size] = 0;
	if (!strncmp(text, "ok ", 3))
		*ret = vp_strdup(text + 3);
	return *ret ? NULL
		    : vp_error_new("%s", !strncmp(text, "error ", 6) ? text + 6 : "no answer");
}

struct vp_error *vp_control_ask(const char *path, char **ret)
{
	VP_AUTO_CLOSE int directory = -1;
	struct sockaddr_un address;
	struct vp_buffer answer = {0};
	ssize_t got = 1;

	*ret = NULL;
	VP_AUTO_CLOSE int fd = control_open_socket(path, &address, &directory);
	if (fd < 0 || vp_connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return no_recorder(errno, path);
	while (got > 0 && answer.size < MAX_ANSWER) {
		char bytes[512];
		got = vp_recv(fd, bytes, sizeof(bytes), 0);
		if (got > 0)
			vp_buffer_append(&answer, bytes, (size_t)got);
	}
	struct vp_error *error = control_take_answer(path, &answer, ret);
	vp_buffer_deinit(&answer);
	return error;
}

/* A recorder keeps its directory open. */
static char *directory_with_socket(const char *descriptors, const char *name)
{
	VP_AUTO_FREE char *link = vp_format("%s/%s", descriptors, name);
	VP_AUTO_FREE char *file = vp_format("%s/" NAME, link);
	char target[4096];
	struct stat status;

	if (stat(file, &status) || !S_ISSOCK(status.st_mode))
		return NULL;
	ssize_t size = readlink(link, target, sizeof(target));
	return size > 0 && (size_t)size < sizeof(target) ? vp_strndup(target, (size_t)size) : NULL;
}

struct vp_error *vp_control_find(pid_t pid, char **ret)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%d/fd", (int)pid);
	DIR *entries = opendir(path);

	*ret = NULL;
	if (!entries)
		return errno == ENOENT
			   ? vp_error_new("there is no process %d", (int)pid)
			   : vp_error_errno(errno, "cannot inspect process %d (try sudo)",
					    (int)pid);
	for (struct dirent *entry; !*ret && (entry = readdir(entries));)
		if (entry->d_name[0] != '.')
			*ret = directory_with_socket(path, entry->d_name);
	closedir(entries);
	return *ret ? NULL : vp_error_new("process %d is not a 'vperf record --flight'", (int)pid);
}
