/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports on recordings that a test made. */
#ifndef VP_TESTS_MADE_REPORT_H
#define VP_TESTS_MADE_REPORT_H

#include "analyze/report/report_make.h"
#include "make_recording.h"
#include "unit.h"

static inline struct vp_report made_report(const char *directory,
					   const struct vp_profile_options *options)
{
	const struct vp_naming_options naming = {.directory = directory};
	struct vp_report report;

	expect_no_error(vp_report_make(&naming, options, &report));
	return report;
}

/* The first row of that function, of all parts, or NULL. */
static inline const struct vp_profile_row *made_report_row(const struct vp_report *report,
							   const char *function)
{
	vp_vec_each (&report->profile.rows, row) {
		const char *text = vp_profile_text(&report->profile, row->function);
		if (text && !strcmp(text, function))
			return row;
	}
	return NULL;
}

#endif
