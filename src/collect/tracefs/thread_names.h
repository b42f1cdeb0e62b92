/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread names of this host: read once from /proc, and updated by events. */
#ifndef VP_COLLECT_TRACEFS_THREAD_NAMES_H
#define VP_COLLECT_TRACEFS_THREAD_NAMES_H

#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"

struct vp_thread_names {
	struct vp_map thread_of_tid;
	VP_VEC(struct vp_task) threads; /* parallel to tids; "": unknown */
};

void vp_thread_names_deinit(struct vp_thread_names *names);
/* A vp_task record with the thread's name; `pid`, its process, may be 0 (unknown). Valid until the
 * next call. */
const struct vp_task *vp_thread_names_find(struct vp_thread_names *names, uint32_t pid,
					   uint32_t tid);
/* Sets the thread's name. */
void vp_thread_names_set(struct vp_thread_names *names, uint32_t pid, uint32_t tid,
			 struct vp_slice comm);

#endif
