/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/boot.h"

#include <fcntl.h>
#include <string.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/macros.h"

char *vp_boot_id(void)
{
	char id[64];
	VP_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : vp_read(fd, id, sizeof(id) - 1);

	id[size > 0 ? size : 0] = 0;
	id[strcspn(id, "\n")] = 0;
	return vp_strdup(id);
}
