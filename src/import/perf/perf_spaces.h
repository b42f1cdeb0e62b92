/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracks processes from the records of a perf.data file, in order of time: thread names, forks,
 * execs, exits, mappings; and writes them as a symbol map (maps/format.h). */
#ifndef VP_IMPORT_PERF_PERF_SPACES_H
#define VP_IMPORT_PERF_PERF_SPACES_H

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/perf/perfdata.h"
#include "maps/format.h"
#include "maps/writer.h"

struct vp_perf_space {
	uint64_t start, end;
	uint32_t pid, parent, comm; /* parent: number of the space + 1; comm: number in `texts` */
};

struct vp_perf_spaces {
	const struct vp_perfdata *file;
	uint32_t machine;                    /* the VMM process, or 0: the host */
	VP_VEC(struct vp_perf_space) spaces; /* by number */
	struct vp_map space_of_pid, comm_of_tid;
	struct vp_intern texts;
	struct vp_maps_writer mappings;
	/* The kernel's address of that symbol; 0: unknown. */
	uint64_t kernel;
	char kernel_symbol[32];
	struct vp_build_id kernel_id; /* from the record of the kernel's mapping, if it has one */
};

void vp_perf_spaces_init(struct vp_perf_spaces *spaces, const struct vp_perfdata *file,
			 uint32_t machine);
void vp_perf_spaces_deinit(struct vp_perf_spaces *spaces);
/* Processes the next record, if it is about processes of that machine. */
void vp_perf_spaces_take(struct vp_perf_spaces *spaces, const struct vp_perfdata_record *record);
/* The present name of the thread; "": unknown. */
const char *vp_perf_spaces_comm(const struct vp_perf_spaces *spaces, uint32_t tid);
/* Writes the lines for address spaces and mappings. */
void vp_perf_spaces_write(struct vp_perf_spaces *spaces, struct vp_maps_writer *out);

#endif
