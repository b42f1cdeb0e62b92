/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of a recording without vCPU accounting, by the events of its trace. */
#ifndef VP_ANALYZE_REPORT_ACCOUNT_TRACE_H
#define VP_ANALYZE_REPORT_ACCOUNT_TRACE_H

#include "analyze/account/account_recording.h"
#include "base/macros.h"

/*
 * As vp_account_recording_open(). If the recording has no account, the events of the scheduler and
 * of KVM give the time of each state, exactly: in guest mode, asleep, waiting for a pCPU and for
 * whom. A note names the states that these events lack. Errors: there is neither.
 */
struct vp_error *vp_account_trace_open(const char *path, const struct vp_window *window,
				       struct vp_account_recording *ret) VP_MUST_CHECK;

#endif
