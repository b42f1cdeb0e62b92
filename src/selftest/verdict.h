/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of `vperf selftest`: an expected and a measured value, a bound, and a verdict. */
#ifndef VP_SELFTEST_VERDICT_H
#define VP_SELFTEST_VERDICT_H

#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"

enum vp_verdict { VP_VERDICT_OK, VP_VERDICT_FAILED, VP_VERDICT_NOT_POSSIBLE };
/* "ok", "failed", "not possible". */
const char *vp_verdict_name(enum vp_verdict verdict);

struct vp_check {
	const char *name;
	const char *unit; /* of the numbers; "" for counts, NULL if the values are text */
	double expected, measured, bound; /* NAN: none */
	bool at_most;                     /* less is ok, too */
	char *expected_text, *measured_text;
	enum vp_verdict verdict;
	char *why; /* "" if there is nothing to explain */
};

struct vp_checks {
	VP_VEC(struct vp_check) all;
};

void vp_checks_deinit(struct vp_checks *checks);

/* Ok if `measured` is at most `bound` from `expected`. Names and units are not copied. A value that
 * is no number has failed. */
void vp_check_near(struct vp_checks *checks, const char *name, const char *unit, double expected,
		   double measured, double bound);
/* Ok if `measured` is at most `bound`; what is less than expected is ok, too. */
void vp_check_most(struct vp_checks *checks, const char *name, const char *unit, double expected,
		   double measured, double bound);
/* Ok if both texts are the same; NULL differs from all. */
void vp_check_same(struct vp_checks *checks, const char *name, const char *expected,
		   const char *measured);
void vp_check_not_possible(struct vp_checks *checks, const char *name, const char *why);
/* Explains the last check. */
void vp_check_explain(struct vp_checks *checks, const char *format, ...) VP_PRINTF(2, 3);

size_t vp_checks_count(const struct vp_checks *checks, enum vp_verdict verdict);
/* 1 if one has failed, otherwise 0. */
int vp_checks_status(const struct vp_checks *checks);

/* How far a share of `samples` in percent may be from the true one, in points: four standard
 * errors, and each of the `late` share of ticks may have been another's. */
double vp_share_bound(double percent, double samples, double late);

/* The table for people, and a sentence that sums it up. */
void vp_checks_put_text(const struct vp_checks *checks, struct vp_buffer *out);
/* The member "checks", an array. */
void vp_checks_put_json(const struct vp_checks *checks, struct vp_json *json);

#endif
