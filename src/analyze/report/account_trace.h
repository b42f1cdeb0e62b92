/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPU accounting from trace events, for a recording without its own. */
#ifndef VP_ANALYZE_REPORT_ACCOUNT_TRACE_H
#define VP_ANALYZE_REPORT_ACCOUNT_TRACE_H

#include "analyze/account/account_joined.h"
#include "analyze/account/account_recording.h"
#include "analyze/common/recording_parts.h"
#include "base/macros.h"

/*
 * Like vp_account_recording_open(). Without accounting, the events of the scheduler and of KVM give
 * the exact time of these states: guest, asleep, and runnable with thief. A note lists the states
 * that they lack. Errors: neither is recorded.
 */
struct vp_error *vp_account_trace_open(const char *path, const struct vp_window *window,
				       struct vp_account_recording *ret) VP_MUST_CHECK;
/* The same, with accounting only: events have no VM exits by reason. */
struct vp_error *vp_account_trace_open_recorded(const char *path, const struct vp_window *window,
						struct vp_account_recording *ret) VP_MUST_CHECK;

/* Like vp_account_joined_open(), with the events of each part. */
struct vp_error *vp_account_trace_open_joined(const char *name, const vp_recording_parts *parts,
					      struct vp_account_recording *ret) VP_MUST_CHECK;

#endif
