/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/notices.h"

#include <string.h>

char *vp_notices_take(vp_notices *notices)
{
	if (!notices->count)
		return NULL;
	char *notice = notices->at[0];
	memmove(notices->at, notices->at + 1, --notices->count * sizeof(*notices->at));
	return notice;
}

void vp_notices_deinit(vp_notices *notices)
{
	vp_vec_each (notices, notice)
		free(*notice);
	vp_vec_deinit(notices);
}
