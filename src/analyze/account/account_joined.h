/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the accounting of several recordings of a host. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_JOINED_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_JOINED_H

#include "analyze/account/account_recording.h"
#include "analyze/common/recording_parts.h"
#include "base/error.h"
#include "base/macros.h"

/*
 * Like vp_account_recording_open(), for all parts, in order of time. VMs are joined as in
 * analyze/common/vm_join.h. ret->path is `name`, which is not copied; ret->recording is that of
 * the first part. Unreadable parts, and gaps between parts, become notes. `events` as for
 * vp_account_recording_open_with(). Where two recordings overlap, the first one ends, and the
 * second one begins, at steps of the accounting close to each other: a note has the time between
 * them. Errors: no part has accounting, or grades differ.
 */
struct vp_error *vp_account_joined_open(const char *name, const vp_recording_parts *parts,
					const struct vp_account_events *events,
					struct vp_account_recording *ret) VP_MUST_CHECK;

#endif
