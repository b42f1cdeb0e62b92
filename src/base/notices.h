/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue of warnings for the user of a recorder; each is returned once. */
#ifndef VP_BASE_NOTICES_H
#define VP_BASE_NOTICES_H

#include "base/vec.h"

typedef VP_VEC(char *) vp_notices;

/* Removes and returns the oldest warning, to be freed; NULL: empty. */
char *vp_notices_take(vp_notices *notices);
void vp_notices_deinit(vp_notices *notices);

#endif
