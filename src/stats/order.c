/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/order.h"

enum { BLOCK = 64 };

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

/* Items of a block on the wrong side of the pivot, as offsets from its start. */
struct block {
	struct vp_keyed *begin;
	unsigned char wrong[BLOCK];
	size_t first, n;
};

static void scan_left(struct block *block, struct vp_keyed *begin, double pivot)
{
	block->begin = begin;
	block->first = 0;
	for (size_t i = 0; i < BLOCK; i++) {
		block->wrong[block->n] = (unsigned char)i;
		block->n += !(begin[i].value < pivot);
	}
}

static void scan_right(struct block *block, struct vp_keyed *begin, double pivot)
{
	block->begin = begin;
	block->first = 0;
	for (size_t i = 0; i < BLOCK; i++) {
		block->wrong[block->n] = (unsigned char)i;
		block->n += !((begin - i)->value > pivot);
	}
}

/* Swaps pairs of wrong items until one block has none left. */
static void swap_wrong(struct block *left, struct block *right)
{
	size_t n = left->n < right->n ? left->n : right->n;

	for (size_t i = 0; i < n; i++)
		swap(left->begin + left->wrong[left->first + i],
		     right->begin - right->wrong[right->first + i]);
	left->first += n;
	left->n -= n;
	right->first += n;
	right->n -= n;
}

/*
 * The swaps that partition() would make one by one, for whole blocks: collecting them first avoids
 * a mispredicted branch for every other item (Edelkamp, Weiss: BlockQuicksort). On return, *left
 * and *right are where partition() would be.
 */
static void partition_blocks(struct vp_keyed **left, struct vp_keyed **right, double pivot)
{
	struct vp_keyed *next = *left + 1, *previous = *right - 1;
	struct block lefts = {.n = 0}, rights = {.n = 0};

	while (previous - next + 1 >= 2 * BLOCK) {
		if (!lefts.n) {
			scan_left(&lefts, next, pivot);
			next += BLOCK;
		}
		if (!rights.n) {
			scan_right(&rights, previous, pivot);
			previous -= BLOCK;
		}
		swap_wrong(&lefts, &rights);
	}
	*left = (lefts.n ? lefts.begin + lefts.wrong[lefts.first] : next) - 1;
	*right = (rights.n ? rights.begin - rights.wrong[rights.first] : previous) + 1;
}

/* The pivot is the item before the last one; returns its final position. */
static struct vp_keyed *partition(struct vp_keyed *left, struct vp_keyed *last)
{
	struct vp_keyed *right = last - 1;
	double pivot = right->value;

	partition_blocks(&left, &right, pivot);
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
		struct vp_keyed *pivot = partition(items, last);
		swap(pivot, last - 1);
		/* Recursing into the shorter side first bounds the depth. */
		size_t left = (size_t)(pivot - items), right = n - left - 1;
		if (left < right) {
			vp_order_sort(items, left);
			items = pivot + 1;
			n = right;
		} else {
			vp_order_sort(pivot + 1, right);
			n = left;
		}
	}
	if (n == 3)
		sort_three(items, items + 1, items + 2);
	else if (n == 2)
		swap_if_greater(items, items + 1);
}
