/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders the list of a store: recordings, gaps between them, findings. */
#ifndef VP_RENDER_RENDER_HISTORY_H
#define VP_RENDER_RENDER_HISTORY_H

#include <stdbool.h>

#include "base/buffer.h"
#include "store/history.h"
#include "store/kept_findings.h"

struct vp_listed_store {
	const char *path;
	vp_history history;
	vp_kept_findings findings;
	uint64_t bad_findings; /* malformed lines of the file `findings` */
};

/* The terminal has `width` characters per line; 0: no limit. */
void vp_render_history_text(const struct vp_listed_store *store, size_t width, bool colour,
			    struct vp_buffer *out);
void vp_render_history_json(const struct vp_listed_store *store, struct vp_buffer *out);

#endif
