/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes of a report: what the percentages refer to, and what could not be named. */
#ifndef VP_ANALYZE_REPORT_REPORT_NOTES_H
#define VP_ANALYZE_REPORT_REPORT_NOTES_H

#include "analyze/report/report.h"

/* Appends all notes. */
void vp_report_note(struct vp_report *report);
/* Appends those that follow from the profile. */
void vp_report_note_counts(struct vp_report *report);
/* Appends those about the recording and its sources of names. */
void vp_report_note_sources(struct vp_report *report);

#endif
