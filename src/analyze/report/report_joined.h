/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One report of several recordings of a host. */
#ifndef VP_ANALYZE_REPORT_REPORT_JOINED_H
#define VP_ANALYZE_REPORT_REPORT_JOINED_H

#include "analyze/common/recording_parts.h"
#include "analyze/report/report.h"
#include "base/macros.h"

/*
 * Like vp_report_make(), of all parts; `naming` applies to each of them, the times in `options` do
 * not. VMs are joined as in analyze/common/vm_join.h. ret->path is `name`, which is not copied;
 * ret->recording is that of the first part. Parts that cannot be read, or do not have the VM,
 * become notes. Errors: all parts are such; the recordings are weighted by different units; usage.
 */
struct vp_error *vp_report_joined_make(const char *name, const vp_recording_parts *parts,
				       const struct vp_naming_options *naming,
				       const struct vp_profile_options *options,
				       struct vp_report *ret) VP_MUST_CHECK;

#endif
