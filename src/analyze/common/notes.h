/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Merges similar notes of a report. */
#ifndef VP_ANALYZE_COMMON_NOTES_H
#define VP_ANALYZE_COMMON_NOTES_H

#include "analyze/common/health.h"

/*
 * Appends `notes` to `ret`, in order. Notes that start with "VM 'NAME': " and continue identically
 * are merged at the position of the first one, with up to three VM names and the number of the
 * others. The caller frees both the appended sentences and `notes`.
 */
void vp_notes_fold(const vp_sentences *notes, vp_sentences *ret);

#endif
