/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's own symbol map: kernel symbols, and the mappings and symbols of processes with
 * user-space samples. A process is read when first sampled, and again at the end if it still runs.
 *
 * Any user controls the number of processes, names and mappings. Memory and reading time are
 * therefore limited; what is left out is counted and reported.
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
	VP_HOST_MAPS_MAPPINGS = 8192, /* mappings of one program */
	/* Names or programs of one process: per second, and in total. */
	VP_HOST_MAPS_PROCESS_PER_SECOND = 8,
	VP_HOST_MAPS_PROCESS_SPACES = 64,
	/* Limits for all processes together. */
	VP_HOST_MAPS_PER_SECOND = 1000,
	VP_HOST_MAPS_SPACES = 1 << 18,
};

/* Starts empty. */
struct vp_host_maps *vp_host_maps_new(void);
void vp_host_maps_free(struct vp_host_maps *maps);
/*
 * Notes that process `pid` was in user space at `time`; cheap if it is known. `comm`: name of its
 * main thread, or NULL if unknown now. A changed name means another program, or a new name of the
 * same one.
 */
void vp_host_maps_note_sample(struct vp_host_maps *maps, uint32_t pid, const char *comm,
			      uint64_t time);
/* No sample before `time` is kept: drops processes last seen before that, once there are many. */
void vp_host_maps_forget(struct vp_host_maps *maps, uint64_t time);
/* Number of kept processes, counted once per program and name, and of mappings. */
void vp_host_maps_count(const struct vp_host_maps *maps, size_t *spaces, size_t *mappings);
/* Writes the host's symbol map to `path`, with symbols of files only if `with_symbols`; first drops
 * processes last seen before `from`. Errors: not writable. */
struct vp_error *vp_host_maps_write(struct vp_host_maps *maps, const char *path, uint64_t from,
				    bool with_symbols,
				    const struct vp_meanwhile *meanwhile) VP_MUST_CHECK;
/* A warning about missing names in the written map, or NULL; returned once, and again when there
 * are more. To be freed. */
char *vp_host_maps_take_problem(struct vp_host_maps *maps);

#endif
