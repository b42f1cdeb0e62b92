/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "stats/data.h"
#include "stats/linear.h"
#include "stats/prepare.h"

/* Common limits: correlation of redundant predictors, and variance inflation of a coefficient that
 * is not meaningful by itself. */
#define CORRELATED 0.9
#define INFLATED 10.0

static double correlation(const struct vp_linear *model, const struct vp_data *data,
			  const uint32_t *rows, size_t n, size_t a, size_t b)
{
	const struct vp_linear_term *ta = &model->terms[a], *tb = &model->terms[b];
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (vp_input_value(&model->inputs, a, data, rows[i]) - ta->mean) *
		       (vp_input_value(&model->inputs, b, data, rows[i]) - tb->mean);
	return n > 1 ? sum / ((double)(n - 1) * ta->sd * tb->sd) : 0;
}

/* Moves all members of b's group to a's. */
static void join(struct vp_linear *model, size_t a, size_t b)
{
	uint32_t to = model->terms[a].group, from = model->terms[b].group;

	for (size_t j = 0; j < model->inputs.at.count; j++)
		if (model->terms[j].group == from)
			model->terms[j].group = to;
}

static size_t number_groups(struct vp_linear *model)
{
	size_t k = model->inputs.at.count, count = 0;
	VP_AUTO_FREE uint32_t *names = vp_alloc((k + 1) * sizeof(*names));

	memset(names, 0xff, (k + 1) * sizeof(*names));
	for (size_t j = 0; j < k; j++) {
		uint32_t *name = &names[model->terms[j].group];
		if (*name == UINT32_MAX)
			*name = (uint32_t)count++;
		model->terms[j].group = *name;
	}
	return count;
}

size_t vp_linear_group(struct vp_linear *model, const struct vp_data *data)
{
	size_t k = model->inputs.at.count, n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);

	for (size_t j = 0; j < k; j++)
		model->terms[j].group = (uint32_t)j;
	for (size_t a = 0; a < k; a++) {
		double most = 0;
		size_t nearest = a;
		for (size_t b = 0; b < k; b++) {
			double r = a == b ? 0 : fabs(correlation(model, data, rows, n, a, b));
			if (r > CORRELATED)
				join(model, a, b);
			if (r > most) {
				most = r;
				nearest = b;
			}
		}
		if (model->terms[a].inflation > INFLATED && nearest != a)
			join(model, a, nearest);
	}
	return number_groups(model);
}
