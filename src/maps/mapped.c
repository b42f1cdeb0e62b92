/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/mapped.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/image.h"
#include "maps/proc.h"

static void mapped_write_image(struct vp_maps_writer *writer, const struct vp_image *image,
			       const char *path)
{
	vp_maps_write_image(writer, &image->build_id, path);
	vp_vec_each (&image->symbols, symbol)
		vp_maps_write_symbol(writer, symbol->offset, symbol->size,
				     vp_image_symbol_name(image, symbol));
}

/* Writes `file` if it is the image that was mapped; stores its build-id. */
static bool try_file(struct vp_maps_writer *writer, struct vp_mapped *mapped, const char *file,
		     const char *root, bool with_symbols)
{
	struct vp_image_locations locations = {.root = root};
	struct vp_image image = {0};
	struct vp_error *error;
	VP_AUTO_CLOSE int fd = vp_file_open_regular(file, VP_IMAGE_MAX_BYTES, 0);

	if (fd < 0)
		return false;
	if (with_symbols)
		error = vp_image_read(fd, mapped->path, &locations, &image);
	else
		error = vp_image_read_build_id(fd, mapped->path, &image.build_id);
	bool ours = !error && (!mapped->build_id.size ||
			       vp_build_id_equal(&mapped->build_id, &image.build_id));
	if (ours) {
		mapped->build_id = image.build_id;
		mapped_write_image(writer, &image, mapped->path);
	}
	vp_error_free(error);
	vp_image_deinit(&image);
	return ours;
}

bool vp_mapped_is_file(const char *path)
{
	return path[0] == '/' && path[1] != '/';
}

bool vp_mapped_write(struct vp_maps_writer *writer, struct vp_mapped *mapped, bool with_symbols)
{
	if (mapped->pid) {
		VP_AUTO_FREE char *root = vp_format("/proc/%u/root", mapped->pid);
		VP_AUTO_FREE char *itself = vp_format("/proc/%u/map_files/%" PRIx64 "-%" PRIx64,
						      mapped->pid, mapped->start, mapped->end);
		VP_AUTO_FREE char *inside = vp_format("%s%s", root, mapped->path);
		if (try_file(writer, mapped, itself, root, with_symbols) ||
		    try_file(writer, mapped, inside, root, with_symbols))
			return true;
	}
	return try_file(writer, mapped, mapped->path, "", with_symbols);
}

static bool keep_vdso(void *context, const struct vp_proc_mapping *mapping)
{
	bool found = !strcmp(mapping->path, "[vdso]");

	if (found)
		*(struct vp_proc_mapping *)context = *mapping;
	return !found;
}

void vp_mapped_write_vdso(struct vp_maps_writer *writer)
{
	struct vp_proc_mapping vdso = {0};
	struct vp_image image = {0};
	size_t bytes = SIZE_MAX;

	vp_proc_mappings((uint32_t)getpid(), &bytes, keep_vdso, &vdso);
	if (!vdso.end)
		return;
	struct vp_error *error = vp_image_read_memory((const void *)(uintptr_t)vdso.start,
						      vdso.end - vdso.start, "[vdso]", &image);
	if (!error)
		mapped_write_image(writer, &image, "[vdso]");
	vp_error_free(error);
	vp_image_deinit(&image);
}
