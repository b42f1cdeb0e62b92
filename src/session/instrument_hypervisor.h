/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records the events that a hypervisor traces of itself. */
#ifndef VP_SESSION_INSTRUMENT_HYPERVISOR_H
#define VP_SESSION_INSTRUMENT_HYPERVISOR_H

#include "collect/programs/hypervisor_events.h"

struct vp_instrument;

/* `events` are the instrument's from now on. The account, which gathers them, must have got them
 * and be in the session before. */
struct vp_instrument *vp_instrument_hypervisor(struct vp_hypervisor_events *events);

#endif
