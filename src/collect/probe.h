/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this host can do for vperf: one probe per feature, and what its absence costs the user. */
#ifndef VP_COLLECT_PROBE_H
#define VP_COLLECT_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct vp_probe {
	const char *name;
	const char *cost; /* of doing without it */
	bool needed;      /* nothing can be recorded without */
	/* True if it is there; `detail` gets what was found or why not. */
	bool (*run)(char *detail, size_t size);
};

/* All probes, in the order in which they are printed. */
const struct vp_probe *vp_probes(size_t *count);

#endif
