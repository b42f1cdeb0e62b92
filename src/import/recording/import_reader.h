/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads files of other programs in a confined process, whose output is untrusted. */
#ifndef VP_IMPORT_RECORDING_IMPORT_READER_H
#define VP_IMPORT_RECORDING_IMPORT_READER_H

#include "base/cursor.h"
#include "base/macros.h"
#include "import/common/importer.h"

struct vp_import_reader;

/* Errors: unsupported format, fork failed. `path` stays the caller's. */
struct vp_error *vp_import_reader_start(const char *path, const struct vp_import_options *options,
					struct vp_import_reader **ret) VP_MUST_CHECK;
/* The next message; valid until the next call. Errors: those of the reader, or it ended early. */
struct vp_error *vp_import_reader_next(struct vp_import_reader *reader, struct vp_import_msg *ret,
				       struct vp_slice *bytes) VP_MUST_CHECK;
void vp_import_reader_free(struct vp_import_reader *reader);

#endif
