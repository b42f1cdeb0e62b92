/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of several recordings of a host as one. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_JOINED_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_JOINED_H

#include "analyze/account/account_recording.h"
#include "analyze/common/window.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* A recording's part of the time that is asked for. */
struct vp_account_part {
	char *path;
	struct vp_window window; /* on the recording's clock, within it */
};
typedef VP_VEC(struct vp_account_part) vp_account_parts;

void vp_account_parts_deinit(vp_account_parts *parts);
/*
 * As vp_account_recording_open(), of all parts, in the order of time. VMs are joined as in
 * analyze/account/vm_join.h. ret->path is `name`, which is not copied; ret->recording is that of
 * the first part. A part that cannot be read is a note, and so is the time between the parts in
 * which nothing was recorded. Errors: no part has an account, or they have different grades.
 */
struct vp_error *vp_account_joined_open(const char *name, const vp_account_parts *parts,
					struct vp_account_recording *ret) VP_MUST_CHECK;

#endif
