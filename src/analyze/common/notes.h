/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes of a report, merged into as few lines as possible. */
#ifndef VP_ANALYZE_COMMON_NOTES_H
#define VP_ANALYZE_COMMON_NOTES_H

#include "analyze/common/health.h"

/*
 * Appends `notes` to `ret`, in order, with those that begin with "VM 'NAME': " and go on alike
 * folded into one, where the first of them stands: it names up to three of the VMs and counts the
 * rest. The sentences appended are the caller's to free, as are those of `notes`.
 */
void vp_notes_fold(const vp_sentences *notes, vp_sentences *ret);

#endif
