/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/cpu_hotplug.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cursor.h"

enum { FROM_KERNEL = 1 /* netlink group; 2 is udev's */, UEVENT_MAX = 8192 };

int vp_cpu_hotplug_open(void)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK, .nl_groups = FROM_KERNEL};
	int fd =
	    socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&kernel, sizeof(kernel)))
		return fd;
	int result = errno;
	if (fd >= 0)
		close(fd);
	errno = result;
	return -1;
}

/* "online@/devices/system/cpu/cpu1", followed by its variables with the same information
 * (lib/kobject_uevent.c) */
bool vp_cpu_hotplug_parse(const char *bytes, size_t size, uint32_t *pcpu, bool *online)
{
	static const char path[] = "@/devices/system/cpu/cpu";
	size_t length = strnlen(bytes, size);
	const char *at = memchr(bytes, '@', length);

	if (!at || length - (size_t)(at - bytes) <= strlen(path) ||
	    memcmp(at, path, strlen(path)) != 0)
		return false;
	struct vp_slice action = {bytes, (size_t)(at - bytes)};
	struct vp_cursor number =
	    vp_cursor_of(at + strlen(path), length - (size_t)(at - bytes) - strlen(path));
	*online = vp_slice_is(action, "online");
	*pcpu = (uint32_t)vp_cursor_decimal(&number);
	return (*online || vp_slice_is(action, "offline")) && !number.failed &&
	       !vp_cursor_left(&number);
}

bool vp_cpu_hotplug_read(int fd, void (*on_event)(void *context, uint32_t pcpu, bool online),
			 void *context)
{
	struct sockaddr_nl from;
	char bytes[UEVENT_MAX];
	bool all = true, online;
	uint32_t pcpu;

	for (;;) {
		socklen_t length = sizeof(from);
		ssize_t size =
		    recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &length);
		if (size < 0 && errno == ENOBUFS)
			all = false;
		else if (size < 0 && errno != EINTR)
			return all;
		else if (size > 0 && !from.nl_pid && /* sent by the kernel */
			 vp_cpu_hotplug_parse(bytes, (size_t)size, &pcpu, &online))
			on_event(context, pcpu, online);
	}
}
