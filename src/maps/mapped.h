/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that processes of this machine map, as a symbol map. */
#ifndef VP_MAPS_MAPPED_H
#define VP_MAPS_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/format.h"
#include "maps/writer.h"

/* An image, and a process that has it mapped at this moment: that one's file is the right one. */
struct vp_mapped {
	const char *path;            /* as /proc/PID/maps has it */
	struct vp_build_id build_id; /* of what was mapped; size 0: unknown */
	uint32_t pid;                /* 0: none is known to have it mapped */
	uint64_t start, end;
};

/* Writes the mapped file and, if wanted, its symbols, and completes its build-id. It is searched
 * for in the mapping itself, in the process's mount namespace, then in ours. False if it is no
 * longer available or has changed; nothing is written then. */
bool vp_mapped_write(struct vp_maps_writer *writer, struct vp_mapped *mapped, bool with_symbols);
/* Whether the path names a file, and not memory such as [vdso] or //anon. */
bool vp_mapped_is_file(const char *path);
/* The vDSO with its symbols: of this process, as all have the same. */
void vp_mapped_write_vdso(struct vp_maps_writer *writer);

#endif
