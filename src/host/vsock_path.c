/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/vsock_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/map.h"

enum {
	SOCKETS_MAX = 64 << 20,
	LISTENS = 0x10000, /* __SO_ACCEPTCON: in /proc/net/unix */
	LINE_MAX = 32,     /* of the VMM's reply */
};

/* The path as seen from this process: through /proc/PID/root, or cwd if it is relative. */
static char *path_from_here(const char *proc, uint32_t pid, const char *path, size_t size)
{
	return vp_format("%s/%" PRIu32 "/%s/%.*s", proc, pid, path[0] == '/' ? "root" : "cwd",
			 (int)size, path);
}

/* Inode numbers of the process's sockets. */
static void find_inodes(const char *proc, uint32_t pid, struct vp_map *inodes)
{
	VP_AUTO_FREE char *folder = vp_format("%s/%" PRIu32 "/fd", proc, pid);
	DIR *directory = opendir(folder);
	char target[64];
	bool is_new;

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		VP_AUTO_FREE char *path = vp_format("%s/%s", folder, entry->d_name);
		ssize_t size = readlink(path, target, sizeof(target) - 1);
		if (size <= 8 || strncmp(target, "socket:[", 8) != 0)
			continue;
		target[size] = 0;
		vp_map_insert(inodes, strtoull(target + 8, NULL, 10), 0, &is_new);
	}
	if (directory)
		closedir(directory);
}

/* "0000000000000000: 00000002 00000000 00010000 0001 01 25537 /run/x.sock": the path of a
 * listening socket with one of the inodes; false: another socket. */
static bool read_socket(struct vp_slice line, const struct vp_map *inodes, struct vp_slice *path)
{
	struct vp_cursor cursor = vp_cursor_of(line.bytes, line.size);

	vp_cursor_word(&cursor);
	vp_cursor_word(&cursor);
	vp_cursor_word(&cursor);
	uint64_t flags = vp_cursor_hex(&cursor);
	vp_cursor_word(&cursor);
	vp_cursor_word(&cursor);
	while (vp_cursor_left(&cursor) && *cursor.next == ' ')
		vp_cursor_bytes(&cursor, 1);
	uint64_t inode = vp_cursor_decimal(&cursor);
	*path = vp_cursor_rest(&cursor);
	return vp_cursor_ok(&cursor) && path->size && path->bytes[0] != '@' && flags == LISTENS &&
	       vp_map_find(inodes, inode);
}

/* The VMM's only listening socket, except for its API socket. */
static char *find_listening(const char *proc, uint32_t pid, const char *api)
{
	VP_AUTO_FREE char *list = vp_format("%s/%" PRIu32 "/net/unix", proc, pid);
	struct vp_slice line, path, found = {0};
	struct vp_buffer text = {0};
	struct vp_map inodes = {0};
	unsigned count = 0;

	find_inodes(proc, pid, &inodes);
	vp_error_free(vp_file_read(list, SOCKETS_MAX, &text));
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	while (vp_cursor_line(&lines, &line)) {
		if (!read_socket(line, &inodes, &path) || (api && vp_slice_is(path, api)))
			continue;
		found = path;
		count++;
	}
	char *path_here = count == 1 ? path_from_here(proc, pid, found.bytes, found.size) : NULL;
	vp_buffer_deinit(&text);
	vp_map_deinit(&inodes);
	return path_here;
}

char *vp_vsock_path_find(const char *proc, uint32_t pid, const struct vp_vmm_command *command)
{
	if (command->vsock)
		return path_from_here(proc, pid, command->vsock, strlen(command->vsock));
	return command->is_firecracker ? find_listening(proc, pid, command->api) : NULL;
}

static uint64_t vsock_path_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Connects through /proc/self/fd: the path may exceed the size of a socket address, and may be
 * replaced before it is opened. */
static int connect_path(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	VP_AUTO_CLOSE int opened = open(path, O_PATH | O_CLOEXEC);

	if (opened < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", opened);
	return vp_connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

static bool is_of_process(int fd, uint32_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == (pid_t)pid;
}

/* Reads a line byte by byte, since the following bytes belong to the guest; 0 or -errno. */
static int vsock_path_read_line(int fd, uint64_t deadline, char line[LINE_MAX])
{
	size_t size = 0;

	while (size + 1 < LINE_MAX) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		uint64_t now = vsock_path_now_ms();
		int left = now < deadline ? (int)(deadline - now) : 0;
		int result = vp_poll(&ready, 1, left);
		if (result <= 0)
			return result ? -errno : -ETIMEDOUT;
		ssize_t got = vp_recv(fd, line + size, 1, MSG_DONTWAIT);
		if (got < 0 && errno == EAGAIN)
			continue;
		if (got <= 0)
			return got ? -errno : -ECONNREFUSED; /* the VMM closes the connection if no
								guest process listens */
		line[++size] = 0;
		if (line[size - 1] == '\n')
			return 0;
	}
	return -EPROTO;
}

static struct vp_error *vsock_path_request_port(int fd, const char *path, unsigned port,
						unsigned seconds)
{
	VP_AUTO_FREE char *request = vp_format("CONNECT %u\n", port);
	char line[LINE_MAX] = "";
	size_t size = strlen(request);
	ssize_t sent = vp_send(fd, request, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	int result = sent == (ssize_t)size ? 0 : sent < 0 ? -errno : -EPROTO;

	if (!result)
		result = vsock_path_read_line(fd, vsock_path_now_ms() + 1000ULL * seconds, line);
	if (result)
		return vp_error_errno(-result, "no agent reachable through '%s' at vsock port %u",
				      path, port);
	return strncmp(line, "OK ", 3) ? vp_error_new("no agent reachable through '%s' at vsock "
						      "port %u: the VMM does not reply with 'OK'",
						      path, port)
				       : NULL;
}

struct vp_error *vp_vsock_path_connect(const char *path, uint32_t pid, unsigned port,
				       unsigned seconds, int *ret)
{
	VP_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval timeout = {.tv_sec = seconds}, any = {0};

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)))
		return vp_error_errno(errno, "cannot open a unix socket");
	int result = connect_path(fd, path);
	if (result)
		return vp_error_errno(-result, "cannot connect to the VMM's vsock at '%s'", path);
	if (!is_of_process(fd, pid))
		return vp_error_new("'%s' is not a socket of the VMM's process %" PRIu32, path,
				    pid);
	VP_TRY(vsock_path_request_port(fd, path, port, seconds));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &any, sizeof(any)))
		return vp_error_errno(errno, "cannot wait for '%s'", path);
	*ret = fd;
	fd = -1;
	return NULL;
}
