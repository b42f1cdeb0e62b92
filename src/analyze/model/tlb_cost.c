/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/model/tlb_cost.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "schema/interval.h"
#include "stats/data.h"
#include "stats/linear.h"

enum { INTERVALS_PER_EVENT = 10 };

/* perf's generic names, and page-walk events of AMD and Intel processors. */
static bool is_tlb_event(const char *name)
{
	static const char *const beginnings[] = {"dTLB-",          "iTLB-", "ls_l1_d_tlb_miss",
						 "bp_l1_tlb_miss", "dtlb_", "itlb_"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(beginnings); i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

static bool has_cpi(const struct vp_data *data)
{
	return !strcmp(data->columns.at[data->target].name, "cpi");
}

/* Sums the terms of misses; false: the model has no such term, or one of them is not
 * significant. */
static bool sum_misses(const struct vp_linear *model, struct vp_tlb_cost *ret)
{
	double cycles = 0, error = 0;

	for (size_t i = 0; i < model->inputs.at.count; i++) {
		const struct vp_linear_term *term = &model->terms[i];
		if (!is_tlb_event(model->inputs.at.at[i].name))
			continue;
		if (term->unclear || !isfinite(term->error))
			return false;
		cycles += term->coefficient * term->mean;
		error += term->error * term->mean;
		ret->misses += 1000 * term->mean;
	}
	if (!(ret->misses > 0) || !(model->mean > 0))
		return false;
	ret->percent = 100 * cycles / model->mean;
	ret->error = 100 * error / model->mean;
	ret->each = 1000 * cycles / ret->misses;
	return true;
}

static bool fit(const struct vp_data *data, struct vp_tlb_cost *ret)
{
	const struct vp_linear_options options = {0};
	VP_AUTO_FREE uint32_t *rows = NULL;

	if (!has_cpi(data) || data->rows < INTERVALS_PER_EVENT * data->columns.count)
		return false;
	rows = vp_alloc(data->rows * sizeof(*rows));
	for (size_t row = 0; row < data->rows; row++)
		if (!isnan(data->columns.at[data->target].values[row]))
			rows[ret->intervals++] = (uint32_t)row;
	if (ret->intervals < INTERVALS_PER_EVENT * data->columns.count)
		return false;
	struct vp_linear *model = vp_linear_build(data, rows, ret->intervals, &options);
	bool known = sum_misses(model, ret);
	vp_linear_free(model);
	return known;
}

bool vp_tlb_cost_of_vm(const struct vp_interval_recording *rec, const struct vp_vm *vm,
		       struct vp_tlb_cost *ret)
{
	VP_AUTO_FREE bool *chosen = vp_alloc(rec->vms.count * sizeof(*chosen));
	struct vp_interval_choice choice = {
	    .base = vp_interval_usual_base(rec), .per = 1, .chosen = chosen};
	const struct vp_vm *found = vp_vms_find(&rec->vms, vp_vm_id(vm));
	struct vp_data data;

	*ret = (struct vp_tlb_cost){0};
	if (!choice.base || !found || rec->recipe.per != VP_PER_VCPU)
		return false;
	for (uint32_t i = 0; i < rec->vms.count; i++)
		chosen[i] = &rec->vms.at[i] == found;
	struct vp_error *error = vp_interval_data(rec, &choice, &data);
	if (error) { /* the VM has no complete interval */
		vp_error_free(error);
		return false;
	}
	bool known = fit(&data, ret);
	vp_data_deinit(&data);
	return known;
}
