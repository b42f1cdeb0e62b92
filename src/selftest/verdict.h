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
	const char *unit;                 /* of the numbers; "" for counts, NULL for texts */
	double expected, measured, bound; /* NAN: none */
	bool at_most;                     /* smaller values are ok, too */
	char *expected_text, *measured_text;
	enum vp_verdict verdict;
	char *why; /* "" without an explanation */
};

struct vp_checks {
	VP_VEC(struct vp_check) all;
};

void vp_checks_deinit(struct vp_checks *checks);

/* Ok if `measured` differs from `expected` by at most `bound`. Names and units are not copied. NaN
 * fails. */
void vp_check_near(struct vp_checks *checks, const char *name, const char *unit, double expected,
		   double measured, double bound);
/* Ok if `measured` is at most `bound`, even if below `expected`. */
void vp_check_most(struct vp_checks *checks, const char *name, const char *unit, double expected,
		   double measured, double bound);
/* Ok if both texts are equal; NULL is equal to nothing. */
void vp_check_same(struct vp_checks *checks, const char *name, const char *expected,
		   const char *measured);
void vp_check_not_possible(struct vp_checks *checks, const char *name, const char *why);
/* Adds an explanation to the last check. */
void vp_check_explain(struct vp_checks *checks, const char *format, ...) VP_PRINTF(2, 3);

size_t vp_checks_count(const struct vp_checks *checks, enum vp_verdict verdict);
/* 1 if any check failed, otherwise 0. */
int vp_checks_status(const struct vp_checks *checks);

/* Maximum error of a sampled share, in percentage points: four standard errors, plus the `late`
 * share of ticks, which may belong to another function. */
double vp_share_bound(double percent, double samples, double late);

/* Appends the table for human readers, and a sentence with the result. */
void vp_checks_put_text(const struct vp_checks *checks, struct vp_buffer *out);
/* Appends the member "checks", an array. */
void vp_checks_put_json(const struct vp_checks *checks, struct vp_json *json);

#endif
