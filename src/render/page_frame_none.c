/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replaces the bundle of web/ in a build without esbuild. */
#include "render/page_frame.h"

const struct vp_page_frame *vp_page_frame(void)
{
	return NULL;
}
