/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "selftest/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
	SIGMAS = 4, /* a correct share exceeds this once in 16,000 checks */
	COLUMNS = 5,
	MAX_WIDTH = 40,
};

const char *vp_verdict_name(enum vp_verdict verdict)
{
	static const char *const names[] = {"ok", "failed", "not possible"};

	return names[verdict];
}

void vp_checks_deinit(struct vp_checks *checks)
{
	vp_vec_each (&checks->all, check) {
		free(check->expected_text);
		free(check->measured_text);
		free(check->why);
	}
	vp_vec_deinit(&checks->all);
}

static struct vp_check *check_add(struct vp_checks *checks, const char *name,
				  enum vp_verdict verdict, const char *why)
{
	struct vp_check check = {.name = name,
				 .expected = NAN,
				 .measured = NAN,
				 .bound = NAN,
				 .verdict = verdict,
				 .why = vp_strdup(why)};

	vp_vec_push(&checks->all, check);
	return &checks->all.at[checks->all.count - 1];
}

static void check_number(struct vp_checks *checks, const char *name, const char *unit,
			 double expected, double measured, double bound, bool holds)
{
	struct vp_check *check =
	    check_add(checks, name, holds ? VP_VERDICT_OK : VP_VERDICT_FAILED, "");

	check->unit = unit;
	check->expected = expected;
	check->measured = measured;
	check->bound = bound;
}

void vp_check_near(struct vp_checks *checks, const char *name, const char *unit, double expected,
		   double measured, double bound)
{
	check_number(checks, name, unit, expected, measured, bound,
		     fabs(measured - expected) <= bound);
}

void vp_check_most(struct vp_checks *checks, const char *name, const char *unit, double expected,
		   double measured, double bound)
{
	check_number(checks, name, unit, expected, measured, bound, measured - expected <= bound);
	checks->all.at[checks->all.count - 1].at_most = true;
}

void vp_check_same(struct vp_checks *checks, const char *name, const char *expected,
		   const char *measured)
{
	bool holds = expected && measured && !strcmp(expected, measured);
	struct vp_check *check =
	    check_add(checks, name, holds ? VP_VERDICT_OK : VP_VERDICT_FAILED, "");

	check->expected_text = vp_strdup(expected ? expected : "-");
	check->measured_text = vp_strdup(measured ? measured : "-");
}

void vp_check_not_possible(struct vp_checks *checks, const char *name, const char *why)
{
	check_add(checks, name, VP_VERDICT_NOT_POSSIBLE, why);
}

void vp_check_explain(struct vp_checks *checks, const char *format, ...)
{
	struct vp_check *check = &checks->all.at[checks->all.count - 1];
	char *text;
	va_list args;

	va_start(args, format);
	int size = vasprintf(&text, format, args);
	va_end(args);
	if (size < 0)
		vp_alloc_failed();
	free(check->why);
	check->why = text;
}

size_t vp_checks_count(const struct vp_checks *checks, enum vp_verdict verdict)
{
	size_t count = 0;

	vp_vec_each (&checks->all, check)
		count += check->verdict == verdict;
	return count;
}

int vp_checks_status(const struct vp_checks *checks)
{
	return vp_checks_count(checks, VP_VERDICT_FAILED) ? 1 : 0;
}

double vp_share_bound(double percent, double samples, double late)
{
	double share = percent / 100;

	if (samples < 1)
		samples = 1;
	return 100 * (SIGMAS * sqrt(share * (1 - share) / samples) + late + 1 / samples);
}

/* Formats a number for a cell; integers below 10^9 have all digits. */
static char *cell_number(const struct vp_check *check, double value, const char *before)
{
	bool apart = check->unit && *check->unit && *check->unit != '%';
	const char *space = apart ? " " : "";

	if (isnan(value))
		return vp_strdup("-");
	return value == floor(value) && fabs(value) < 1e9
		   ? vp_format("%s%.0f%s%s", before, value, space, check->unit ? check->unit : "")
		   : vp_format("%s%.4g%s%s", before, value, space, check->unit ? check->unit : "");
}

static void verdict_cells_of(const struct vp_check *check, char *cells[COLUMNS])
{
	cells[0] = vp_strdup(check->name);
	cells[1] = check->expected_text ? vp_strdup(check->expected_text)
					: cell_number(check, check->expected, "");
	cells[2] = check->measured_text ? vp_strdup(check->measured_text)
					: cell_number(check, check->measured, "");
	cells[3] = cell_number(check, check->bound, check->at_most ? "<=" : "+-");
	cells[4] = vp_strdup(vp_verdict_name(check->verdict));
}

/* The first column is left-aligned, numbers are right-aligned. */
static void put_cells(char *const cells[COLUMNS], const size_t widths[COLUMNS],
		      struct vp_buffer *out)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		size_t size = strlen(cells[i]);
		size_t fill = size < widths[i] ? widths[i] - size : 0;
		bool left = i == 0 || i == COLUMNS - 1;
		vp_buffer_string(out, i ? "  " : "");
		vp_buffer_fill(out, ' ', left ? 0 : fill);
		vp_buffer_string(out, cells[i]);
		vp_buffer_fill(out, ' ', left && i < COLUMNS - 1 ? fill : 0);
	}
	vp_buffer_string(out, "\n");
}

static void widen(char *const cells[COLUMNS], size_t widths[COLUMNS])
{
	for (size_t i = 0; i < COLUMNS; i++) {
		size_t size = strlen(cells[i]);
		if (size > widths[i] && size <= MAX_WIDTH)
			widths[i] = size;
	}
}

static void free_cells(char *cells[COLUMNS])
{
	for (size_t i = 0; i < COLUMNS; i++)
		free(cells[i]);
}

static void put_sentence(const struct vp_checks *checks, struct vp_buffer *out)
{
	size_t failed = vp_checks_count(checks, VP_VERDICT_FAILED);
	size_t not_possible = vp_checks_count(checks, VP_VERDICT_NOT_POSSIBLE);

	vp_buffer_printf(out, "\n%zu of %zu checks are ok", vp_checks_count(checks, VP_VERDICT_OK),
			 checks->all.count);
	if (failed)
		vp_buffer_printf(out, ", %zu failed", failed);
	if (not_possible)
		vp_buffer_printf(out, ", %zu %s not possible on this host", not_possible,
				 not_possible == 1 ? "is" : "are");
	vp_buffer_string(out, failed ? ". Do not trust reports of this host where a check failed.\n"
				     : ".\n");
}

void vp_checks_put_text(const struct vp_checks *checks, struct vp_buffer *out)
{
	char *head[COLUMNS] = {"Check", "Expected", "Measured", "Bound", "Verdict"};
	size_t widths[COLUMNS] = {0};
	char *cells[COLUMNS];

	widen(head, widths);
	vp_vec_each (&checks->all, check) {
		verdict_cells_of(check, cells);
		widen(cells, widths);
		free_cells(cells);
	}
	put_cells(head, widths, out);
	vp_vec_each (&checks->all, check) {
		verdict_cells_of(check, cells);
		put_cells(cells, widths, out);
		free_cells(cells);
		if (*check->why)
			vp_buffer_printf(out, "  %s\n", check->why);
	}
	put_sentence(checks, out);
}

static void verdict_put_value(struct vp_json *json, const char *key, const char *text, double value)
{
	if (text)
		vp_json_text(json, key, text);
	else
		vp_json_amount(json, key, value);
}

void vp_checks_put_json(const struct vp_checks *checks, struct vp_json *json)
{
	vp_json_array(json, "checks");
	vp_vec_each (&checks->all, check) {
		vp_json_object(json, NULL);
		vp_json_text(json, "check", check->name);
		verdict_put_value(json, "expected", check->expected_text, check->expected);
		verdict_put_value(json, "measured", check->measured_text, check->measured);
		vp_json_amount(json, "bound", check->bound);
		vp_json_text(json, "unit", check->unit);
		vp_json_text(json, "verdict", vp_verdict_name(check->verdict));
		vp_json_text(json, "why", check->why);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}
