/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/host_images.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/error.h"
#include "host/confined_text.h"
#include "maps/format.h"
#include "maps/writer.h"

struct reading {
	struct vp_mapped *images;
	size_t count;
	bool with_symbols;
	struct shared *shared; /* shared with the confined process */
};

struct shared {
	size_t unread;
	struct vp_build_id build_ids[];
};

/* In the confined process. */
static void host_images_write_images(struct vp_maps_writer *writer, void *context)
{
	struct reading *reading = context;

	for (size_t i = 0; i < reading->count; i++) {
		struct vp_mapped *image = &reading->images[i];
		if (!vp_mapped_is_file(image->path))
			continue;
		reading->shared->unread += !vp_mapped_write(writer, image, reading->with_symbols);
		reading->shared->build_ids[i] = image->build_id;
	}
}

/* The confined process is not trusted: checks what could do harm here. */
static void take_build_ids(const struct reading *reading)
{
	for (size_t i = 0; i < reading->count; i++)
		if (reading->shared->build_ids[i].size <= VP_BUILD_ID_MAX)
			reading->images[i].build_id = reading->shared->build_ids[i];
}

struct vp_error *vp_host_images_write(struct vp_maps_writer *writer, struct vp_mapped *images,
				      size_t count, bool with_symbols,
				      const struct vp_meanwhile *meanwhile, size_t *unread)
{
	size_t size = sizeof(struct shared) + count * sizeof(struct vp_build_id);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct reading reading = {
	    .images = images, .count = count, .with_symbols = with_symbols, .shared = shared};
	const struct vp_confined_text text = {.write = host_images_write_images,
					      .context = &reading,
					      .keywords = "is",
					      .meanwhile = meanwhile};

	*unread = 0;
	if (shared == MAP_FAILED)
		return vp_error_errno(errno, "cannot allocate memory for their symbols");
	struct vp_error *error = vp_confined_text_write(writer, &text);
	take_build_ids(&reading);
	*unread = reading.shared->unread < count ? reading.shared->unread : count;
	munmap(shared, size);
	return error;
}
