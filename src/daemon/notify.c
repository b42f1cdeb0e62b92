/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/notify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macros.h"

void vp_notify(const char *lines)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size = path ? strlen(path) : 0;

	if (!size || size >= sizeof(address.sun_path) || !strchr("/@", path[0]))
		return;
	memcpy(address.sun_path, path, size);
	if (path[0] == '@') /* abstract socket */
		address.sun_path[0] = 0;
	VP_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct iovec part = {(void *)lines, strlen(lines)};
	struct msghdr message = {.msg_name = &address,
				 .msg_namelen =
				     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size),
				 .msg_iov = &part,
				 .msg_iovlen = 1};

	if (fd >= 0)
		(void)!vp_sendmsg(fd, &message, MSG_NOSIGNAL);
}
