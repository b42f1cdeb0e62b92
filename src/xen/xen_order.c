/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_order.h"

#include <string.h>

void vp_xen_order_deinit(struct vp_xen_order *order)
{
	vp_vec_deinit(&order->indices);
	vp_vec_deinit(&order->spare);
	vp_vec_deinit(&order->runs);
}

static void find_runs(struct vp_xen_order *order, const struct vp_xen_traced *records, size_t count)
{
	order->indices.count = order->spare.count = order->runs.count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!i || records[i].time < records[i - 1].time)
			vp_vec_push(&order->runs, i);
		vp_vec_push(&order->indices, (uint32_t)i);
	}
}

/* Merges two adjacent runs, from `at` to `middle` and to `end`; the result follows the records in
 * `spare`. */
static void xen_order_merge(struct vp_xen_order *order, const struct vp_xen_traced *records,
			    size_t at, size_t middle, size_t end)
{
	const uint32_t *indices = order->indices.at;
	size_t other = middle;

	while (at < middle || other < end) {
		bool is_other = at == middle || (other < end && records[indices[other]].time <
								    records[indices[at]].time);
		vp_vec_push(&order->spare, indices[is_other ? other : at]);
		other += is_other;
		at += !is_other;
	}
}

/* Merges pairs of runs: half as many, twice as long. */
static void merge_pairs(struct vp_xen_order *order, const struct vp_xen_traced *records,
			size_t count)
{
	size_t kept = 0, n = order->runs.count;
	size_t *runs = order->runs.at;

	order->spare.count = 0;
	for (size_t i = 0; i < n; i += 2) {
		size_t middle = i + 1 < n ? runs[i + 1] : count;
		size_t end = i + 2 < n ? runs[i + 2] : count;
		xen_order_merge(order, records, runs[i], middle, end);
		runs[kept++] = runs[i];
	}
	order->runs.count = kept;
	memcpy(order->indices.at, order->spare.at, count * sizeof(*order->indices.at));
}

void vp_xen_order_find(struct vp_xen_order *order, const struct vp_xen_traced *records,
		       size_t count)
{
	find_runs(order, records, count);
	while (order->runs.count > 1)
		merge_pairs(order, records, count);
}
