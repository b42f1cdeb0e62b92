/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes of this host: the requirements of vperf's sources (source.h), one after another. */
#ifndef VP_SESSION_PROBE_H
#define VP_SESSION_PROBE_H

#include "host/source.h"

/* All sources, in the order in which they are printed. */
const struct vp_source *vp_source(size_t number); /* NULL: there are no more */

#endif
