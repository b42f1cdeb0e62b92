/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every address space this machine has had: whose it was, from when to when, and what was mapped.
 *
 * Fed with what the kernel reports (task_events.c, perf.c) and what /proc shows (scan.c), in any
 * order within a short time; events are put in order of time before they count. Bounded in memory:
 * address spaces that ended longest ago are forgotten first, and counted.
 */
#ifndef VP_GUEST_TRACKER_H
#define VP_GUEST_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/format.h"

#define VP_TRACKER_NONE UINT32_MAX

/* Limit for all of it together, without the kernel's buffers. */
#define VP_TRACKER_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define VP_TRACKER_MAX_PATH_BYTES ((size_t)16 * 1024 * 1024)

enum vp_tracker_kind {
	VP_TRACKER_EXISTING, /* the process is there; since when is not known */
	VP_TRACKER_FORK,
	VP_TRACKER_EXEC_BEGIN, /* the old mappings are gone */
	VP_TRACKER_EXEC_DONE,  /* root is that of the new address space */
	VP_TRACKER_EXIT,
	VP_TRACKER_COMM,
	VP_TRACKER_MAP,
	VP_TRACKER_MAP_SEEN, /* the mapping is there; since when is not known */
};

struct vp_tracker_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t kind;
	uint32_t tgid;
	union {
		struct {
			uint64_t root; /* physical; 0: unknown */
			uint32_t parent;
			bool shared; /* fork that shares the parent's address space until exec */
			char comm[16];
		};
		struct {
			uint64_t start, end, pgoff;
			uint32_t image; /* of vp_tracker_image() */
		};
	};
};

struct vp_tracker_mapping {
	uint64_t start, end, pgoff, from_ns;
	uint32_t image;
	uint32_t next; /* of the same address space; VP_TRACKER_NONE: the last */
};

struct vp_tracker_space {
	uint64_t id, root, start_ns, end_ns; /* as in an a line */
	uint32_t tgid;
	uint32_t parent;   /* space it was forked from, or VP_TRACKER_NONE */
	uint32_t children; /* spaces forked from it */
	uint32_t first_mapping, last_mapping;
	bool exec_under_way; /* its root comes with EXEC_DONE */
	char comm[16];
};

struct vp_tracker_image {
	struct vp_build_id build_id;
	char *path;
	uint32_t tgid; /* of a process that mapped it, the latest */
	bool used;     /* for whoever walks */
};

struct vp_tracker {
	VP_VEC(struct vp_tracker_event) pending;
	VP_VEC(struct vp_tracker_space) spaces;
	VP_VEC(struct vp_tracker_mapping) mappings;
	struct vp_map space_of_tgid; /* value: space, or VP_TRACKER_NONE */
	struct vp_intern image_ids;
	VP_VEC(struct vp_tracker_image) images;
	size_t path_bytes;
	uint64_t next_id;
	uint64_t forgotten;       /* address spaces dropped for memory */
	uint64_t forgotten_paths; /* mappings whose path found no room */
	size_t max_bytes;         /* VP_TRACKER_MAX_BYTES, except in tests */
};

void vp_tracker_init(struct vp_tracker *tracker);
void vp_tracker_deinit(struct vp_tracker *tracker);

/* Adds an event; it has no effect before vp_tracker_apply(), which sorts events by time. */
void vp_tracker_add(struct vp_tracker *tracker, const struct vp_tracker_event *event);
/* Applies all events up to `until_ns` (CLOCK_MONOTONIC). */
void vp_tracker_apply(struct vp_tracker *tracker, uint64_t until_ns);
/* The number of a mapped file; `id` may be NULL. */
uint32_t vp_tracker_image(struct vp_tracker *tracker, const struct vp_build_id *id,
			  const char *path);
/* The living address space of a process, or VP_TRACKER_NONE. */
uint32_t vp_tracker_space_of(const struct vp_tracker *tracker, uint32_t tgid);

#endif
