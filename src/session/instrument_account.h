/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: vCPU accounting. */
#ifndef VP_SESSION_INSTRUMENT_ACCOUNT_H
#define VP_SESSION_INSTRUMENT_ACCOUNT_H

#include "collect/programs/account_source.h"

/* For vp_session_add(), which takes it over; `options` are copied. */
struct vp_instrument *vp_instrument_account(const struct vp_account_source_options *options);

#endif
