/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files mapped by processes of this machine, as part of a symbol map. */
#ifndef VP_MAPS_MAPPED_H
#define VP_MAPS_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/format.h"
#include "maps/writer.h"

/* A mapped file, and a process that has it mapped now. */
struct vp_mapped {
	const char *path;            /* as /proc/PID/maps has it */
	struct vp_build_id build_id; /* of the mapped file; size 0: unknown */
	uint32_t pid;                /* 0: no such process is known */
	uint64_t start, end;
};

/*
 * Writes the mapped file and, if requested, its symbols, and sets its build-id. The file is opened
 * through the mapping itself, then in the process's mount namespace, then in ours. False: it is
 * missing or has changed; nothing is written then.
 */
bool vp_mapped_write(struct vp_maps_writer *writer, struct vp_mapped *mapped, bool with_symbols);
/* Whether the path names a file, not memory such as [vdso] or //anon. */
bool vp_mapped_is_file(const char *path);
/* Writes the vDSO with its symbols. This process's own is read: all processes have the same. */
void vp_mapped_write_vdso(struct vp_maps_writer *writer);

#endif
