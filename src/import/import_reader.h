/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of other programs, read by a confined process, whose output is untrusted. */
#ifndef VP_IMPORT_IMPORT_READER_H
#define VP_IMPORT_IMPORT_READER_H

#include "base/cursor.h"
#include "base/macros.h"
#include "import/importer.h"

struct vp_import_reader;

/* Errors: it is of no format that is known, there is no such process. `path` stays the caller's. */
struct vp_error *vp_import_reader_start(const char *path, const struct vp_import_options *options,
					struct vp_import_reader **ret) VP_MUST_CHECK;
/* The next message; valid until the next call. Errors: the reader's own, or it ended too early. */
struct vp_error *vp_import_reader_next(struct vp_import_reader *reader, struct vp_import_msg *ret,
				       struct vp_slice *bytes) VP_MUST_CHECK;
void vp_import_reader_free(struct vp_import_reader *reader);

#endif
