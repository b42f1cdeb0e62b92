/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of a symbol map that are made of files which users of this host made: by a process of its
 * own, which may read files and do nothing else, for a limited time and of a limited size.
 */
#ifndef VP_HOST_CONFINED_TEXT_H
#define VP_HOST_CONFINED_TEXT_H

#include "base/macros.h"
#include "base/meanwhile.h"
#include "maps/writer.h"

struct vp_confined_text {
	/* In the new process. */
	void (*write)(struct vp_maps_writer *writer, void *context);
	void *context;
	const char *keywords; /* the first letters of the lines that are taken over */
	const struct vp_meanwhile *meanwhile; /* while it is waited for; or NULL */
};

/* Errors: why some lines are missing; the others are written. */
struct vp_error *vp_confined_text_write(struct vp_maps_writer *writer,
					const struct vp_confined_text *text) VP_MUST_CHECK;

#endif
