/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/pack_cache.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"

enum { MAX_BYTES = 256 << 10, MAX_PACKS = 1000 };

char *vp_pack_cache_folder(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && cache[0] == '/')
		return vp_format("%s/vperf/packs", cache);
	return vp_format("%s/.cache/vperf/packs", home && home[0] == '/' ? home : "/root");
}

void vp_pack_cache_load(const char *folder, vp_pack_texts *texts)
{
	DIR *directory = opendir(folder);

	for (struct dirent *entry;
	     directory && texts->count < MAX_PACKS && (entry = readdir(directory));) {
		const char *dot = strrchr(entry->d_name, '.');
		if (!dot || strcmp(dot, ".pack") != 0)
			continue;
		VP_AUTO_FREE char *path = vp_format("%s/%s", folder, entry->d_name);
		struct vp_buffer text = {0};
		/* Unreadable packs are made again. */
		VP_AUTO_ERROR struct vp_error *error = vp_file_read(path, MAX_BYTES, &text);
		if (error)
			vp_buffer_deinit(&text);
		else
			vp_vec_push(texts, text);
	}
	if (directory)
		closedir(directory);
}

void vp_pack_texts_deinit(vp_pack_texts *texts)
{
	vp_vec_each (texts, text)
		vp_buffer_deinit(text);
	vp_vec_deinit(texts);
}

/* Creates the folder and its parents. */
static bool make_folders(const char *folder)
{
	VP_AUTO_FREE char *path = vp_strdup(folder);

	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755) && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return !mkdir(path, 0755) || errno == EEXIST;
}

struct vp_error *vp_pack_cache_make(const char *folder)
{
	return make_folders(folder) ? NULL : vp_error_errno(errno, "cannot create '%s'", folder);
}

struct vp_error *vp_pack_cache_store(const char *folder, const struct vp_build_id *build_id,
				     const char *text)
{
	struct vp_buffer path = {0};
	size_t size = strlen(text);

	if (!build_id->size || size > MAX_BYTES)
		return vp_error_new("malformed kernel pack: not cached");
	VP_TRY(vp_pack_cache_make(folder));
	vp_buffer_printf(&path, "%s/", folder);
	vp_build_id_put(build_id, &path);
	vp_buffer_string(&path, ".pack");
	struct vp_error *error = vp_file_publish(vp_buffer_text(&path), text, size);
	vp_buffer_deinit(&path);
	return error;
}
