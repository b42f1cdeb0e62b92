/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the functions of the kernel that perf sampled: as it keeps them, or this machine has. */
#ifndef VP_IMPORT_PERF_KERNEL_H
#define VP_IMPORT_PERF_KERNEL_H

#include "import/perf_spaces.h"
#include "maps/format.h"
#include "maps/writer.h"

/* The kernel that runs here: read before the process is confined. */
struct vp_perf_kernel {
	struct vp_maps_writer kallsyms;
	struct vp_build_id id;
};

void vp_perf_kernel_read(struct vp_perf_kernel *kernel);
/* The symbol lines of the machine's kernel, or a note with the reason why not. `directory`: perf's,
 * with the file and others in it, or NULL. */
void vp_perf_kernel_write(const struct vp_perf_kernel *here, const char *directory,
			  const struct vp_perfdata *file, const struct vp_perf_spaces *spaces,
			  struct vp_maps_writer *maps);

#endif
