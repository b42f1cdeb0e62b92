/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Function names of the sampled kernel, from perf's files or from this machine. */
#ifndef VP_IMPORT_PERF_PERF_KERNEL_H
#define VP_IMPORT_PERF_PERF_KERNEL_H

#include "import/perf/perf_spaces.h"
#include "maps/format.h"
#include "maps/writer.h"

/* The running kernel: read before the process is confined. */
struct vp_perf_kernel {
	struct vp_maps_writer kallsyms;
	struct vp_build_id id;
};

void vp_perf_kernel_read(struct vp_perf_kernel *kernel);
/* Writes symbol lines of the kernel, or a note with the reason for missing ones. `directory`:
 * perf's directory with further files, or NULL. */
void vp_perf_kernel_write(const struct vp_perf_kernel *here, const char *directory,
			  const struct vp_perfdata *file, const struct vp_perf_spaces *spaces,
			  struct vp_maps_writer *maps);

#endif
