/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are imported. */
#ifndef VP_IMPORT_IMPORT_FILE_H
#define VP_IMPORT_IMPORT_FILE_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"

/* Whether it is a regular file that begins with these bytes, at most 16. */
bool vp_import_file_begins(const char *path, const char *magic, size_t size);
/* The whole file in memory, for good. Errors: it cannot be read, is empty or longer than a confined
 * process has room for. */
struct vp_error *vp_import_file_map(const char *path, struct vp_slice *ret) VP_MUST_CHECK;

/* The same within the confined process, for a further file. Empty: not available. */
struct vp_slice vp_import_file_beside(const char *path);

#endif
