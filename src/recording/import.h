/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings of what other programs traced. */
#ifndef VP_RECORDING_IMPORT_H
#define VP_RECORDING_IMPORT_H

#include "base/error.h"
#include "recording/notices.h"

/*
 * trace-cmd's files, the host's first and then those of its guests, become a recording in
 * `directory`, which is there and empty. `notes` gets what is missing or assumed. Errors: a file
 * cannot be read, a guest is none of the host's, the recording cannot be written.
 */
struct vp_error *vp_import_tracedat(const char *const *paths, size_t count, const char *directory,
				    vp_notices *notes) VP_MUST_CHECK;

#endif
