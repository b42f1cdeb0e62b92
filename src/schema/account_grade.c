/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/account_grade.h"

#include <stddef.h>
#include <string.h>

static const char *const names[VP_ACCOUNT_GRADES] = {
    [VP_ACCOUNT_EXACT] = "exact", [VP_ACCOUNT_SAMPLED] = "sampled", [VP_ACCOUNT_STATES] = "states"};

const char *vp_account_grade_name(enum vp_account_grade grade)
{
	return names[grade];
}

bool vp_account_grade_parse(const char *name, enum vp_account_grade *ret)
{
	for (size_t i = 0; i < VP_ACCOUNT_GRADES; i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum vp_account_grade)i;
			return true;
		}
	return false;
}

void vp_exit_timing_add(struct vp_exit_timing *to, const struct vp_exit_timing *from)
{
	to->timed += from->timed;
	to->sum += from->sum;
	to->squares += from->squares;
	to->weights += from->weights;
}

/*
 * One exit of w is timed, chosen at random. The estimate, its time times w, has the variance (w -
 * 1)^2 s^2 for that exit and (w - 1) s^2 for the others: w (w - 1) s^2 in total. s^2: variance of
 * the timed exits.
 */
double vp_exit_timing_variance(const struct vp_exit_timing *timing)
{
	const double unit = VP_TIMING_UNIT_NS, n = (double)timing->timed;

	if (!timing->weights || !timing->timed)
		return 0;
	double mean = (double)timing->sum / n;
	/* A single timed exit that represents others: assume it may be twice as long, or zero. */
	double spread =
	    n > 1 ? ((double)timing->squares - n * mean * mean) / (n - 1) : (double)timing->squares;
	return spread > 0 ? spread * unit * unit * (double)timing->weights : 0;
}
