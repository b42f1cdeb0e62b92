/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/snapshot_limits.h"

#include <fts.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/alloc.h"

#define GIB (1ULL << 30)

/* Total size of the files in the directory. */
static uint64_t disk_bytes(const char *directory)
{
	VP_AUTO_FREE char *path = vp_strdup(directory);
	char *const paths[] = {path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	uint64_t bytes = 0;

	for (FTSENT *entry; tree && (entry = fts_read(tree));)
		if (entry->fts_info == FTS_F)
			bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
	if (tree)
		fts_close(tree);
	return bytes;
}

void vp_snapshots_add(struct vp_snapshots *snapshots, const char *directory)
{
	uint64_t bytes = disk_bytes(directory);

	snapshots->count++;
	snapshots->bytes += bytes;
	snapshots->largest = bytes > snapshots->largest ? bytes : snapshots->largest;
}

char *vp_snapshots_used_up(const struct vp_snapshots *snapshots,
			   const struct vp_snapshot_limits *limits)
{
	if (snapshots->count >= limits->count)
		return vp_format("%" PRIu64 " were taken (--snapshot-max)", snapshots->count);
	if (snapshots->count && snapshots->bytes + snapshots->largest > limits->bytes)
		return vp_format("%" PRIu64 " were taken with %" PRIu64
				 " MiB in all, and another one could exceed --snapshot-size",
				 snapshots->count, snapshots->bytes >> 20);
	return NULL;
}

static uint64_t bytes_to_leave(const struct vp_snapshot_limits *limits, const struct statvfs *disk)
{
	uint64_t tenth = disk->f_blocks * disk->f_frsize / 10;

	if (limits->free_bytes != VP_SNAPSHOT_FREE_DEFAULT)
		return limits->free_bytes;
	return tenth < GIB ? tenth : GIB;
}

char *vp_snapshots_no_room(const struct vp_snapshots *snapshots,
			   const struct vp_snapshot_limits *limits, const char *directory)
{
	struct statvfs disk;

	if (statvfs(directory, &disk))
		return NULL; /* the write will report the error */
	uint64_t left = disk.f_bavail * disk.f_frsize, leave = bytes_to_leave(limits, &disk);
	return left < snapshots->largest || left - snapshots->largest < leave
		   ? vp_format("the disk has %" PRIu64 " MiB free, and %" PRIu64
			       " MiB must stay free (--snapshot-free)",
			       left >> 20, leave >> 20)
		   : NULL;
}
