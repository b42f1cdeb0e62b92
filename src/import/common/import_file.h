/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to imported files. */
#ifndef VP_IMPORT_COMMON_IMPORT_FILE_H
#define VP_IMPORT_COMMON_IMPORT_FILE_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"

/* Whether it is a regular file that starts with these bytes, at most 16. */
bool vp_import_file_begins(const char *path, const char *magic, size_t size);
/* Maps the whole file permanently. Errors: unreadable, empty, or too large for a confined
 * process. */
struct vp_error *vp_import_file_map(const char *path, struct vp_slice *ret) VP_MUST_CHECK;

/* The same inside the confined process, for a further file. Empty: not available. */
struct vp_slice vp_import_file_map_confined(const char *path);

#endif
