/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reader of another program's recording: one for each format. It runs in a confined process
 * (import_reader.h) and sends messages to the other one, which checks them. */
#ifndef VP_IMPORT_IMPORTER_H
#define VP_IMPORT_IMPORTER_H

#include <stdbool.h>

#include "base/error.h"
#include "import/import_channel.h"

struct vp_importer {
	const char *name, *summary;
	bool has_samples;                  /* of events that can be chosen */
	bool (*detects)(const char *path); /* whether it looks like one of its own */
	/* Opens the file, and whatever it needs on this machine; its state is for send() and ends
	 * with the process. */
	struct vp_error *(*open)(const char *path, const struct vp_import_options *options,
				 void **state);
	/* Sends the whole file except the end marker; runs sandboxed (read-only). */
	struct vp_error *(*send)(void *state, const struct vp_import_channel *channel);
};

/* One after another; NULL: there are no more. */
const struct vp_importer *vp_importer_at(size_t number);
/* That of the file or directory, or NULL. */
const struct vp_importer *vp_importer_of(const char *path);

const struct vp_importer *vp_importer_tracedat(void);
const struct vp_importer *vp_importer_ctf(void);
const struct vp_importer *vp_importer_perf(void);

#endif
