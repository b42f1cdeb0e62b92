/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_RENDER_PAGE_FRAME_H
#define VP_RENDER_PAGE_FRAME_H

#include <stddef.h>

/* The page before and after its data, or NULL: vperf was built without it. */
struct vp_page_frame {
	const char *head, *tail;
	size_t head_size, tail_size;
};
const struct vp_page_frame *vp_page_frame(void);

#endif
