/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a recording, one after another: a line each. */
#ifndef VP_RENDER_SCRIPT_H
#define VP_RENDER_SCRIPT_H

#include "analyze/script.h"

struct vp_script_format {
	const char *name;
	/* Before the first event; or NULL. */
	void (*begin)(const struct vp_intern *columns, struct vp_buffer *out);
	void (*event)(const struct vp_script_event *event, const struct vp_intern *columns,
		      struct vp_buffer *out);
};

/* text, jsonl or csv; NULL: there is none of that name. */
const struct vp_script_format *vp_script_format_named(const char *name);

#endif
