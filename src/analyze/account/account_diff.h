/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares two recordings, VM by VM: shares of vCPU time and rates, with 95% confidence intervals
 * of the differences. Each second of a recording is one observation. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_DIFF_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_DIFF_H

#include <stdbool.h>

#include "analyze/account/account_recording.h"
#include "analyze/common/health.h"
#include "analyze/common/recording_parts.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

enum vp_diff_measure {
	VP_DIFF_STEAL,      /* percent of vCPU time, also the next three */
	VP_DIFF_HYPERVISOR, /* kernel, poll, vmm */
	VP_DIFF_GUEST,
	VP_DIFF_IDLE,  /* halted, waiting */
	VP_DIFF_EXITS, /* per second, also the next */
	VP_DIFF_WAKEUPS,
	VP_DIFF_MEASURES
};

enum vp_diff_verdict {
	VP_DIFF_UNKNOWN, /* too few seconds for a confidence interval */
	VP_DIFF_SAME,    /* the confidence interval contains 0 */
	VP_DIFF_BETTER,
	VP_DIFF_WORSE,
	VP_DIFF_MORE, /* for measures that are neither good nor bad */
	VP_DIFF_LESS
};

struct vp_diff_row {
	char *vm;
	enum vp_diff_measure measure;
	double before, after, low, high; /* low, high: of after - before, unless UNKNOWN */
	enum vp_diff_verdict verdict;
};

struct vp_diff {
	VP_VEC(struct vp_diff_row) rows; /* VMs in both, in the order of the first recording */
	vp_sentences notes;
};

/* "steal", …; "%" or "/s"; "better", … */
const char *vp_diff_measure_name(enum vp_diff_measure measure);
const char *vp_diff_measure_unit(enum vp_diff_measure measure);
const char *vp_diff_verdict_name(enum vp_diff_verdict verdict);

/* A side of the comparison: a recording, or parts of several, with their joined accounting. */
struct vp_diff_side {
	const struct vp_account_recording *rec;
	const vp_recording_parts *parts; /* NULL: all of rec->path */
};

/* `vm`: names, one per line, or NULL for all. Errors: a recording without accounting; no such VM;
 * no VM in both. */
struct vp_error *vp_diff_compare(const struct vp_diff_side *before,
				 const struct vp_diff_side *after, const char *vm,
				 struct vp_diff *ret) VP_MUST_CHECK;
/* The same for two directories. */
struct vp_error *vp_diff_make(const char *before, const char *after, const char *vm,
			      struct vp_diff *ret) VP_MUST_CHECK;
void vp_diff_deinit(struct vp_diff *diff);

#endif
