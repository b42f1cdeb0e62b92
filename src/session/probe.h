/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of this host: requirements of vperf's data sources (source.h). */
#ifndef VP_SESSION_PROBE_H
#define VP_SESSION_PROBE_H

#include "host/source.h"

/* Data source `number`, counted from 0, in the order of the output; NULL: no more. */
const struct vp_source *vp_source(size_t number);

#endif
