/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How exact an account is, and what its exits that were not timed add to its errors. */
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
/* False: no grade has that name; *ret stays as it is. */
bool vp_account_grade_parse(const char *name, enum vp_account_grade *ret);

/*
 * Exits that were timed, and those that they stand for: sums, of which parts can be added up. x is
 * an exit's time that is estimated, in units of VP_TIMING_UNIT_NS; w the exits it stands for.
 */
struct vp_exit_timing {
	uint64_t timed, sum, squares; /* exits, their x, their x * x */
	uint64_t weights;             /* their w * (w - 1) */
};

#define VP_TIMING_UNIT_NS 16

void vp_exit_timing_add(struct vp_exit_timing *to, const struct vp_exit_timing *from);
/* Variance, in ns * ns, of the time that the timed ones stand for. */
double vp_exit_timing_variance(const struct vp_exit_timing *timing);

#endif
