/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the report of a recording. */
#ifndef VP_ANALYZE_REPORT_REPORT_MAKE_H
#define VP_ANALYZE_REPORT_REPORT_MAKE_H

#include "analyze/profile/profile_sum.h"
#include "analyze/report/report.h"
#include "base/macros.h"

/* Reads the recording in `naming->directory` and makes the profile. If the recording has no stacks,
 * it is made without them; with needs_chains that is an error. */
struct vp_error *vp_report_make(const struct vp_naming_options *naming,
				const struct vp_profile_options *options,
				struct vp_report *ret) VP_MUST_CHECK;
/* The same without notes about the profile. `sum`: receives the profile; NULL: ret->profile
 * does. */
struct vp_error *vp_report_read(const struct vp_naming_options *naming,
				const struct vp_profile_options *options,
				struct vp_profile_sum *sum, struct vp_report *ret) VP_MUST_CHECK;

#endif
