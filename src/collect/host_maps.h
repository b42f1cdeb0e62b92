/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's own symbol map: kernel symbols, and the mappings and symbols of the processes that
 * samples hit in user space. A process is read when it is first seen, and again at the end if it
 * still runs.
 */
#ifndef VP_COLLECT_HOST_MAPS_H
#define VP_COLLECT_HOST_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct vp_host_maps;

/* The host's processes and mappings as they are seen; empty at first. */
struct vp_host_maps *vp_host_maps_new(void);
void vp_host_maps_free(struct vp_host_maps *maps);
/*
 * Process `pid` was in user space at `time`. Cheap when it is known. `comm` is the name of its main
 * thread, or NULL if that is not known now: another name than before means another program.
 */
void vp_host_maps_see(struct vp_host_maps *maps, uint32_t pid, const char *comm, uint64_t time);
/* Writes the host's symbol map to `path`, without the symbols of files unless `with_symbols`.
 * Errors: it cannot be written. */
struct vp_error *vp_host_maps_write(struct vp_host_maps *maps, const char *path,
				    bool with_symbols) VP_MUST_CHECK;

#endif
