/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument that accounts for the vCPUs' time. */
#ifndef VP_RECORDING_INSTRUMENT_ACCOUNT_H
#define VP_RECORDING_INSTRUMENT_ACCOUNT_H

#include <stdbool.h>

/* `with_states`: every stretch of a vCPU's time, too. */
struct vp_instrument *vp_instrument_account(bool with_states);

#endif
