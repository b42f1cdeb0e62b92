/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History of all address spaces of this machine: process, life time, and mappings.
 *
 * Input are events of the kernel (task_events.c, perf.c) and the contents of /proc (scan.c), in any
 * order within a short time; they are sorted by time before they take effect. Memory is bounded:
 * address spaces that ended longest ago are dropped first, and counted.
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

/* Limit for the whole tracker, without the kernel's buffers. */
#define VP_TRACKER_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define VP_TRACKER_MAX_PATH_BYTES ((size_t)16 * 1024 * 1024)

enum vp_tracker_kind {
	VP_TRACKER_EXISTING, /* the process exists; its start is unknown */
	VP_TRACKER_FORK,
	VP_TRACKER_EXEC_BEGIN, /* the old mappings are removed */
	VP_TRACKER_EXEC_DONE,  /* `root` is that of the new address space */
	VP_TRACKER_EXIT,
	VP_TRACKER_COMM,
	VP_TRACKER_MAP,
	VP_TRACKER_MAP_SEEN, /* the mapping exists; its start is unknown */
};

struct vp_tracker_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t kind;
	uint32_t tgid;
	union {
		struct {
			uint64_t root; /* physical address; 0: unknown */
			uint32_t parent;
			bool shared; /* fork that shares the parent's address space until exec */
			char comm[16];
		};
		struct {
			uint64_t start, end, pgoff;
			uint32_t image; /* number from vp_tracker_image() */
		};
	};
};

struct vp_tracker_mapping {
	uint64_t start, end, pgoff, from_ns;
	uint32_t image;
	uint32_t next; /* next mapping of the same address space; VP_TRACKER_NONE: end */
};

struct vp_tracker_space {
	uint64_t id, root, start_ns, end_ns; /* fields of the symbol map's a line */
	uint32_t tgid;
	uint32_t parent;   /* forked from that space; VP_TRACKER_NONE: from none */
	uint32_t children; /* number of spaces forked from it */
	uint32_t first_mapping, last_mapping;
	bool exec_under_way; /* its root will come with EXEC_DONE */
	char comm[16];
};

struct vp_tracker_image {
	struct vp_build_id build_id;
	char *path;
	uint32_t tgid; /* tgid of the process that mapped it last */
	bool used;     /* mark for the caller's traversal */
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
	uint64_t forgotten_paths; /* mappings dropped because the table of paths was full */
	size_t max_bytes;         /* VP_TRACKER_MAX_BYTES, except in tests */
};

void vp_tracker_init(struct vp_tracker *tracker);
void vp_tracker_deinit(struct vp_tracker *tracker);

/* Adds an event; it takes effect in vp_tracker_apply(), which sorts events by time. */
void vp_tracker_add(struct vp_tracker *tracker, const struct vp_tracker_event *event);
/* Applies all events up to `until_ns` (CLOCK_MONOTONIC). */
void vp_tracker_apply(struct vp_tracker *tracker, uint64_t until_ns);
/* The number of a mapped file, added if new; `id` may be NULL. */
uint32_t vp_tracker_image(struct vp_tracker *tracker, const struct vp_build_id *id,
			  const char *path);
/* The present address space of a process, or VP_TRACKER_NONE. */
uint32_t vp_tracker_space_of(const struct vp_tracker *tracker, uint32_t tgid);

#endif
