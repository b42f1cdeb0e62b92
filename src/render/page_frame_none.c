/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In place of web/'s bundle, where vperf was built without esbuild. */
#include "render/page_frame.h"

const struct vp_page_frame *vp_page_frame(void)
{
	return NULL;
}
