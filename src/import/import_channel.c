/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/import_channel.h"

#include <unistd.h>

#include "base/file.h"

void vp_import_tell(const struct vp_import_channel *channel, struct vp_import_news news,
		    const void *bytes, size_t size)
{
	news.size = (uint32_t)size;
	if (size > VP_IMPORT_MOST_BYTES || vp_fd_write_all(channel->fd, &news, sizeof(news)) ||
	    vp_fd_write_all(channel->fd, bytes, size))
		_exit(1);
}
