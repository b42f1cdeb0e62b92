/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbols of the files that the host's processes map. Users made those files: they are read in a
 * process of its own that may read, and do nothing else.
 */
#ifndef VP_HOST_HOST_IMAGES_H
#define VP_HOST_HOST_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"
#include "base/meanwhile.h"
#include "maps/mapped.h"

/* Writes the images and, if wanted, their symbols, and completes their build-ids; *unread: how many
 * files could not be read, or are other ones by now. Errors: why some are missing; the others are
 * written. */
struct vp_error *vp_host_images_write(struct vp_maps_writer *writer, struct vp_mapped *images,
				      size_t count, bool with_symbols,
				      const struct vp_meanwhile *meanwhile,
				      size_t *unread) VP_MUST_CHECK;

#endif
