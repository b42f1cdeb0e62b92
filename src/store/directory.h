/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a new recording. It is created next to its final name and renamed when the
 * recording is known to be good; until then an older recording of that name stays unchanged. */
#ifndef VP_STORE_DIRECTORY_H
#define VP_STORE_DIRECTORY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_recording_dir {
	char *path; /* the final name */
	char *now;  /* present name of the directory; the string is modified in place when the name
		       changes */
	int lock;   /* lock on the directory, while it is open */
	int older;  /* lock on the recording that it will replace; -1: none */
	bool is_published;
};
#define VP_NO_RECORDING_DIR ((struct vp_recording_dir){.lock = -1, .older = -1})

/*
 * Creates an empty, locked directory next to `path` (PATH.HEX.new). Errors: another recorder uses
 * `path`; it is not a recording; PATH.old has files not written by vperf; no permission. `path` and
 * PATH.old are not changed.
 */
struct vp_error *vp_recording_dir_claim(const char *path,
					struct vp_recording_dir *ret) VP_MUST_CHECK;
/* Renames the directory to its final name. An older recording of that name becomes PATH.old, as
 * with perf, and replaces a PATH.old. */
struct vp_error *vp_recording_dir_publish(struct vp_recording_dir *dir) VP_MUST_CHECK;
/* Frees `dir`; removes the directory unless it was published. */
void vp_recording_dir_leave(struct vp_recording_dir *dir);

#endif
