/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/live.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/account/account.h"
#include "schema/account_terms.h"

enum { VM_ROW = UINT32_MAX };

void vp_live_deinit(struct vp_live *live)
{
	vp_map_deinit(&live->numbers);
	vp_vec_deinit(&live->rows);
}

static void live_forget(struct vp_live_row *row)
{
	for (size_t i = 0; i < VP_LIVE_HISTORY; i++)
		for (size_t value = 0; value < VP_LIVE_VALUES; value++)
			row->values[i][value] = NAN;
}

/* The row, with zeros for the current update. */
static struct vp_live_row *live_row_of(struct vp_live *live, uint32_t vm, uint32_t vcpu)
{
	bool inserted;
	uint32_t number = *vp_map_insert(&live->numbers, (uint64_t)vm << 32 | vcpu,
					 (uint32_t)live->rows.count, &inserted);

	if (inserted) {
		struct vp_live_row *row = vp_vec_push_slot(&live->rows);
		*row = (struct vp_live_row){.vm = vm, .vcpu = vcpu};
		live_forget(row);
	}
	struct vp_live_row *row = &live->rows.at[number];
	if (row->last_update != live->updates) {
		float *values = row->values[live->updates % VP_LIVE_HISTORY];
		for (size_t value = 0; value < VP_LIVE_VALUES; value++)
			values[value] = 0;
		row->vcpus = 0;
		row->last_update = live->updates;
	}
	row->vcpus++;
	return row;
}

static void live_add(struct vp_live_row *row, const struct vp_live *live, const float *values)
{
	float *sums = row->values[live->updates % VP_LIVE_HISTORY];

	for (size_t value = 0; value < VP_LIVE_VALUES; value++) {
		/* Updates the mean incrementally. */
		float more = values[value];
		if (value != VP_LIVE_EXITS)
			more = (more - sums[value]) / (float)row->vcpus;
		sums[value] += more;
	}
}

static void live_take_vcpu(struct vp_live *live, const struct vp_account_times *times)
{
	const uint64_t *states = times->states;
	float percent = 100.0F / (float)times->wall;
	const float values[VP_LIVE_VALUES] = {
	    [VP_LIVE_GUEST] = percent * (float)states[VP_STATE_GUEST],
	    [VP_LIVE_HOST] = percent * (float)(states[VP_STATE_KERNEL] + states[VP_STATE_POLL] +
					       states[VP_STATE_VMM]),
	    [VP_LIVE_IDLE] = percent * (float)(states[VP_STATE_HALTED] + states[VP_STATE_WAITING]),
	    [VP_LIVE_STEAL] =
		percent * (float)(states[VP_STATE_WAKING] + states[VP_STATE_PREEMPTED] +
				  states[VP_STATE_THROTTLED] + states[VP_STATE_IRQ]),
	    [VP_LIVE_EXITS] = (float)times->exits * 1e9F / (float)times->wall};

	live_add(live_row_of(live, times->vm, times->vcpu), live, values);
	live_add(live_row_of(live, times->vm, VM_ROW), live, values);
}

static void begin_update(struct vp_live *live)
{
	size_t index = ++live->updates % VP_LIVE_HISTORY;

	vp_vec_each (&live->rows, row)
		for (size_t value = 0; value < VP_LIVE_VALUES; value++)
			row->values[index][value] = NAN;
}

void vp_live_take(struct vp_live *live, const struct vp_account_view *view)
{
	begin_update(live);
	vp_vec_each (&view->account->times, times)
		if (times->wall && vp_account_view_shows(view, times->vm, times->vcpu))
			live_take_vcpu(live, times);
}

void vp_live_miss(struct vp_live *live)
{
	begin_update(live);
}

float vp_live_value(const struct vp_live *live, const struct vp_live_row *row,
		    enum vp_live_value value, uint64_t ago)
{
	if (ago >= VP_LIVE_HISTORY || ago >= live->updates)
		return NAN;
	return row->values[(live->updates - ago) % VP_LIVE_HISTORY][value];
}

struct sorted {
	const struct vp_live_row *row;
	float value;
};

static int live_most_first(const void *a, const void *b)
{
	const struct sorted *left = a, *right = b;

	if (left->value != right->value)
		return left->value < right->value ? 1 : -1;
	if (left->row->vm != right->row->vm)
		return left->row->vm < right->row->vm ? -1 : 1;
	return (left->row->vcpu > right->row->vcpu) - (left->row->vcpu < right->row->vcpu);
}

void vp_live_rows_make(const struct vp_live *live, const struct vp_live_order *order,
		       vp_live_rows *ret)
{
	VP_VEC(struct sorted) sorted = {0};

	vp_vec_each (&live->rows, row) {
		if (row->last_update != live->updates || (row->vcpu == VM_ROW) != order->by_vm ||
		    (order->has_vm && row->vm != order->vm))
			continue;
		const float *values = row->values[live->updates % VP_LIVE_HISTORY];
		vp_vec_push(
		    &sorted,
		    ((struct sorted){row, order->sort < VP_LIVE_VALUES ? values[order->sort] : 0}));
	}
	if (sorted.count)
		qsort(sorted.at, sorted.count, sizeof(*sorted.at), live_most_first);
	vp_vec_each (&sorted, item)
		vp_vec_push(ret, item->row);
	vp_vec_deinit(&sorted);
}
