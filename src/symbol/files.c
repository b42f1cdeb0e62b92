/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that have a module's symbols: its own, or one that is kept by its build-id. */
#include "symbol/names_private.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* The file at `path` if it is the one that was mapped: the build-id says so. */
static struct vp_image *read_if_same(const char *path, const char *inside,
				     const struct vp_names_module *module,
				     const struct vp_image_places *places)
{
	/* Not blocking: the path may name a pipe by now. */
	VP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return NULL;
	struct vp_image *image = vp_alloc(sizeof(*image));
	VP_AUTO_ERROR struct vp_error *error = vp_image_read(fd, inside, places, image);
	if (!error && vp_build_id_equal(&image->build_id, &module->build_id) &&
	    image->symbols.count)
		return image;
	vp_image_deinit(image);
	free(image);
	return NULL;
}

static struct vp_image *read_in_root(const struct vp_names *names,
				     const struct vp_names_module *module)
{
	struct vp_image_places places = {.root = names->root, .debug_dir = names->debug_dir};
	VP_AUTO_FREE char *path = vp_format("%s%s", names->root, module->path);

	if (names->no_files || module->path[0] != '/')
		return NULL;
	return read_if_same(path, module->path, module, &places);
}

/*
 * What perf keeps of binaries it has seen. Debugging symbols alone, as in /usr/lib/debug, would not
 * do: without the code they do not say where in the file it is.
 */
static struct vp_image *read_by_build_id(const struct vp_names *names,
					 const struct vp_names_module *module)
{
	struct vp_image_places places = {.root = "", .debug_dir = names->debug_dir};
	const char *home = getenv("HOME");
	struct vp_buffer id = {0};

	vp_build_id_put(&module->build_id, &id);
	const char *digits = vp_buffer_text(&id);
	VP_AUTO_FREE char *path =
	    vp_format("%s/.debug/.build-id/%.2s/%s/elf", home ? home : "", digits, digits + 2);
	vp_buffer_deinit(&id);
	return read_if_same(path, path, module, &places);
}

/* libdebuginfod, of elfutils, as far as it is used. */
struct debuginfod {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *build_id, int size, char **path);
	void (*end)(void *client);
};

/* Asked only of a user who named servers, and had only where the library is installed. */
static bool load_debuginfod(struct debuginfod *ret)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	void *library = servers && servers[0] ? dlopen("libdebuginfod.so.1", RTLD_NOW) : NULL;

	if (!library)
		return false;
	*(void **)&ret->begin = dlsym(library, "debuginfod_begin");
	*(void **)&ret->find = dlsym(library, "debuginfod_find_executable");
	*(void **)&ret->end = dlsym(library, "debuginfod_end");
	return ret->begin && ret->find && ret->end;
}

static struct vp_image *read_from_server(const struct vp_names *names,
					 const struct vp_names_module *module)
{
	struct vp_image_places places = {.root = "", .debug_dir = names->debug_dir};
	struct vp_image *image = NULL;
	struct debuginfod library;
	char *path = NULL;

	if (!load_debuginfod(&library))
		return NULL;
	void *client = library.begin();
	if (!client)
		return NULL;
	int fd = library.find(client, module->build_id.bytes, module->build_id.size, &path);
	if (fd >= 0) {
		close(fd);
		image = read_if_same(path, path, module, &places);
	}
	free(path);
	library.end(client);
	return image;
}

struct vp_image *vp_names_find_file(const struct vp_names *names,
				    const struct vp_names_module *module)
{
	struct vp_image *image = NULL;

	if (!module->build_id.size)
		return NULL;
	image = read_in_root(names, module);
	if (!image)
		image = read_by_build_id(names, module);
	if (!image)
		image = read_from_server(names, module);
	return image;
}
