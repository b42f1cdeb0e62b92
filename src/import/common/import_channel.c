/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/common/import_channel.h"

#include <unistd.h>

#include "base/file.h"

void vp_import_send(const struct vp_import_channel *channel, struct vp_import_msg msg,
		    const void *bytes, size_t size)
{
	msg.size = (uint32_t)size;
	if (size > VP_IMPORT_MAX_BYTES || vp_fd_write_all(channel->fd, &msg, sizeof(msg)) ||
	    vp_fd_write_all(channel->fd, bytes, size))
		_exit(1);
}
