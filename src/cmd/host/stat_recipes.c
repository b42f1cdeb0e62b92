/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the recipes supplied with vperf. */
#include <dirent.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/host/cmd_stat.h"

#define SUFFIX ".recipe"
enum { LONGEST_PATH = 4096 };

/* The recipe directory of this build tree, if vperf is not installed; to be freed. */
static char *folder_of_build(void)
{
	char path[LONGEST_PATH];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[size > 0 ? size : 0] = 0;
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = 0;
	return vp_format("%s/../recipes", path);
}

/* The recipe directory, to be freed: from the environment, or the first that exists. */
static char *stat_recipes_find_folder(void)
{
	const char *wanted = getenv("VPERF_RECIPES");

	if (wanted || !access(VPERF_RECIPES, R_OK))
		return vp_strdup(wanted ? wanted : VPERF_RECIPES);
	return folder_of_build();
}

static int is_recipe(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name), suffix = sizeof(SUFFIX) - 1;

	return size > suffix && !strcmp(entry->d_name + size - suffix, SUFFIX);
}

static struct vp_error *unknown_recipe(const char *name, const char *folder)
{
	struct vp_buffer names = {0};
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_recipe, alphasort);

	for (int i = 0; i < n; i++) {
		vp_buffer_printf(&names, "%s%.*s", i ? ", " : "",
				 (int)(strlen(entries[i]->d_name) - sizeof(SUFFIX) + 1),
				 entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	struct vp_error *error =
	    n > 0 ? vp_error_new("no recipe '%s': expected a file, or one of %s", name,
				 vp_buffer_text(&names))
		  : vp_error_new("no recipe '%s': expected a file ('%s' has no recipes)", name,
				 folder);
	vp_buffer_deinit(&names);
	return error;
}

struct vp_error *vp_stat_recipe_path(const char *name, char **ret)
{
	if (strchr(name, '/') || !access(name, R_OK)) {
		*ret = vp_strdup(name);
		return NULL;
	}
	VP_AUTO_FREE char *folder = stat_recipes_find_folder();
	VP_AUTO_FREE char *path = vp_format("%s/%s" SUFFIX, folder, name);
	if (access(path, R_OK))
		return unknown_recipe(name, folder);
	*ret = VP_TAKE(path);
	return NULL;
}
