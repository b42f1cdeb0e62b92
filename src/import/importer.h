/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What reads a file that another program recorded: one for each format. It runs in a process that
 * may do nothing else (import_reader.h), and tells the other one, which checks what it is told.
 */
#ifndef VP_IMPORT_IMPORTER_H
#define VP_IMPORT_IMPORTER_H

#include <stdbool.h>

#include "base/error.h"
#include "import/import_channel.h"

struct vp_importer {
	const char *name, *summary;
	bool has_samples;                /* of events that can be chosen */
	bool (*knows)(const char *path); /* whether it looks like one of its own */
	/* What it needs from this machine, and the file; its state is for tell() and goes with the
	 * process. */
	struct vp_error *(*open)(const char *path, const struct vp_import_options *options,
				 void **state);
	/* All of it, but for its end: without any rights, but to read. */
	struct vp_error *(*tell)(void *state, const struct vp_import_channel *channel);
};

/* One after another; NULL: there are no more. */
const struct vp_importer *vp_importer_at(size_t number);
/* That of the file or directory, or NULL. */
const struct vp_importer *vp_importer_of(const char *path);

const struct vp_importer *vp_importer_tracedat(void);
const struct vp_importer *vp_importer_ctf(void);
const struct vp_importer *vp_importer_perf(void);

#endif
