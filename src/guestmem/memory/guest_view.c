/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/memory/guest_view.h"

#include <string.h>

enum {
	PAGE = 4096,
	MIN_IMAGE = 8 << 20,
	MAX_HOLES = 1 << 16,
	MAX_GAP = 16 << 20, /* maximum unmapped gap in an image: memory freed by the kernel */
	ARM_MAGIC_AT = 56,  /* offset in an image: Documentation/arch/arm64/booting.rst */
};
static const char arm_magic[] = "ARM\x64";

/* Whether the address is canonical: all bits above the translated ones equal the highest translated
 * bit, or only each other if each half has its own tables. */
static bool is_canonical(const struct vp_guest_view *view, uint64_t va)
{
	int64_t above = (int64_t)va >> (view->paging.va_bits - 1 + view->paging.halves);

	return above == 0 || above == -1;
}

bool vp_guest_view_walk(const struct vp_guest_view *view, uint64_t va, struct vp_guest_page *ret)
{
	const struct vp_paging *paging = &view->paging;
	uint64_t table = view->root & paging->root;
	bool user = true;

	if (!table || !paging->levels || paging->levels > VP_PAGING_LEVELS ||
	    !is_canonical(view, va))
		return false;
	for (unsigned level = paging->levels; level; level--) {
		uint64_t entry, at = table + 8 * vp_paging_index(paging, level, va);
		if (!vp_guest_memory_read(view->memory, at, &entry, sizeof(entry)) ||
		    !vp_paging_is_valid(paging, level, entry))
			return false;
		uint64_t address = vp_paging_address(paging, entry);
		if (vp_paging_is_leaf(paging, level, entry)) {
			uint64_t size = 1ULL << vp_paging_shift(paging, level);
			uint64_t inside = va & (size - 1);
			uint64_t page =
			    vp_guest_memory_physical(view->memory, address & ~(size - 1));
			user &= (entry & paging->user_page) == paging->user_page;
			*ret = (struct vp_guest_page){page | inside, size - inside, user};
			return true;
		}
		user &= (entry & paging->user_table) == paging->user_table &&
			!(entry & paging->kernel_table);
		table = vp_guest_memory_physical(view->memory, address);
	}
	return false;
}

static bool is_in_window(const struct vp_guest_view *view, uint64_t va)
{
	return view->memory->arch == VP_GUEST_ARM64 ? va >> 63
						    : va - VP_KERNEL_MAP < VP_KERNEL_MAP_SIZE;
}

/* Extends Arm's image to its header, which some kernels do not map (for example 6.1). */
static void begin_at_header(struct vp_guest_view *view)
{
	char magic[sizeof(arm_magic) - 1];

	if (vp_guest_memory_read(view->memory, view->image_gpa + ARM_MAGIC_AT, magic,
				 sizeof(magic)) &&
	    !memcmp(magic, arm_magic, sizeof(magic)))
		return;
	if (view->image_gpa < VP_ARM_KERNEL_ALIGN)
		return;
	view->image_va -= VP_ARM_KERNEL_ALIGN;
	view->image_gpa -= VP_ARM_KERNEL_ALIGN;
	view->image_size += VP_ARM_KERNEL_ALIGN;
}

/* Returns the next address after the unmapped `va` that may be mapped. */
static uint64_t skip_hole(const struct vp_guest_view *view, uint64_t va)
{
	const struct vp_paging *paging = &view->paging;
	uint64_t table = view->root & paging->root, size = 1;

	for (unsigned level = paging->levels; level; level--) {
		uint64_t entry, at = table + 8 * vp_paging_index(paging, level, va);
		size = 1ULL << vp_paging_shift(paging, level);
		if (!vp_guest_memory_read(view->memory, at, &entry, sizeof(entry)) ||
		    !vp_paging_is_valid(paging, level, entry) ||
		    vp_paging_is_leaf(paging, level, entry))
			break;
		table = vp_guest_memory_physical(view->memory, vp_paging_address(paging, entry));
	}
	return (va & ~(size - 1)) + size;
}

bool vp_guest_view_first_page(const struct vp_guest_view *view, uint64_t from, uint64_t to,
			      uint64_t *va, struct vp_guest_page *ret)
{
	*va = from;
	for (unsigned i = 0; i < MAX_HOLES && view->paging.levels && *va >= from && *va < to; i++) {
		if (vp_guest_view_walk(view, *va, ret))
			return true;
		*va = skip_hole(view, *va);
	}
	return false;
}

bool vp_guest_view_find_image(struct vp_guest_view *view, uint64_t inside)
{
	const bool arm = view->memory->arch == VP_GUEST_ARM64;
	const uint64_t step = arm ? VP_ARM_KERNEL_ALIGN : VP_X86_KERNEL_ALIGN;
	uint64_t base = inside & ~(step - 1), first = base, last = base;
	struct vp_guest_page page;

	if (!is_in_window(view, inside) || !vp_guest_view_walk(view, inside, &page))
		return false;
	uint64_t shift = inside - page.gpa; /* virtual minus physical address */
	for (uint64_t at = base; base - at <= VP_KERNEL_IMAGE_MAX / 2 && first - at <= MAX_GAP;
	     at -= step)
		if (vp_guest_view_walk(view, at, &page) && at - page.gpa == shift)
			first = at;
	for (uint64_t at = base; at - first < VP_KERNEL_IMAGE_MAX && at - last <= MAX_GAP;
	     at += step)
		if (vp_guest_view_walk(view, at, &page) && at - page.gpa == shift)
			last = at;
	view->image_va = first;
	view->image_gpa = first - shift;
	view->image_size = last + step - first;
	if (arm)
		begin_at_header(view);
	return view->image_size >= MIN_IMAGE;
}

bool vp_guest_view_paging_of_kernels(enum vp_guest_arch arch, unsigned number,
				     struct vp_paging *ret)
{
	/* Page sizes and address bits; kernels for 52 bits also run on processors with 48. */
	static const struct {
		unsigned char page_bits, va_bits;
		bool wide;
	} arm[] = {{12, 48, false}, {14, 47, false}, {16, 52, false}, {12, 52, true},
		   {14, 48, false}, {14, 52, true},  {16, 48, false}, {16, 42, false},
		   {12, 39, false}, {14, 36, false}};

	if (arch == VP_GUEST_ARM64 && number < VP_ARRAY_SIZE(arm))
		*ret = vp_paging_arm(arm[number].page_bits, arm[number].va_bits, arm[number].wide);
	else if (arch == VP_GUEST_X86_64 && number < 2)
		*ret = vp_paging_x86(4 + number);
	else
		return false;
	return true;
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
