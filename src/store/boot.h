/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's boots: each starts CLOCK_MONOTONIC anew. */
#ifndef VP_STORE_BOOT_H
#define VP_STORE_BOOT_H

/* Id of the present boot; "" if /proc lacks it. The caller frees it. */
char *vp_boot_id(void);

#endif
