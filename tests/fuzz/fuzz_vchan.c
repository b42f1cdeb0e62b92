/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rings of a vchan, as dom0 reads and writes them, with a peer that rewrites the page between
 * any two steps. What can be read or written lies in the rings. */
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "vchan/vchan_ring.h"
#include "vchan/xen_time.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(bool holds)
{
	if (!holds)
		abort();
}

/* All of it is there. */
static void touch(const struct vp_vchan_piece *piece, const char *ring, uint32_t ring_size,
		  bool is_written)
{
	expect(piece->at >= ring && piece->size <= ring_size &&
	       piece->at + piece->size <= ring + ring_size);
	for (uint32_t i = 0; i < piece->size; i++) {
		if (is_written)
			piece->at[i] = (char)i;
		else
			expect(*(volatile char *)&piece->at[i] == piece->at[i]);
	}
}

static void step(struct vp_vchan_ring *ring, uint32_t wanted)
{
	struct vp_vchan_piece piece;

	if (vp_vchan_readable(ring, &piece)) {
		touch(&piece, ring->in, ring->in_size, false);
		(void)!vp_vchan_consume(ring, piece.size ? wanted % (piece.size + 1) : 0);
	}
	if (vp_vchan_writable(ring, &piece)) {
		touch(&piece, ring->out, ring->out_size, true);
		(void)!vp_vchan_produce(ring, piece.size ? wanted % (piece.size + 1) : 0);
	}
	vp_vchan_request(ring, VP_VCHAN_READ | VP_VCHAN_WRITTEN);
}

static void try_rings(struct vp_cursor *input)
{
	struct vp_vchan_page *page = malloc(VP_VCHAN_PAGE);
	uint16_t left, right;

	memset(page, 0, VP_VCHAN_PAGE);
	uint32_t orders = vp_cursor_u32(input);
	page->left_order = (uint16_t)orders;
	page->right_order = (uint16_t)(orders >> 16);
	if (vp_vchan_orders_read(page, &left, &right)) {
		uint32_t n_left = vp_vchan_pages_of(left), n_right = vp_vchan_pages_of(right);
		char *of_left = malloc((size_t)n_left * VP_VCHAN_PAGE + 1);
		char *of_right = malloc((size_t)n_right * VP_VCHAN_PAGE + 1);
		struct vp_vchan_ring ring = {.page = page,
					     .in = vp_vchan_bytes_of(page, of_right, right),
					     .out = vp_vchan_bytes_of(page, of_left, left),
					     .in_size = 1U << right,
					     .out_size = 1U << left};
		memset(of_left, 0, (size_t)n_left * VP_VCHAN_PAGE + 1);
		memset(of_right, 0, (size_t)n_right * VP_VCHAN_PAGE + 1);
		for (uint32_t i = 0; i < n_left + n_right; i++)
			page->grants[i] = i;
		while (vp_cursor_ok(input) && vp_cursor_left(input)) {
			struct vp_slice head = vp_cursor_bytes(input, 24);
			if (vp_cursor_ok(input))
				memcpy(page, head.bytes, head.size);
			step(&ring, vp_cursor_u32(input));
		}
		free(of_left);
		free(of_right);
	}
	free(page);
}

/* A guest's clock may be anything. */
static void try_time(struct vp_cursor input)
{
	const struct vp_xen_time own = {1000000, 1000000, 0x80000000, 1};
	struct vp_xen_time time = {.tsc = vp_cursor_u64(&input), .ns = vp_cursor_u64(&input)};

	time.mul = vp_cursor_u32(&input);
	time.shift = (int32_t)vp_cursor_u32(&input);
	if (!vp_xen_time_is_sane(&time))
		return;
	struct vp_xen_relation relation = vp_xen_relate(&time, &own);
	expect(!relation.frac_bits == !relation.ratio);
	(void)vp_xen_time_at(&time, time.ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_cursor input = vp_cursor_of((const char *)bytes, size);

	try_time(input);
	try_rings(&input);
	return 0;
}
