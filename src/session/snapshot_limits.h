/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disk limits of triggered snapshots. */
#ifndef VP_SESSION_SNAPSHOT_LIMITS_H
#define VP_SESSION_SNAPSHOT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

/* Bytes to leave free: 1 GiB, or a tenth of a smaller file system. */
#define VP_SNAPSHOT_FREE_DEFAULT UINT64_MAX

struct vp_snapshot_limits {
	uint64_t count;      /* snapshots */
	uint64_t bytes;      /* of all of them together */
	uint64_t free_bytes; /* that the file system has left afterwards */
};

/* Snapshots so far. */
struct vp_snapshots {
	uint64_t count, bytes, largest;
};

/* Adds the snapshot in that directory. */
void vp_snapshots_add(struct vp_snapshots *snapshots, const char *directory);
/* Why there may be no more, a sentence's part to be freed; NULL: there may. */
char *vp_snapshots_used_up(const struct vp_snapshots *snapshots,
			   const struct vp_snapshot_limits *limits) VP_MUST_CHECK;
/* The same of one more now, on the file system of `directory`: that may change. */
char *vp_snapshots_no_room(const struct vp_snapshots *snapshots,
			   const struct vp_snapshot_limits *limits,
			   const char *directory) VP_MUST_CHECK;

#endif
