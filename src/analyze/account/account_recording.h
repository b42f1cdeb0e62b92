/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of a recording, with all that is needed to judge it. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_RECORDING_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_RECORDING_H

#include "analyze/account/account.h"
#include "analyze/common/health.h"
#include "analyze/common/window.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "store/cgroups.h"
#include "store/recording.h"

struct vp_account_recording {
	const char *path;
	const char *arguments; /* of commands that show more of it; NULL: the path */
	struct vp_recording recording;
	vp_vms vms;
	vp_cgroups cgroups;
	struct vp_account account;
	struct vp_account_checks checks;
	struct vp_losses losses;
	double duration;         /* seconds */
	struct vp_window window; /* … of which, within the recording; or all */
	/* … it is exact to the nanosecond: nothing was divided. */
	bool exact;
	vp_sentences notes;
	vp_sentences storms; /* those of the notes that are about them */
};

/* Reads the account of the recording in directory `path`, which is not copied; of `window` alone
 * (NULL: all). Errors: no recording, or one without an account. */
struct vp_error *vp_account_recording_open(const char *path, const struct vp_window *window,
					   struct vp_account_recording *ret) VP_MUST_CHECK;
/* The same; `fill` adds times to a recording that has none, from elsewhere. */
struct vp_error *
vp_account_recording_open_filled(const char *path, const struct vp_window *window,
				 struct vp_error *(*fill)(struct vp_account_recording *rec),
				 struct vp_account_recording *ret) VP_MUST_CHECK;
/* The notes about how exact an account is, by its grade and at the borders of a window, to be
 * freed; NULL: it is exact. */
char *vp_account_note_grade(const struct vp_account *account) VP_MUST_CHECK;
char *vp_account_note_window(const struct vp_account_window *window) VP_MUST_CHECK;
/* For callers that do not read the account: appends its notes on interrupt storms in the
 * recording at `path` (analyze/account/irq_storm.h), if there were any. Without an account there is
 * nothing. */
void vp_account_recording_note_storms(const char *path, vp_sentences *sentences);
void vp_account_recording_close(struct vp_account_recording *rec);

#endif
