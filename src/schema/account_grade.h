/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Grade of vCPU accounting, and the error that exits without timing add. */
#ifndef VP_SCHEMA_ACCOUNT_GRADE_H
#define VP_SCHEMA_ACCOUNT_GRADE_H

#include <stdbool.h>
#include <stdint.h>

enum vp_account_grade {
	VP_ACCOUNT_EXACT,   /* every exit is timed */
	VP_ACCOUNT_SAMPLED, /* exits are counted; frequent ones are timed 1 in N */
	VP_ACCOUNT_STATES,  /* the scheduler's states; samples show the running vCPU's activity */
	VP_ACCOUNT_GRADES
};

/* "exact", "sampled", "states". */
const char *vp_account_grade_name(enum vp_account_grade grade);
/* False: unknown name; *ret is unchanged. */
bool vp_account_grade_parse(const char *name, enum vp_account_grade *ret);

/* Timed exits, and the exits that they represent; all fields are sums. x: estimated time of an exit
 * in units of VP_TIMING_UNIT_NS; w: number of exits that it represents. */
struct vp_exit_timing {
	uint64_t timed, sum, squares; /* number of timed exits, sum of x, sum of x * x */
	uint64_t weights;             /* sum of w * (w - 1) */
};

#define VP_TIMING_UNIT_NS 16

void vp_exit_timing_add(struct vp_exit_timing *to, const struct vp_exit_timing *from);
/* Variance, in ns * ns, of the time that the timed exits represent. */
double vp_exit_timing_variance(const struct vp_exit_timing *timing);

#endif
