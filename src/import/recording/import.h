/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Imports recordings of other programs. */
#ifndef VP_IMPORT_RECORDING_IMPORT_H
#define VP_IMPORT_RECORDING_IMPORT_H

#include "base/error.h"
#include "base/macros.h"
#include "base/notices.h"
#include "import/common/import_channel.h"

/*
 * Imports `operands` (import_operand.h), the host's first and then those of its guests, in any
 * supported format (import/common/importer.h), into a recording in the existing empty `directory`.
 * `notes` receives missing and assumed facts. Errors: a file cannot be read, the VM of a guest is
 * unknown, the recording cannot be written.
 */
struct vp_error *vp_import(const char *const *operands, size_t count,
			   const struct vp_import_options *options, const char *directory,
			   vp_notices *notes) VP_MUST_CHECK;

#endif
