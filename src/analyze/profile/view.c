/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/view.h"

#include <string.h>

const struct vp_view_ops *vp_view_of(enum vp_view view)
{
	static const struct vp_view_ops *(*const views[])(void) = {[VP_VIEW_HOST] = vp_view_host,
								   [VP_VIEW_GUEST] = vp_view_guest,
								   [VP_VIEW_UNIFIED] =
								       vp_view_unified};

	return views[view]();
}

enum vp_view vp_view_named(const char *name)
{
	uint32_t view = 0;

	while (view < VP_VIEWS && strcmp(vp_view_of((enum vp_view)view)->name, name) != 0)
		view++;
	return (enum vp_view)view;
}
