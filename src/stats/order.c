/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/order.h"

static void swap(struct vp_keyed *a, struct vp_keyed *b)
{
	struct vp_keyed old = *a;
	*a = *b;
	*b = old;
}

static void swap_if_greater(struct vp_keyed *a, struct vp_keyed *b)
{
	if (a->value > b->value)
		swap(a, b);
}

static void sort_three(struct vp_keyed *left, struct vp_keyed *middle, struct vp_keyed *right)
{
	swap_if_greater(left, middle);
	swap_if_greater(left, right);
	swap_if_greater(middle, right);
}

/* The pivot is the item before the last one; where it belongs is returned. */
static struct vp_keyed *partition(struct vp_keyed *left, struct vp_keyed *last)
{
	struct vp_keyed *right = last - 1;
	double pivot = right->value;

	for (;;) {
		while ((++left)->value < pivot)
			;
		while ((--right)->value > pivot)
			;
		if (left >= right)
			return left;
		swap(left, right);
	}
}

void vp_order_sort(struct vp_keyed *items, size_t n)
{
	while (n > 3) {
		struct vp_keyed *last = items + n - 1;
		struct vp_keyed *middle = items + (n - 1) / 2;
		sort_three(items, middle, last);
		swap(middle, last - 1);
		struct vp_keyed *place = partition(items, last);
		swap(place, last - 1);
		/* The two sides are independent: the shorter one first bounds the depth. */
		size_t left = (size_t)(place - items), right = n - left - 1;
		if (left < right) {
			vp_order_sort(items, left);
			items = place + 1;
			n = right;
		} else {
			vp_order_sort(place + 1, right);
			n = left;
		}
	}
	if (n == 3)
		sort_three(items, items + 1, items + 2);
	else if (n == 2)
		swap_if_greater(items, items + 1);
}
