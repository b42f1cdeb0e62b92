/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/nnls.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "stats/solve.h"

/* A slope below this fraction of the largest one counts as zero. */
#define TOLERANCE 1e-12

struct problem {
	const double *products, *with_target;
	size_t n;
	bool *active;  /* coefficients that may differ from zero */
	double *trial; /* unconstrained solution for the active coefficients */
	double *part, *right;
};

/* Solves for the active coefficients only; the others become zero. */
static bool solve_active(struct problem *p)
{
	size_t k = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (!p->active[i])
			continue;
		size_t at = 0, n_active = 0;
		for (size_t j = 0; j < p->n; j++)
			n_active += p->active[j];
		for (size_t j = 0; j < p->n; j++)
			if (p->active[j])
				p->part[k * n_active + at++] = p->products[i * p->n + j];
		p->right[k++] = p->with_target[i];
	}
	if (!vp_solve_lu(p->part, k, p->right))
		return false;
	for (size_t i = p->n; i-- > 0;)
		p->trial[i] = p->active[i] ? p->right[--k] : 0;
	return true;
}

/* The inactive coefficient with the steepest descent of the sum of squares, or n. */
static size_t steepest(const struct problem *p, const double *b)
{
	double best = 0, scale = 0;
	size_t found = p->n;

	for (size_t i = 0; i < p->n; i++) {
		double slope = p->with_target[i];
		scale = fmax(scale, fabs(slope));
		for (size_t j = 0; j < p->n; j++)
			slope -= p->products[i * p->n + j] * b[j];
		if (!p->active[i] && slope > best) {
			best = slope;
			found = i;
		}
	}
	return best > TOLERANCE * scale ? found : p->n;
}

/* Moves from b towards the trial until the first coefficient reaches zero, and deactivates that. */
static bool step_back(struct problem *p, double *b)
{
	double step = 1;

	for (size_t i = 0; i < p->n; i++)
		if (p->active[i] && p->trial[i] <= 0)
			step = fmin(step, b[i] / (b[i] - p->trial[i]));
	if (!(step < 1))
		step = 1;
	bool left = false;
	for (size_t i = 0; i < p->n; i++) {
		bool leaves = p->active[i] && p->trial[i] <= 0;
		b[i] += step * (p->trial[i] - b[i]);
		if (leaves && b[i] <= 1e-15) {
			b[i] = 0;
			p->active[i] = false;
			left = true;
		}
	}
	return left;
}

static void iterate(struct problem *p, double *b)
{
	for (size_t round = 0; round < 3 * p->n; round++) {
		size_t next = steepest(p, b);
		if (next == p->n)
			return;
		p->active[next] = true;
		while (solve_active(p)) {
			bool negative = false;
			for (size_t i = 0; i < p->n; i++)
				negative |= p->active[i] && p->trial[i] <= 0;
			if (!negative) {
				memcpy(b, p->trial, p->n * sizeof(*b));
				break;
			}
			if (!step_back(p, b))
				return;
		}
	}
}

void vp_nnls(const double *products, const double *with_target, size_t n, double *b)
{
	VP_AUTO_FREE bool *active = vp_alloc(n * sizeof(*active));
	VP_AUTO_FREE double *trial = vp_alloc(n * sizeof(*trial));
	VP_AUTO_FREE double *part = vp_alloc(n * n * sizeof(*part));
	VP_AUTO_FREE double *right = vp_alloc(n * sizeof(*right));
	struct problem problem = {products, with_target, n, active, trial, part, right};

	memset(b, 0, n * sizeof(*b));
	iterate(&problem, b);
}
