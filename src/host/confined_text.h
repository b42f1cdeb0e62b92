/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes symbol-map lines derived from files that users of this host control. A child process that
 * may only read files creates them, within limits of time and size. */
#ifndef VP_HOST_CONFINED_TEXT_H
#define VP_HOST_CONFINED_TEXT_H

#include "base/macros.h"
#include "base/meanwhile.h"
#include "maps/writer.h"

struct vp_confined_text {
	/* Runs in the child process. */
	void (*write)(struct vp_maps_writer *writer, void *context);
	void *context;
	const char *keywords;                 /* first letters of the accepted lines */
	const struct vp_meanwhile *meanwhile; /* called while waiting for the child; or NULL */
};

/* Errors: the reason for missing lines; the others are written. */
struct vp_error *vp_confined_text_write(struct vp_maps_writer *writer,
					const struct vp_confined_text *text) VP_MUST_CHECK;

#endif
