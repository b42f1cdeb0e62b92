/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: events that a hypervisor traces of itself. */
#ifndef VP_SESSION_INSTRUMENT_HYPERVISOR_H
#define VP_SESSION_INSTRUMENT_HYPERVISOR_H

#include "collect/programs/hypervisor_events.h"

struct vp_instrument;

/* Takes over `events`. The accounting, which collects them, must have them already and must be
 * added to the session first. */
struct vp_instrument *vp_instrument_hypervisor(struct vp_hypervisor_events *events);

#endif
