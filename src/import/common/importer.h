/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Importer of a file format. It runs in a confined process (import_reader.h) and sends messages to
 * the other process, which checks them. */
#ifndef VP_IMPORT_COMMON_IMPORTER_H
#define VP_IMPORT_COMMON_IMPORTER_H

#include <stdbool.h>

#include "base/error.h"
#include "import/common/import_channel.h"

struct vp_importer {
	const char *name, *summary;
	bool has_samples;                  /* samples of a chosen event */
	bool (*detects)(const char *path); /* whether the file looks like this format */
	/* Opens the file and everything needed from this machine; the state is for send() and lives
	 * as long as the process. */
	struct vp_error *(*open)(const char *path, const struct vp_import_options *options,
				 void **state);
	/* Sends the whole file except the end marker; runs sandboxed (read-only). */
	struct vp_error *(*send)(void *state, const struct vp_import_channel *channel);
};

#endif
