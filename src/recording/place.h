/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory that a recording is written to: one recorder's at a time. */
#ifndef VP_RECORDING_PLACE_H
#define VP_RECORDING_PLACE_H

#include "base/error.h"

/*
 * Makes the directory `path`, empty, and locks it for as long as *lock is open. An older recording
 * of that name becomes PATH.old, as with perf, and an older one of that name goes. Anything else,
 * a recording that is being written, and a PATH.old with files that vperf does not write, is not
 * ours to move or remove and an error.
 */
struct vp_error *vp_recording_place(const char *path, int *lock) VP_MUST_CHECK;

#endif
