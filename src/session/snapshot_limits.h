/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disk limits of triggered snapshots. */
#ifndef VP_SESSION_SNAPSHOT_LIMITS_H
#define VP_SESSION_SNAPSHOT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

/* Leave 1 GiB free, or a tenth of a smaller file system. */
#define VP_SNAPSHOT_FREE_DEFAULT UINT64_MAX

struct vp_snapshot_limits {
	uint64_t count;      /* number of snapshots */
	uint64_t bytes;      /* total size of all snapshots */
	uint64_t free_bytes; /* free bytes of the file system after a snapshot */
};

/* Totals of the snapshots so far. */
struct vp_snapshots {
	uint64_t count, bytes, largest;
};

/* Adds the snapshot in that directory. */
void vp_snapshots_add(struct vp_snapshots *snapshots, const char *directory);
/* The reason why no more are allowed, part of a sentence, to be freed; NULL: allowed. */
char *vp_snapshots_used_up(const struct vp_snapshots *snapshots,
			   const struct vp_snapshot_limits *limits) VP_MUST_CHECK;
/* The same for one more snapshot now, by the free space of the file system of `directory`. */
char *vp_snapshots_no_room(const struct vp_snapshots *snapshots,
			   const struct vp_snapshot_limits *limits,
			   const char *directory) VP_MUST_CHECK;

#endif
