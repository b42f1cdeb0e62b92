/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files with a module's symbols: its own file, or one found by build-id. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "maps/debuginfod.h"
#include "maps/format.h"
#include "maps/image.h"
#include "symbol/names_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static struct vp_image *image_drop(struct vp_image *image)
{
	vp_image_deinit(image);
	free(image);
	return NULL;
}

/* The file at `path` if it has the build-id of the mapped file. */
static struct vp_image *read_if_same(const char *path, const char *inside,
				     const struct vp_names_module *module,
				     const struct vp_image_locations *locations)
{
	VP_AUTO_CLOSE int fd = vp_file_open_regular(path, VP_IMAGE_MAX_BYTES, 0);

	if (fd < 0)
		return NULL;
	struct vp_image *image = vp_alloc(sizeof(*image));
	VP_AUTO_ERROR struct vp_error *error = vp_image_read(fd, inside, locations, image);
	if (!error && vp_build_id_equal(&image->build_id, &module->build_id))
		return image;
	return image_drop(image);
}

/* Returns a possible path of a module's file on this machine; NULL: none. */
typedef char *(*locator)(const struct vp_names *names, const struct vp_names_module *module);

static char *find_in_root(const struct vp_names *names, const struct vp_names_module *module)
{
	bool may = !names->no_files && module->path[0] == '/';

	return may ? vp_format("%s%s", names->root, module->path) : NULL;
}

/* perf's build-id cache. */
static char *find_by_build_id(const struct vp_names *names, const struct vp_names_module *module)
{
	const char *home = getenv("HOME");
	struct vp_buffer id = {0};

	vp_build_id_put(&module->build_id, &id);
	const char *digits = vp_buffer_text(&id);
	char *path =
	    vp_format("%s/.debug/.build-id/%.2s/%s/elf", home ? home : "", digits, digits + 2);
	vp_buffer_deinit(&id);
	return path;
}

static char *find_download(const struct vp_names *names, const struct vp_names_module *module)
{
	(void)names;
	return vp_debuginfod_find(&module->build_id, VP_DEBUGINFOD_EXECUTABLE);
}

/* Adds the full symbol table from a debug file if the module's file was stripped. A debug file
 * alone is insufficient: without the code, file offsets are unknown. */
static void add_debug_file(struct vp_image **image, const char *path, const char *inside,
			   const struct vp_names_module *module,
			   struct vp_image_locations *locations)
{
	VP_AUTO_FREE char *debug = vp_debuginfod_find(&module->build_id, VP_DEBUGINFOD_DEBUGINFO);

	locations->debug_file = debug;
	struct vp_image *better = debug ? read_if_same(path, inside, module, locations) : NULL;
	if (!better)
		return;
	image_drop(*image);
	*image = better;
}

struct vp_image *vp_names_find_file(const struct vp_names *names, struct vp_names_module *module)
{
	static const locator locators[] = {find_in_root, find_by_build_id, find_download};
	struct vp_image *image = NULL;

	if (names->map_only)
		return NULL;
	for (size_t i = 0; module->build_id.size && !image && i < VP_ARRAY_SIZE(locators); i++) {
		bool in_root = locators[i] == find_in_root;
		struct vp_image_locations locations = {.root = in_root ? names->root : "",
						       .debug_dir = names->debug_dir};
		VP_AUTO_FREE char *path = locators[i](names, module);
		const char *inside = in_root ? module->path : path;
		image = path ? read_if_same(path, inside, module, &locations) : NULL;
		if (image && !image->has_symtab)
			add_debug_file(&image, path, inside, module, &locations);
		if (image && !image->symbols.count)
			image = image_drop(image);
		if (image) {
			module->used = path;
			path = NULL;
		}
	}
	return image;
}
