/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a new recording. It is written next to its final name and gets that name only
 * when it is known to be good: until then an older recording of that name is unchanged. */
#ifndef VP_STORE_DIRECTORY_H
#define VP_STORE_DIRECTORY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_recording_dir {
	char *path; /* the final name */
	char *now;  /* the directory's name now; its memory stays the same when the name changes */
	int lock;   /* on the directory, as long as it is open */
	int older;  /* on the recording that it will replace, or -1 */
	bool is_published;
};
#define VP_NO_RECORDING_DIR ((struct vp_recording_dir){.lock = -1, .older = -1})

/* Creates an empty, locked directory next to `path` (PATH.HEX.new). Errors: `path` is in use by
 * another recorder, or is not a recording; PATH.old has files that vperf does not write; nothing
 * can be created there. `path` and PATH.old are not changed. */
struct vp_error *vp_recording_dir_claim(const char *path,
					struct vp_recording_dir *ret) VP_MUST_CHECK;
/*
 * Gives the directory its final name. An older recording of that name becomes PATH.old, as with
 * perf, and an older one of that name is removed.
 */
struct vp_error *vp_recording_dir_publish(struct vp_recording_dir *dir) VP_MUST_CHECK;
/* Frees `dir`, and removes the directory if it was not published. */
void vp_recording_dir_leave(struct vp_recording_dir *dir);

#endif
