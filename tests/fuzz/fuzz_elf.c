/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ELF files from anywhere, from a file and from memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "maps/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct vp_image_locations places = {.root = "/nonexistent"};
	struct vp_image image;
	struct vp_build_id id;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || vp_fd_write_all(fd, bytes, size))
		abort();
	vp_error_free(vp_image_read(fd, "/bin/x", &places, &image));
	for (size_t i = 0; i < image.symbols.count; i++)
		if (image.symbols.at[i].name >= image.names.size ||
		    !memchr(vp_image_symbol_name(&image, &image.symbols.at[i]), 0,
			    image.names.size - image.symbols.at[i].name))
			abort();
	vp_image_deinit(&image);
	vp_error_free(vp_image_read_memory(bytes, size, "memory", &image));
	vp_image_deinit(&image);
	vp_error_free(vp_image_read_build_id(fd, "/bin/x", &id));
	close(fd);
	return 0;
}
