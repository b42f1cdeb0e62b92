/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sentences for whoever runs a recorder: each is handed out once. */
#ifndef VP_BASE_NOTICES_H
#define VP_BASE_NOTICES_H

#include "base/vec.h"

typedef VP_VEC(char *) vp_notices;

/* The oldest, to be freed, or NULL. */
char *vp_notices_take(vp_notices *notices);
void vp_notices_deinit(vp_notices *notices);

#endif
