/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/cgroups.h"

#include <dirent.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"

enum { MAX_DEPTH = 32, MAX_BYTES = 16 << 20 };

void vp_cgroups_deinit(vp_cgroups *cgroups)
{
	vp_vec_each (cgroups, cgroup)
		free(cgroup->path);
	vp_vec_deinit(cgroups);
}

static struct vp_cgroup *cgroups_find(const vp_cgroups *cgroups, uint64_t id)
{
	vp_vec_each (cgroups, cgroup)
		if (cgroup->id == id)
			return cgroup;
	return NULL;
}

void vp_cgroups_note(vp_cgroups *cgroups, uint64_t id)
{
	if (id && !cgroups_find(cgroups, id))
		vp_vec_push(cgroups, ((struct vp_cgroup){.id = id}));
}

/* The id of a cgroup is the inode number of its directory. */
static void cgroups_walk(const char *root, const char *below, unsigned depth, vp_cgroups *cgroups)
{
	VP_AUTO_FREE char *path = vp_format("%s%s", root, below);
	DIR *directory = opendir(path);
	struct stat status;

	if (!directory)
		return;
	struct vp_cgroup *known =
	    fstat(dirfd(directory), &status) ? NULL : cgroups_find(cgroups, status.st_ino);
	if (known && !known->path)
		known->path = vp_strdup(below[0] ? below : "/");
	for (struct dirent *entry; depth < MAX_DEPTH && (entry = readdir(directory));) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		VP_AUTO_FREE char *next = vp_format("%s/%s", below, entry->d_name);
		cgroups_walk(root, next, depth + 1, cgroups);
	}
	closedir(directory);
}

void vp_cgroups_find(vp_cgroups *cgroups)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs status;

	for (size_t i = 0; cgroups->count && i < VP_ARRAY_SIZE(roots); i++)
		if (!statfs(roots[i], &status) && status.f_type == CGROUP2_SUPER_MAGIC)
			cgroups_walk(roots[i], "", 0, cgroups);
}

const char *vp_cgroups_path(const vp_cgroups *cgroups, uint64_t id)
{
	const struct vp_cgroup *found = id ? cgroups_find(cgroups, id) : NULL;

	return found ? found->path : NULL;
}

struct vp_error *vp_cgroups_write(const char *path, const vp_cgroups *cgroups)
{
	VP_AUTO_FREE char *file = vp_format("%s/cgroups", path);
	struct vp_buffer text = {0};

	vp_vec_each (cgroups, cgroup)
		if (cgroup->path && !strchr(cgroup->path, '\n'))
			vp_buffer_printf(&text, "%" PRIu64 " %s\n", cgroup->id, cgroup->path);
	struct vp_error *error = vp_file_publish(file, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

struct vp_error *vp_cgroups_read(const char *path, vp_cgroups *ret)
{
	VP_AUTO_FREE char *file = vp_format("%s/cgroups", path);
	struct vp_buffer text = {0};
	struct vp_slice line;

	*ret = (vp_cgroups){0};
	if (access(file, F_OK))
		return NULL;
	struct vp_error *error = vp_file_read(file, MAX_BYTES, &text);
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	while (!error && vp_cursor_line(&lines, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		uint64_t id = vp_cursor_decimal(&words);
		struct vp_slice rest = vp_cursor_rest(&words);
		if (vp_cursor_ok(&words) && rest.size)
			vp_vec_push(ret,
				    ((struct vp_cgroup){id, vp_strndup(rest.bytes, rest.size)}));
		else
			error = vp_error_new("'%s', offset %zu: expected ID PATH", file,
					     (size_t)(line.bytes - lines.start));
	}
	vp_buffer_deinit(&text);
	if (error)
		vp_cgroups_deinit(ret);
	return error;
}
