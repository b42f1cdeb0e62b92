/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/kernel_arm.h"

#include "base/macros.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/memory.h"
#include "schema/paging.h"

/* Layout of TCR_EL1 and TTBR1_EL1: Arm Architecture Reference Manual, D24.2. */
static struct vp_paging paging_by_tcr(uint64_t tcr)
{
	static const unsigned char page_bits[] = {[1] = 14, [2] = 12, [3] = 16}; /* TG1 */
	unsigned size = tcr >> 16 & 63;                                          /* T1SZ */
	bool wide = tcr >> 59 & 1;                                               /* DS */

	return vp_paging_arm(page_bits[tcr >> 30 & 3], 64 - size, wide);
}

static uint64_t root_by_ttbr(uint64_t ttbr, uint64_t tcr)
{
	enum { IPS_52_BITS = 6 };
	uint64_t address = ttbr & 0x0000fffffffffffeULL;

	if ((tcr >> 32 & 7) != IPS_52_BITS)
		return address;
	return (address & ~0x3fULL) | (ttbr >> 2 & 15) << 48;
}

bool vp_guest_kernel_by_arm_registers(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpu,
				      struct vp_guest_view *ret)
{
	struct vp_guest_view view = {.memory = memory,
				     .root = root_by_ttbr(vcpu->ttbr1, vcpu->tcr),
				     .paging = paging_by_tcr(vcpu->tcr)};

	if (!view.root || !view.paging.levels || !vp_guest_view_find_image(&view, vcpu->vbar))
		return false;
	*ret = view;
	return true;
}

static bool maps(const struct vp_guest_view *view, uint64_t va, uint64_t gpa)
{
	struct vp_guest_page page;

	return vp_guest_view_walk(view, va, &page) && page.gpa == gpa;
}

/* Finds the kernel's own top-level page table. A kernel for 52 address bits uses only the last part
 * of it on a processor with 48: TTBR1 points to that part. */
static void find_top(struct vp_guest_kernel *kernel)
{
	struct vp_guest_view own = kernel->view;
	uint64_t top = vp_guest_kernel_symbol(kernel, vp_kernel_pack_top(&kernel->pack));
	uint64_t inside = kernel->view.image_size / 2 & ~(VP_ARM_KERNEL_ALIGN - 1);
	const struct vp_paging *paging = &own.paging;
	uint64_t entries = 1ULL << (paging->page_bits - 3), used = entries;

	if (!top || !paging->levels)
		return;
	unsigned shift = vp_paging_shift(paging, paging->levels);
	if (paging->va_bits > shift && paging->va_bits - shift < paging->page_bits - 3)
		used = 1ULL << (paging->va_bits - shift);
	const uint64_t before[] = {0, (1ULL << (52 - 42)) - used};
	for (size_t i = 0; i < VP_ARRAY_SIZE(before) && before[i] < entries; i++) {
		own.root = own.image_gpa + (top - own.image_va) + 8 * before[i];
		if (!maps(&own, own.image_va + inside, own.image_gpa + inside))
			continue;
		kernel->view.root = own.root;
		return;
	}
}

/* Finds the direct map: the lowest mapping of the kernel half, which maps the image a second
 * time. */
static void find_direct_map(struct vp_guest_view *view)
{
	uint64_t first = -(1ULL << view->paging.va_bits), last = -(1ULL << 32), va;
	struct vp_guest_page page;

	view->direct_map = 0;
	if (vp_guest_view_first_page(view, first, last, &va, &page) &&
	    maps(view, va - page.gpa + view->image_gpa, view->image_gpa))
		view->direct_map = va - page.gpa;
}

static unsigned log2_of(uint32_t size)
{
	unsigned log2 = 0;

	while (size > 1U << log2 && log2 < 16)
		log2++;
	return log2;
}

/* Address of the struct page array with `va_bits` address bits. `way`: VMEMMAP_START as in 6.12,
 * 5.11 or 5.10 (arch/arm64/include/asm/memory.h). */
static uint64_t memmap_of(const struct vp_guest_kernel *kernel, unsigned va_bits, unsigned way)
{
	enum { MIB = 1 << 20, GIB = 1 << 30 };
	uint32_t size_of = kernel->pack.page_size_of;
	unsigned page_bits = kernel->view.paging.page_bits, log2 = log2_of(size_of);
	unsigned least = va_bits < 48 ? va_bits : page_bits == 14 ? 47 : 48;
	uint64_t range = (1ULL << va_bits) - (1ULL << (least - 1));
	uint64_t memstart = -(1ULL << va_bits) - kernel->view.direct_map;
	const uint64_t starts[] = {
	    -(uint64_t)GIB - (range >> page_bits) * size_of,
	    -(1ULL << (va_bits - (page_bits - log2))),
	    -(range >> (page_bits - log2)) - 2 * (uint64_t)MIB,
	};

	return starts[way] - (uint64_t)((int64_t)memstart >> page_bits) * size_of;
}

/* Finds the struct page array: the first variant that maps the struct page of the image's first
 * page. */
static void find_memmap(struct vp_guest_kernel *kernel)
{
	static const unsigned char configured[] = {36, 39, 42, 47, 48, 52};
	enum { WAYS = 3 };
	const struct vp_guest_view *view = &kernel->view;
	uint32_t size_of = kernel->pack.page_size_of;
	unsigned page_bits = view->paging.page_bits;
	struct vp_guest_page page;

	kernel->memmap = 0;
	if (!view->direct_map || !size_of || log2_of(size_of) >= page_bits)
		return;
	for (unsigned i = 0; i < VP_ARRAY_SIZE(configured) * WAYS; i++) {
		unsigned va_bits = configured[i / WAYS];
		if (va_bits < view->paging.va_bits)
			continue;
		uint64_t memmap = memmap_of(kernel, va_bits, i % WAYS);
		if (!vp_guest_view_walk(view, memmap + (view->image_gpa >> page_bits) * size_of,
					&page))
			continue;
		kernel->memmap = memmap;
		return;
	}
}

void vp_guest_kernel_settle_arm(struct vp_guest_kernel *kernel)
{
	find_top(kernel);
	find_direct_map(&kernel->view);
	find_memmap(kernel);
}
