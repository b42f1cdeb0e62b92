/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/debuginfod.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"

struct library {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *build_id, int size, char **path);
	void (*end)(void *client);
};

static const char *const questions[] = {[VP_DEBUGINFOD_EXECUTABLE] = "debuginfod_find_executable",
					[VP_DEBUGINFOD_DEBUGINFO] = "debuginfod_find_debuginfo"};
static const char *const cached_as[] = {
    [VP_DEBUGINFOD_EXECUTABLE] = "executable", [VP_DEBUGINFOD_DEBUGINFO] = "debuginfo"};

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

char *vp_debuginfod_cache(void)
{
	const char *folder = variable("DEBUGINFOD_CACHE_PATH"), *home = variable("HOME");
	const char *caches = variable("XDG_CACHE_HOME");
	VP_AUTO_FREE char *old = home ? vp_format("%s/.debuginfod_client_cache", home) : NULL;

	if (folder)
		return vp_strdup(folder);
	if (old && !access(old, F_OK))
		return vp_strdup(old);
	if (caches)
		return vp_format("%s/debuginfod_client", caches);
	return home ? vp_format("%s/.cache/debuginfod_client", home) : NULL;
}

char *vp_debuginfod_cached(const char *cache, const struct vp_build_id *id,
			   enum vp_debuginfod_kind kind)
{
	struct vp_buffer digits = {0};

	vp_build_id_put(id, &digits);
	char *path = vp_format("%s/%s/%s", cache, vp_buffer_text(&digits), cached_as[kind]);
	vp_buffer_deinit(&digits);
	return path;
}

bool vp_debuginfod_has_servers(void)
{
	return variable("DEBUGINFOD_URLS");
}

static bool load(const char *question, struct library *ret)
{
	void *library = vp_debuginfod_has_servers() ? dlopen("libdebuginfod.so.1", RTLD_NOW) : NULL;

	if (!library)
		return false;
	*(void **)&ret->begin = dlsym(library, "debuginfod_begin");
	*(void **)&ret->find = dlsym(library, question);
	*(void **)&ret->end = dlsym(library, "debuginfod_end");
	return ret->begin && ret->find && ret->end;
}

char *vp_debuginfod_fetch(const struct vp_build_id *id, enum vp_debuginfod_kind kind)
{
	struct library library;
	char *path = NULL;

	if (!id->size || !load(questions[kind], &library))
		return NULL;
	void *client = library.begin();
	if (!client)
		return NULL;
	int fd = library.find(client, id->bytes, id->size, &path);
	if (fd >= 0)
		close(fd);
	library.end(client);
	return fd >= 0 ? path : NULL;
}

/* The client leaves an empty file where no server had one. */
static bool has_content(const char *path)
{
	struct stat status;

	return !stat(path, &status) && status.st_size > 0;
}

char *vp_debuginfod_find(const struct vp_build_id *id, enum vp_debuginfod_kind kind)
{
	VP_AUTO_FREE char *cache = vp_debuginfod_cache();
	char *path = cache ? vp_debuginfod_cached(cache, id, kind) : NULL;

	if (path && has_content(path))
		return path;
	free(path);
	return vp_debuginfod_fetch(id, kind);
}
