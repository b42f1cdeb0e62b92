/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/kernel.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "guestmem/kernel/derive.h"
#include "guestmem/kernel/kallsyms.h"
#include "guestmem/kernel/kernel_arm.h"
#include "guestmem/kernel/places.h"
#include "guestmem/memory/memory.h"
#include "maps/format.h"
#include "maps/guest_btf.h"
#include "schema/paging.h"

enum {
	PAGE = 4096,
	LARGE_PAGE = 2 << 20,
	CR4_LA57 = 1 << 12,
	KPTI_BIT = 1 << 12, /* in CR3: selects the user half of a pair of top-level tables */
	MAX_NOTES = 1 << 16,
	MAX_BTF = 64 << 20,
	PAGE_FAULT = 14,
	INDEX_SIZE = 512, /* size of kallsyms' token_index */
};

/* Reads the address of the page-fault handler from the interrupt descriptor table; 0:
 * unreadable. */
static uint64_t handler_in_idt(const struct vp_guest_view *view, uint64_t idt)
{
	uint64_t gate[2];

	if (!idt || !vp_guest_view_read(view, idt + PAGE_FAULT * sizeof(gate), gate, sizeof(gate)))
		return 0;
	return (gate[0] & 0xffff) | (gate[0] >> 48 << 16) | gate[1] << 32;
}

static bool find_by_registers(const struct vp_guest_memory *memory,
			      const struct vp_guest_registers *vcpu, struct vp_guest_view *ret)
{
	/* With page-table isolation, user space uses the second table of a pair, which maps almost
	 * nothing of the kernel. */
	const uint64_t roots[] = {
	    vp_guest_memory_physical(memory, vcpu->cr3),
	    vp_guest_memory_physical(memory, vcpu->cr3 & ~(uint64_t)KPTI_BIT)};

	if (!vcpu->cr3)
		return false;
	for (size_t i = 0; i < VP_ARRAY_SIZE(roots); i++) {
		struct vp_guest_view view = {.memory = memory,
					     .root = roots[i],
					     .paging = vp_paging_x86(vcpu->cr4 & CR4_LA57 ? 5 : 4)};
		if (vp_guest_view_find_image(&view, vcpu->lstar) ||
		    vp_guest_view_find_image(&view, handler_in_idt(&view, vcpu->idt))) {
			*ret = view;
			return true;
		}
	}
	return false;
}

static void kernel_read_pages(const struct vp_guest_memory *memory, uint64_t gpa, uint64_t size,
			      char *bytes)
{
	for (uint64_t at = 0; at < size; at += LARGE_PAGE) {
		size_t piece = size - at < LARGE_PAGE ? (size_t)(size - at) : LARGE_PAGE;
		if (vp_guest_memory_read(memory, gpa + at, bytes + at, piece))
			continue;
		for (size_t page = 0; page < piece; page += PAGE) {
			size_t part = piece - page < PAGE ? piece - page : PAGE;
			if (!vp_guest_memory_read(memory, gpa + at + page, bytes + at + page, part))
				memset(bytes + at + page, 0, part);
		}
	}
}

static void read_image(const struct vp_guest_view *view, struct vp_buffer *image)
{
	image->size = 0;
	char *bytes = vp_buffer_extend(image, view->image_size);
	kernel_read_pages(view->memory, view->image_gpa, view->image_size, bytes);
}

bool vp_guest_kernel_tables(const struct vp_guest_kernel *kernel, struct vp_buffer *bytes,
			    struct vp_kallsyms *tables)
{
	const struct vp_guest_view *view = &kernel->view;
	const struct vp_kallsyms *in_image = &kernel->pack.kallsyms;
	uint64_t names = in_image->names, offsets = in_image->offsets;
	uint64_t from = names < offsets ? names : offsets;
	uint64_t index_end = in_image->token_index + INDEX_SIZE;
	uint64_t offsets_end = offsets + 4ULL * in_image->count;
	uint64_t to = index_end > offsets_end ? index_end : offsets_end;

	if (to > view->image_size || from >= to || in_image->token_table < from ||
	    in_image->token_index < from)
		return false;
	*tables = *in_image;
	tables->names -= from;
	tables->offsets -= from;
	tables->token_table -= from;
	tables->token_index -= from;
	tables->base += kernel->text + (in_image->encoding == VP_KALLSYMS_SELF_RELATIVE ? from : 0);
	bytes->size = 0;
	kernel_read_pages(view->memory, view->image_gpa + from, to - from,
			  vp_buffer_extend(bytes, to - from));
	return true;
}

/* Cuts off the image before _text, and makes all offsets relative to _text. */
static bool begin_at_text(struct vp_guest_view *view, struct vp_buffer *image, uint64_t text,
			  struct vp_kallsyms *tables)
{
	uint64_t before = text - view->image_va;

	if (before >= image->size || tables->names < before || tables->offsets < before ||
	    tables->token_table < before || tables->token_index < before)
		return false;
	memmove(image->bytes, image->bytes + before, image->size - before);
	image->size -= before;
	view->image_va += before;
	view->image_gpa += before;
	view->image_size -= before;
	tables->names -= before;
	tables->offsets -= before;
	tables->token_table -= before;
	tables->token_index -= before;
	tables->base =
	    (tables->encoding == VP_KALLSYMS_SELF_RELATIVE ? tables->base + before : tables->base) -
	    text;
	return true;
}

/* Reads the build-id from the kernel's notes in memory. */
static bool read_build_id(const struct vp_guest_kernel *kernel, const struct vp_kernel_pack *pack,
			  struct vp_build_id *ret)
{
	uint64_t start = vp_guest_kernel_symbol(kernel, pack->symbol.start_notes);
	uint64_t size = vp_guest_kernel_symbol(kernel, pack->symbol.stop_notes) - start;

	*ret = (struct vp_build_id){0};
	if (!start || size > MAX_NOTES)
		return false;
	VP_AUTO_FREE char *notes = vp_alloc(size + 1);
	return vp_guest_view_read(&kernel->view, start, notes, size) &&
	       vp_build_id_in_notes(notes, size, ret);
}

static bool hash_range(const struct vp_guest_kernel *kernel, uint64_t from, uint64_t to,
		       XXH3_state_t *state)
{
	VP_AUTO_FREE char *bytes = vp_alloc(LARGE_PAGE);

	if (from > to || to - from > VP_KERNEL_IMAGE_MAX)
		return false;
	for (uint64_t at = from; at < to; at += LARGE_PAGE) {
		size_t piece = to - at < LARGE_PAGE ? (size_t)(to - at) : LARGE_PAGE;
		if (!vp_guest_view_read(&kernel->view, kernel->text + at, bytes, piece))
			return false;
		XXH3_64bits_update(state, bytes, piece);
	}
	return true;
}

/* Hashes the symbol table and the BTF with the pack's seed. */
static bool hash_evidence(const struct vp_guest_kernel *kernel, const struct vp_kernel_pack *pack,
			  uint64_t *ret)
{
	const struct vp_kallsyms *tables = &pack->kallsyms;
	uint64_t btf = pack->symbol.start_btf.offset, btf_end = pack->symbol.stop_btf.offset;
	XXH3_state_t *state = XXH3_createState();

	XXH3_64bits_reset_withSeed(state, pack->seed);
	bool read =
	    hash_range(kernel, tables->names, tables->token_index + INDEX_SIZE, state) &&
	    hash_range(kernel, tables->offsets, tables->offsets + 4ULL * tables->count, state) &&
	    (btf == VP_PACK_NONE || hash_range(kernel, btf, btf_end, state));
	*ret = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return read;
}

/* Reads the banner, and the release, its third word: "Linux version 6.1.0-49-cloud-amd64 (…". */
static void read_banner(struct vp_guest_kernel *kernel)
{
	uint64_t banner = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.banner);

	if (!banner ||
	    !vp_guest_view_string(&kernel->view, banner, kernel->banner, sizeof(kernel->banner)))
		kernel->banner[0] = 0;
	kernel->banner[strcspn(kernel->banner, "\n")] = 0;
	if (sscanf(kernel->banner, "Linux version %79s", kernel->pack.release) != 1)
		kernel->pack.release[0] = 0;
}

/* Sets the offsets of members from the BTF; without valid BTF they stay unknown. */
static void read_members(struct vp_guest_kernel *kernel, const struct vp_buffer *image)
{
	struct vp_kernel_pack *pack = &kernel->pack;
	uint64_t start = pack->symbol.start_btf.offset, end = pack->symbol.stop_btf.offset;
	struct vp_guest_btf btf;

	if (start == VP_PACK_NONE || end == VP_PACK_NONE || start >= end || end > image->size ||
	    end - start > MAX_BTF)
		return;
	struct vp_error *error = vp_guest_btf_init(image->bytes + start, end - start, &btf);
	if (!error) {
		vp_kernel_pack_members(pack, &btf);
		if (kernel->view.memory->arch == VP_GUEST_ARM64) {
			vp_guest_places_find_tasks(kernel, image, &btf);
			vp_guest_places_find_modules(kernel, image);
		}
		vp_guest_btf_deinit(&btf);
	}
	vp_error_free(error);
}

static struct vp_error *read_pack(struct vp_guest_kernel *kernel, uint64_t seed,
				  struct vp_buffer *image)
{
	struct vp_kernel_pack *pack = &kernel->pack;

	vp_kernel_pack_init(pack);
	VP_TRY(vp_kallsyms_find(image->bytes, image->size, kernel->view.image_va, &pack->kallsyms));
	if (!vp_kernel_pack_symbols(pack, image->bytes, image->size, &kernel->text))
		return vp_error_new("the kernel's symbol table is inconsistent or has no '_text'");
	if (!begin_at_text(&kernel->view, image, kernel->text, &pack->kallsyms))
		return vp_error_new("the kernel's symbol table is inconsistent");
	if (pack->symbol.banner.offset == VP_PACK_NONE) /* no CONFIG_KALLSYMS_ALL */
		vp_guest_places_find(pack, image);
	if (kernel->view.memory->arch == VP_GUEST_ARM64)
		vp_guest_places_find_forks(pack, image);
	kernel->route = VP_PACK_READ;
	read_banner(kernel);
	if (!read_build_id(kernel, pack, &pack->build_id))
		return vp_error_new("the kernel has no build-id");
	read_members(kernel, image);
	pack->seed = seed;
	if (!hash_evidence(kernel, pack, &pack->hash))
		pack->seed = 0;
	return NULL;
}

/* Whether the pack has no list of modules: it was made before the first one was loaded, in a kernel
 * whose symbol table has functions only. */
static bool is_before_modules(const struct vp_kernel_pack *pack)
{
	return pack->symbol.modules.offset == VP_PACK_NONE &&
	       pack->symbol.init_mm.offset == VP_PACK_NONE && pack->at.module_list != VP_PACK_NONE;
}

/* Uses the cached pack whose build-id and evidence match the kernel in memory. An incomplete pack
 * is skipped, so that a new one is made. */
static bool use_pack(struct vp_guest_kernel *kernel, const vp_kernel_packs *packs)
{
	const struct vp_guest_view found = kernel->view;

	vp_vec_each (packs, pack) {
		struct vp_build_id build_id;
		uint64_t hash;
		kernel->text = found.image_va;
		if (!read_build_id(kernel, pack, &build_id) ||
		    !vp_build_id_equal(&build_id, &pack->build_id) || !pack->seed ||
		    vp_kernel_pack_lacks(pack) || is_before_modules(pack) ||
		    !hash_evidence(kernel, pack, &hash) || hash != pack->hash)
			continue;
		kernel->pack = *pack;
		kernel->route = VP_PACK_CACHED;
		read_banner(kernel);
		return true;
	}
	return false;
}

static void settle_x86(struct vp_guest_kernel *kernel)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint64_t top = vp_guest_kernel_symbol(kernel, pack->symbol.init_top_pgt);
	uint64_t five = vp_guest_kernel_symbol(kernel, pack->symbol.l5_enabled);
	uint64_t direct = vp_guest_kernel_symbol(kernel, pack->symbol.page_offset_base);
	uint64_t memmap = vp_guest_kernel_symbol(kernel, pack->symbol.vmemmap_base);
	uint32_t enabled = 0;

	if (top)
		kernel->view.root = kernel->view.image_gpa + (top - kernel->view.image_va);
	if (!kernel->view.paging.levels)
		kernel->view.paging = vp_paging_x86(
		    five && vp_guest_view_u32(&kernel->view, five, &enabled) && enabled ? 5 : 4);
	if (!direct || !vp_guest_view_u64(&kernel->view, direct, &kernel->view.direct_map) ||
	    kernel->view.direct_map % (1 << 30) || (int64_t)kernel->view.direct_map >= 0)
		kernel->view.direct_map = 0;
	if (!memmap || !vp_guest_view_u64(&kernel->view, memmap, &kernel->memmap))
		kernel->memmap = 0;
}

/* Switches to the kernel's own page tables, which no process exit frees. Sets `lacks`. */
static void kernel_settle(struct vp_guest_kernel *kernel)
{
	const struct vp_kernel_pack *pack = &kernel->pack;

	if (kernel->view.memory->arch == VP_GUEST_ARM64)
		vp_guest_kernel_settle_arm(kernel);
	else
		settle_x86(kernel);
	if (pack->at.task_pid == VP_PACK_NONE) /* no BTF, or unreadable */
		vp_guest_derive_tasks(kernel);
	const char *lacks = vp_kernel_pack_lacks(pack);
	if (!lacks && !kernel->view.direct_map)
		lacks = "the base of the direct map";
	kernel->lacks = lacks ? vp_strdup(lacks) : NULL;
}

bool vp_guest_kernel_locate(const struct vp_guest_memory *memory,
			    const struct vp_guest_registers *vcpus, size_t n_vcpus, bool *known,
			    struct vp_guest_view *ret)
{
	*known = false;
	for (size_t i = 0; i < n_vcpus; i++) {
		*known |= vcpus[i].cr3 != 0;
		if (memory->arch == VP_GUEST_ARM64
			? vp_guest_kernel_by_arm_registers(memory, &vcpus[i], ret)
			: find_by_registers(memory, &vcpus[i], ret)) {
			ret->vcpus = vcpus;
			ret->n_vcpus = n_vcpus;
			return true;
		}
	}
	return false;
}

struct vp_error *vp_guest_kernel_read(const struct vp_guest_view *found,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret)
{
	*ret = (struct vp_guest_kernel){.view = *found};
	if (!use_pack(ret, packs)) {
		struct vp_buffer image = {0};
		read_image(&ret->view, &image);
		struct vp_error *error = read_pack(ret, seed, &image);
		vp_buffer_deinit(&image);
		if (error)
			return error;
	}
	kernel_settle(ret);
	return NULL;
}

struct vp_error *vp_guest_kernel_find(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpus, size_t n_vcpus,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret)
{
	struct vp_guest_view found;
	bool known;

	*ret = (struct vp_guest_kernel){0};
	if (!vp_guest_kernel_locate(memory, vcpus, n_vcpus, &known, &found))
		return vp_error_new("no Linux kernel was found in the guest's memory");
	return vp_guest_kernel_read(&found, packs, seed, ret);
}

void vp_guest_kernel_find_modules(struct vp_guest_kernel *kernel)
{
	struct vp_buffer image = {0};

	if (kernel->view.memory->arch != VP_GUEST_ARM64 || !is_before_modules(&kernel->pack))
		return;
	read_image(&kernel->view, &image);
	vp_guest_places_find_modules(kernel, &image);
	vp_buffer_deinit(&image);
}

void vp_guest_kernel_deinit(struct vp_guest_kernel *kernel)
{
	free(kernel->lacks);
	*kernel = (struct vp_guest_kernel){0};
}
