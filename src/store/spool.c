/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/vec.h"
#include "store/history.h"

#define SPOOL_UNFINISHED ".new"

typedef VP_VEC(char *) spool_names;

static bool spool_is_unfinished(const char *name)
{
	size_t size = strlen(name), end = sizeof(SPOOL_UNFINISHED) - 1;

	return size > end && !strcmp(name + size - end, SPOOL_UNFINISHED);
}

/* Hard-links all files below `from` to the same paths below `to`. */
static int spool_link_all(const char *from, const char *to)
{
	VP_AUTO_FREE char *root = vp_strdup(from);
	char *const paths[] = {root, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int failed = tree ? 0 : errno;

	for (FTSENT *entry; !failed && (entry = fts_read(tree));) {
		VP_AUTO_FREE char *target = vp_format("%s%s", to, entry->fts_path + strlen(from));
		if (entry->fts_info == FTS_D)
			failed = mkdir(target, 0700) ? errno : 0;
		else if (entry->fts_info == FTS_F)
			failed = link(entry->fts_path, target) ? errno : 0;
		else if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR ||
			 entry->fts_info == FTS_NS)
			failed = entry->fts_errno;
	}
	if (tree)
		fts_close(tree);
	return failed;
}

static int spool_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the entries; names start with the time, so the oldest comes first. */
static void spool_list(const char *spool, spool_names *ret)
{
	DIR *entries = opendir(spool);

	for (struct dirent *entry; entries && (entry = readdir(entries));)
		if (entry->d_name[0] != '.' && !spool_is_unfinished(entry->d_name))
			vp_vec_push(ret, vp_strdup(entry->d_name));
	if (entries)
		closedir(entries);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), spool_by_name);
}

/* Renames the entry before removing it, so that other programs do not see a partial one. */
static void spool_remove(const char *spool, const char *name)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", spool, name);
	VP_AUTO_FREE char *aside = vp_format("%s" SPOOL_UNFINISHED, path);

	if (!rename(path, aside))
		vp_file_remove_all(aside);
}

static uint64_t spool_trim(const char *spool, uint64_t most)
{
	spool_names names = {0};
	uint64_t dropped = 0, bytes = vp_disk_bytes(spool);

	spool_list(spool, &names);
	for (size_t i = 0; i < names.count && bytes > most; i++) {
		spool_remove(spool, names.at[i]);
		bytes = vp_disk_bytes(spool);
		dropped++;
	}
	vp_vec_each (&names, name)
		free(*name);
	vp_vec_deinit(&names);
	return dropped;
}

struct vp_error *vp_spool_add(const char *path, const char *name, uint64_t most, uint64_t *dropped)
{
	VP_AUTO_FREE char *spool = vp_format("%s/" VP_HISTORY_SPOOL, path);
	VP_AUTO_FREE char *from = vp_format("%s/%s", path, name);
	VP_AUTO_FREE char *unfinished = vp_format("%s/%s" SPOOL_UNFINISHED, spool, name);
	VP_AUTO_FREE char *to = vp_format("%s/%s", spool, name);

	*dropped = 0;
	if (mkdir(spool, 0700) && errno != EEXIST)
		return vp_error_errno(errno, "cannot make '%s'", spool);
	vp_file_remove_all(unfinished);
	int failed = spool_link_all(from, unfinished);
	if (!failed && rename(unfinished, to))
		failed = errno;
	if (failed) {
		vp_file_remove_all(unfinished);
		return vp_error_errno(failed, "cannot put '%s' into the spool", from);
	}
	*dropped = spool_trim(spool, most);
	return NULL;
}
