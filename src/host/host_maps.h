/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's own symbol map: kernel symbols, and the mappings and symbols of the processes that
 * samples hit in user space. A process is read when it is first seen, and again at the end if it
 * still runs.
 *
 * Any user decides how many processes, names and mappings there are: memory and the time spent on
 * reading are bounded, and what is left out is counted and reported.
 */
#ifndef VP_HOST_HOST_MAPS_H
#define VP_HOST_HOST_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/meanwhile.h"

struct vp_host_maps;

enum {
	VP_HOST_MAPS_MAPPINGS = 8192, /* of one program */
	/* Names or programs of one process: in a second, and that are kept. */
	VP_HOST_MAPS_PROCESS_PER_SECOND = 8,
	VP_HOST_MAPS_PROCESS_SPACES = 64,
	/* Totals of all processes. */
	VP_HOST_MAPS_PER_SECOND = 1000,
	VP_HOST_MAPS_SPACES = 1 << 18,
};

/* The host's processes and mappings as they are seen; empty at first. */
struct vp_host_maps *vp_host_maps_new(void);
void vp_host_maps_free(struct vp_host_maps *maps);
/*
 * Process `pid` was in user space at `time`. Cheap when it is known. `comm` is the name of its main
 * thread, or NULL if that is not known now: another name than before means another program, or a
 * new name of the same.
 */
void vp_host_maps_see(struct vp_host_maps *maps, uint32_t pid, const char *comm, uint64_t time);
/* No sample before `time` is kept: drops the processes that were last seen before, as soon as they
 * are more than a few. */
void vp_host_maps_forget(struct vp_host_maps *maps, uint64_t time);
/* Processes, each counted once for each of its programs and names, and mappings that are kept. */
void vp_host_maps_count(const struct vp_host_maps *maps, size_t *spaces, size_t *mappings);
/* Writes the host's symbol map to `path`, without the symbols of files unless `with_symbols`; drops
 * before what was last seen before `from`. Errors: it cannot be written. */
struct vp_error *vp_host_maps_write(struct vp_host_maps *maps, const char *path, uint64_t from,
				    bool with_symbols,
				    const struct vp_meanwhile *meanwhile) VP_MUST_CHECK;
/* A sentence about names that are missing in what was written, or NULL; each is handed out once,
 * and again when there are more. To be freed. */
char *vp_host_maps_take_problem(struct vp_host_maps *maps);

#endif
