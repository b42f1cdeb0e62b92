/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen of 'vperf top': keyboard and contents. */
#ifndef VP_RENDER_TOP_H
#define VP_RENDER_TOP_H

#include "analyze/report/live.h"
#include "base/buffer.h"
#include "schema/vm.h"

/* The user's settings; zero-initialized, except `order`. */
struct vp_top {
	struct vp_live_order order;
	bool frozen, help, quit;
	size_t first;   /* the first visible row */
	char escape[8]; /* start of a multi-byte key */
	size_t escaped;
};

/* Processes a byte from the keyboard; VMs can be selected from those in `live`. */
void vp_top_key(struct vp_top *top, char byte, const struct vp_live *live);

struct vp_top_screen {
	uint32_t width, height; /* in characters */
	bool colour, utf8;
	bool keys;      /* input is a keyboard */
	double seconds; /* length of the last update */
	const struct vp_live *live;
	const vp_vms *vms;
	/* Tables of the shown VMs, from analyze/account/account_tables.h. */
	const struct vp_table *exits, *thieves;
};

/* Appends lines, each with a line feed: at most `height`, none wider than `width`. Character widths
 * depend on the process's locale. */
void vp_top_draw(const struct vp_top *top, const struct vp_top_screen *screen,
		 struct vp_buffer *out);

#endif
