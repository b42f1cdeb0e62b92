/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of the files mapped by host processes. Users control those files, so a child process that
 * may only read files parses them. */
#ifndef VP_HOST_HOST_IMAGES_H
#define VP_HOST_HOST_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"
#include "base/meanwhile.h"
#include "maps/mapped.h"

/*
 * Writes the files and, if requested, their symbols, and sets their build-ids. *unread: number of
 * files that could not be read or have been replaced. Errors: the reason for missing files; the
 * others are written.
 */
struct vp_error *vp_host_images_write(struct vp_maps_writer *writer, struct vp_mapped *images,
				      size_t count, bool with_symbols,
				      const struct vp_meanwhile *meanwhile,
				      size_t *unread) VP_MUST_CHECK;

#endif
