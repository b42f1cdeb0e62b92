/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vchan/vchan_ring.h"

_Static_assert(offsetof(struct vp_vchan_page, client_live) == 20, "as in Xen's libxenvchan.h");
_Static_assert(offsetof(struct vp_vchan_page, grants) == 24, "as in Xen's libxenvchan.h");

static bool is_order(uint16_t order)
{
	return order >= VP_VCHAN_SMALL_ORDER && order <= VP_VCHAN_MAX_ORDER;
}

bool vp_vchan_orders_read(const struct vp_vchan_page *page, uint16_t *left, uint16_t *right)
{
	*left = __atomic_load_n(&page->left_order, __ATOMIC_ACQUIRE);
	*right = __atomic_load_n(&page->right_order, __ATOMIC_ACQUIRE);
	/* Two rings of the same small order would overlap; larger orders have too many grants
	 * for the page. */
	return is_order(*left) && is_order(*right) &&
	       (*left != *right || *left >= VP_VCHAN_PAGE_ORDER) &&
	       vp_vchan_pages_of(*left) + vp_vchan_pages_of(*right) <=
		   ((1U << VP_VCHAN_SMALL_ORDER) - offsetof(struct vp_vchan_page, grants)) /
		       sizeof(uint32_t);
}

uint32_t vp_vchan_pages_of(uint16_t order)
{
	return order < VP_VCHAN_PAGE_ORDER ? 0 : 1U << (order - VP_VCHAN_PAGE_ORDER);
}

char *vp_vchan_bytes_of(struct vp_vchan_page *page, char *pages, uint16_t order)
{
	return order < VP_VCHAN_PAGE_ORDER ? (char *)page + (1U << order) : pages;
}

static struct vp_vchan_half *in_of(const struct vp_vchan_ring *ring)
{
	return ring->is_server ? &ring->page->left : &ring->page->right;
}

static struct vp_vchan_half *out_of(const struct vp_vchan_ring *ring)
{
	return ring->is_server ? &ring->page->right : &ring->page->left;
}

/* The contiguous piece from `index`, up to the end of the ring. */
static struct vp_vchan_piece piece_of(char *bytes, uint32_t ring_size, uint32_t index,
				      uint32_t size)
{
	uint32_t at = index & (ring_size - 1), left = ring_size - at;

	return (struct vp_vchan_piece){bytes + at, size < left ? size : left};
}

bool vp_vchan_readable(const struct vp_vchan_ring *ring, struct vp_vchan_piece *ret)
{
	uint32_t produced = __atomic_load_n(&in_of(ring)->produced, __ATOMIC_ACQUIRE);
	uint32_t size = produced - ring->consumed;

	if (size > ring->in_size)
		return false;
	*ret = piece_of(ring->in, ring->in_size, ring->consumed, size);
	return true;
}

bool vp_vchan_writable(const struct vp_vchan_ring *ring, struct vp_vchan_piece *ret)
{
	uint32_t consumed = __atomic_load_n(&out_of(ring)->consumed, __ATOMIC_ACQUIRE);
	uint32_t used = ring->produced - consumed;

	if (used > ring->out_size)
		return false;
	*ret = piece_of(ring->out, ring->out_size, ring->produced, ring->out_size - used);
	return true;
}

/* Whether the peer requested the event; clears the request. */
static bool vchan_ring_was_requested(const struct vp_vchan_ring *ring, uint8_t event)
{
	uint8_t *asked = ring->is_server ? &ring->page->server_notify : &ring->page->client_notify;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* orders the index before the request */
	return __atomic_fetch_and(asked, (uint8_t)~event, __ATOMIC_SEQ_CST) & event;
}

bool vp_vchan_consume(struct vp_vchan_ring *ring, uint32_t size)
{
	ring->consumed += size;
	__atomic_store_n(&in_of(ring)->consumed, ring->consumed, __ATOMIC_RELEASE);
	return vchan_ring_was_requested(ring, VP_VCHAN_READ);
}

bool vp_vchan_produce(struct vp_vchan_ring *ring, uint32_t size)
{
	ring->produced += size;
	__atomic_store_n(&out_of(ring)->produced, ring->produced, __ATOMIC_RELEASE);
	return vchan_ring_was_requested(ring, VP_VCHAN_WRITTEN);
}

bool vp_vchan_is_read(const struct vp_vchan_ring *ring)
{
	return __atomic_load_n(&out_of(ring)->consumed, __ATOMIC_ACQUIRE) == ring->produced;
}

void vp_vchan_request(const struct vp_vchan_ring *ring, uint8_t events)
{
	uint8_t *asked = ring->is_server ? &ring->page->client_notify : &ring->page->server_notify;

	__atomic_fetch_or(asked, events, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(
	    __ATOMIC_SEQ_CST); /* orders the request before the next read of the indices */
}

uint8_t vp_vchan_peer(const struct vp_vchan_ring *ring)
{
	return __atomic_load_n(ring->is_server ? &ring->page->client_live
					       : &ring->page->server_live,
			       __ATOMIC_ACQUIRE);
}

void vp_vchan_declare(const struct vp_vchan_ring *ring, enum vp_vchan_live live)
{
	__atomic_store_n(ring->is_server ? &ring->page->server_live : &ring->page->client_live,
			 (uint8_t)live, __ATOMIC_SEQ_CST);
}
