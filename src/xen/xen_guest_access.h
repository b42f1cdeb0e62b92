/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to the memory of Xen guests by mapping it (collect/guests/guest_access.h). */
#ifndef VP_XEN_XEN_GUEST_ACCESS_H
#define VP_XEN_XEN_GUEST_ACCESS_H

#include "collect/guests/guest_access.h"

const struct vp_guest_access *vp_guest_access_xen(void);

#endif
