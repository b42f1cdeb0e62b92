/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen of 'vperf top': which keys change it, and what it shows. */
#ifndef VP_RENDER_TOP_H
#define VP_RENDER_TOP_H

#include "analyze/report/live.h"
#include "base/buffer.h"
#include "schema/vm.h"

/* The user's choices; zeroed at first, but for `order`. */
struct vp_top {
	struct vp_live_order order;
	bool frozen, help, quit;
	size_t first;   /* the row at the top */
	char escape[8]; /* the start of a key of several bytes */
	size_t escaped;
};

/* Takes a byte from the keyboard; VMs are chosen from those that are in `live`. */
void vp_top_key(struct vp_top *top, char byte, const struct vp_live *live);

struct vp_top_screen {
	uint32_t width, height; /* in characters */
	bool colour, utf8;
	bool keys;      /* there is a keyboard */
	double seconds; /* the length of the last update */
	const struct vp_live *live;
	const vp_vms *vms;
	/* The shown VMs, from analyze/account/account_tables.h. */
	const struct vp_table *exits, *thieves;
};

/* Lines, each ended by a line feed: at most `height`, none wider than `width`. The width of a
 * character depends on the process's locale. */
void vp_top_draw(const struct vp_top *top, const struct vp_top_screen *screen,
		 struct vp_buffer *out);

#endif
