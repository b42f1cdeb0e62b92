/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes of a file of perf record, from its records, in order of time: names of threads,
 * forks, programs that begin and end, mappings; in the end as a symbol map (maps/format.h).
 */
#ifndef VP_IMPORT_PERF_SPACES_H
#define VP_IMPORT_PERF_SPACES_H

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/perfdata.h"
#include "maps/format.h"
#include "maps/writer.h"

struct vp_perf_space {
	uint64_t start, end;
	uint32_t pid, parent, comm; /* parent: number of the space + 1; a number in `texts` */
};

struct vp_perf_spaces {
	const struct vp_perfdata *file;
	uint32_t machine;                    /* whose: the VMM's process, or 0: the host's */
	VP_VEC(struct vp_perf_space) spaces; /* by number */
	struct vp_map space_of_pid, comm_of_tid;
	struct vp_intern texts;
	struct vp_maps_writer mappings;
	/* Where the kernel is: the address of that symbol; 0: unknown. */
	uint64_t kernel;
	char kernel_symbol[32];
	struct vp_build_id kernel_id; /* if the record of its mapping has it */
};

void vp_perf_spaces_init(struct vp_perf_spaces *spaces, const struct vp_perfdata *file,
			 uint32_t machine);
void vp_perf_spaces_deinit(struct vp_perf_spaces *spaces);
/* Processes the next record, if it is about processes of that machine. */
void vp_perf_spaces_take(struct vp_perf_spaces *spaces, const struct vp_perfdata_record *record);
/* The thread's name by now; "" if nobody said it. */
const char *vp_perf_spaces_comm(const struct vp_perf_spaces *spaces, uint32_t tid);
/* Lines of spaces and mappings. */
void vp_perf_spaces_write(struct vp_perf_spaces *spaces, struct vp_maps_writer *out);

#endif
