/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/guest_view.h"

#include <string.h>

/* Intel 64 and AMD64 page table entries: volume 3A, chapter 4 of Intel's manual. */
enum { ENTRY_PRESENT = 1, ENTRY_USER = 4, ENTRY_LARGE = 0x80 };
#define ENTRY_ADDRESS 0x000ffffffffff000ULL
enum {
	PAGE = 4096,
	LARGE_PAGE = 2 << 20,
	BITS_PER_LEVEL = 9,
	PAGE_BITS = 12,
	MIN_IMAGE = 8 << 20,
	MAX_GAP = 16 << 20, /* inside an image: what the kernel has freed */
};

static bool is_canonical(uint64_t va, unsigned levels)
{
	unsigned unused = 64 - (PAGE_BITS + BITS_PER_LEVEL * levels);

	return (uint64_t)((int64_t)(va << unused) >> unused) == va;
}

bool vp_guest_view_walk(const struct vp_guest_view *view, uint64_t va, struct vp_guest_page *ret)
{
	uint64_t table = view->root & ENTRY_ADDRESS;
	bool user = true;

	if (!table || view->levels < 4 || view->levels > 5 || !is_canonical(va, view->levels))
		return false;
	for (unsigned level = view->levels; level; level--) {
		unsigned shift = PAGE_BITS + BITS_PER_LEVEL * (level - 1);
		uint64_t entry, index = (va >> shift) & 511;
		if (!vp_guest_memory_read(view->memory, table + 8 * index, &entry, sizeof(entry)) ||
		    !(entry & ENTRY_PRESENT))
			return false;
		user &= (entry & ENTRY_USER) != 0;
		bool large = (level == 2 || level == 3) && (entry & ENTRY_LARGE);
		if (level == 1 || large) {
			uint64_t size = 1ULL << shift, inside = va & (size - 1);
			uint64_t page = vp_guest_memory_physical(
			    view->memory, entry & ENTRY_ADDRESS & ~(size - 1));
			*ret = (struct vp_guest_page){page | inside, size - inside, user};
			return true;
		}
		table = vp_guest_memory_physical(view->memory, entry & ENTRY_ADDRESS);
	}
	return false;
}

bool vp_guest_view_find_image(struct vp_guest_view *view, uint64_t inside)
{
	uint64_t base = inside & ~(LARGE_PAGE - 1ULL), first = base, last = base;
	struct vp_guest_page page;

	if (inside - VP_KERNEL_MAP >= VP_KERNEL_MAP_SIZE ||
	    !vp_guest_view_walk(view, inside, &page))
		return false;
	uint64_t shift = inside - page.gpa; /* of addresses against physical ones */
	for (uint64_t at = base; base - at <= VP_KERNEL_IMAGE_MAX / 2 && first - at <= MAX_GAP;
	     at -= LARGE_PAGE)
		if (vp_guest_view_walk(view, at, &page) && at - page.gpa == shift)
			first = at;
	for (uint64_t at = base; at - first < VP_KERNEL_IMAGE_MAX && at - last <= MAX_GAP;
	     at += LARGE_PAGE)
		if (vp_guest_view_walk(view, at, &page) && at - page.gpa == shift)
			last = at;
	view->image_va = first;
	view->image_gpa = first - shift;
	view->image_size = last + LARGE_PAGE - first;
	return view->image_size >= MIN_IMAGE;
}

bool vp_guest_view_translate(const struct vp_guest_view *view, uint64_t va,
			     struct vp_guest_page *ret)
{
	uint64_t in_image = va - view->image_va, in_direct = va - view->direct_map;

	if (view->image_va && in_image < view->image_size) {
		*ret = (struct vp_guest_page){view->image_gpa + in_image,
					      view->image_size - in_image, false};
		return true;
	}
	if (view->direct_map && va >= view->direct_map) {
		uint64_t left = vp_guest_memory_left(view->memory, in_direct);
		if (left) {
			*ret = (struct vp_guest_page){in_direct, left, false};
			return true;
		}
	}
	return vp_guest_view_walk(view, va, ret);
}

bool vp_guest_view_read(const struct vp_guest_view *view, uint64_t va, void *bytes, size_t size)
{
	char *to = bytes;

	while (size) {
		struct vp_guest_page page;
		if (!vp_guest_view_translate(view, va, &page))
			return false;
		size_t piece = page.left < size ? (size_t)page.left : size;
		if (!vp_guest_memory_read(view->memory, page.gpa, to, piece))
			return false;
		to += piece;
		va += piece;
		size -= piece;
	}
	return true;
}

bool vp_guest_view_u64(const struct vp_guest_view *view, uint64_t va, uint64_t *ret)
{
	return vp_guest_view_read(view, va, ret, sizeof(*ret));
}

bool vp_guest_view_u32(const struct vp_guest_view *view, uint64_t va, uint32_t *ret)
{
	return vp_guest_view_read(view, va, ret, sizeof(*ret));
}

bool vp_guest_view_string(const struct vp_guest_view *view, uint64_t va, char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t piece = PAGE - (va + at) % PAGE;
		if (piece > size - at)
			piece = size - at;
		if (!vp_guest_view_read(view, va + at, text + at, piece))
			return false;
		if (memchr(text + at, 0, piece))
			return true;
		at += piece;
	}
	return false;
}
