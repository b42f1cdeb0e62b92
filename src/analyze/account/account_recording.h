/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accounting of a recording, with the data needed to judge it. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_RECORDING_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_RECORDING_H

#include "analyze/account/account.h"
#include "analyze/account/account_cuts.h"
#include "analyze/common/health.h"
#include "analyze/common/window.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "store/cgroups.h"
#include "store/recording.h"

struct vp_account_recording {
	const char *path;
	const char *arguments; /* arguments of commands that show details; NULL: the path */
	struct vp_recording recording;
	vp_vms vms;
	vp_cgroups cgroups;
	struct vp_account account;
	struct vp_account_checks checks;
	struct vp_losses losses;
	double duration;         /* seconds */
	uint64_t last;           /* end of the accounted time, CLOCK_MONOTONIC, ns */
	struct vp_window window; /* requested part of the recording, or all */
	/* … exact to the nanosecond: nothing was divided. */
	bool exact;
	struct vp_account_cuts cuts; /* of the window, by events */
	vp_sentences notes;
	vp_sentences storms; /* those of the notes that are about interrupt storms */
};

/* Reads the accounting of the recording in directory `path`, which is not copied; limited to
 * `window` (NULL: all). Errors: not a recording, or without accounting. */
struct vp_error *vp_account_recording_open(const char *path, const struct vp_window *window,
					   struct vp_account_recording *ret) VP_MUST_CHECK;
/* Another source of times in the recording. */
struct vp_account_events {
	/* NULL, or adds times if the recording has none. */
	struct vp_error *(*fill)(struct vp_account_recording *rec);
	/* Shows which part of each record is in the window: fills rec->cuts. */
	struct vp_error *(*cut)(struct vp_account_recording *rec);
};

/* The same with events. */
struct vp_error *vp_account_recording_open_with(const char *path, const struct vp_window *window,
						const struct vp_account_events *events,
						struct vp_account_recording *ret) VP_MUST_CHECK;
/* Note about accuracy, from the grade and the borders of a window, to be freed; NULL: exact. */
char *vp_account_note_grade(const struct vp_account *account) VP_MUST_CHECK;
char *vp_account_note_window(const struct vp_account_window *window) VP_MUST_CHECK;
/* For callers that do not read the accounting: appends its notes about interrupt storms in the
 * recording at `path` (analyze/account/irq_storm.h), if any. */
void vp_account_recording_note_storms(const char *path, vp_sentences *sentences);
void vp_account_recording_close(struct vp_account_recording *rec);

#endif
