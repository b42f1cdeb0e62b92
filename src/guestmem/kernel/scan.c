/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "guestmem/kernel/kallsyms.h"
#include "guestmem/memory/memory.h"
#include "schema/paging.h"

#define MIB (1ULL << 20)
#define SECOND 1000000000ULL
/* Physical address of a kernel that is not relocated; minimum with KASLR. */
#define FIRST_KERNEL (16 * MIB)
/* Maximum distance from the banner to the end of the symbol tables. */
#define MAX_RODATA (64 * MIB)
/* Maximum distance from the start of the image to its read-only data. */
#define MAX_IMAGE (64 * MIB)
/* Maximum size of scanned memory; VP_GUEST_SLOTS_MAX slots could claim any size. */
#define MAX_MEMORY (16ULL << 40)

enum {
	CHUNK = 2 << 20,
	MIN_COST = 4096, /* cost of a read in addition to its size, in bytes */
	OVERLAP = 64,    /* overlap of chunks: longer than the searched text */
	MAX_BANNERS = 4, /* per page */
	AGAIN_SHARE = 4, /* pause after a search of usual addresses, in its durations … */
	AGAIN_MIN_S = 3, /* … and minimum of this pause, in seconds */
	BOOT_S = 30,     /* maximum time from a booting kernel's banner to its symbol tables */
	MAX_RELEASE = 80,
};

static const char banner_text[] = "Linux version ";

struct range {
	uint64_t gpa, end;
};

enum stage { REMEMBERED, USUAL, EVERYWHERE };

struct vp_kernel_scan {
	struct vp_scan_setup setup;
	struct vp_guest_memory careful; /* reads only pages that are present in the host */
	struct vp_throttle pace;
	VP_VEC(struct range) ranges;
	enum stage stage;
	uint64_t usual;       /* next usual address … */
	bool low;             /* … is below FIRST_KERNEL; these are searched last */
	uint64_t usual_began; /* start of the last search of usual addresses */
	uint64_t usual_again; /* start of the next one */
	uint64_t everywhere;  /* next address of the search of all memory */
	uint64_t boots_until; /* end of waiting for a booting kernel; 0: none seen */
	uint64_t done;        /* bytes covered by the search of all memory */
	bool found;           /* the last step found a kernel */
	uint64_t align;       /* alignment of kernels and their read-only data */
	char *chunk;          /* CHUNK + OVERLAP bytes */
	struct vp_buffer window;
};

/* Reads memory, but only pages that are present in the host. `context`: the memory to read. */
static bool read_backed(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct vp_guest_memory *memory = context;

	for (uint64_t at = hva / VP_GUEST_PAGE; at <= (hva + size - 1) / VP_GUEST_PAGE; at++) {
		unsigned char backed;
		memory->backed(memory->context, at * VP_GUEST_PAGE, 1, &backed);
		if (!backed)
			return false;
	}
	return memory->read(memory->context, hva, bytes, size);
}

static int by_gpa(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->gpa < b->gpa ? -1 : a->gpa > b->gpa;
}

static void list_ranges(struct vp_kernel_scan *scan)
{
	uint64_t all = 0;

	vp_vec_each (&scan->setup.memory->slots, slot)
		vp_vec_push(&scan->ranges, ((struct range){slot->gpa, slot->gpa + slot->size}));
	if (scan->ranges.count)
		qsort(scan->ranges.at, scan->ranges.count, sizeof(*scan->ranges.at), by_gpa);
	vp_vec_each (&scan->ranges, range) {
		if (range->end - range->gpa > MAX_MEMORY - all)
			range->end = range->gpa + (MAX_MEMORY - all);
		all += range->end - range->gpa;
	}
}

struct vp_kernel_scan *vp_kernel_scan_new(const struct vp_scan_setup *setup)
{
	struct vp_kernel_scan *scan = vp_alloc(sizeof(*scan));

	scan->setup = *setup;
	scan->careful = *setup->memory;
	scan->careful.read = read_backed;
	scan->careful.context = (void *)setup->memory;
	list_ranges(scan);
	scan->usual = FIRST_KERNEL;
	scan->align =
	    setup->memory->arch == VP_GUEST_ARM64 ? VP_ARM_KERNEL_ALIGN : VP_X86_KERNEL_ALIGN;
	scan->stage = setup->remembered ? REMEMBERED : USUAL;
	scan->chunk = vp_alloc(CHUNK + OVERLAP);
	vp_throttle_init(&scan->pace, setup->clock);
	scan->usual_began = scan->pace.now;
	return scan;
}

void vp_kernel_scan_free(struct vp_kernel_scan *scan)
{
	if (!scan)
		return;
	vp_vec_deinit(&scan->ranges);
	vp_buffer_deinit(&scan->window);
	free(scan->chunk);
	free(scan);
}

/* Copies guest pages that are present in the host. Adds the cost to `pace`; the caller charges
 * it. */
static size_t copy(struct vp_kernel_scan *scan, uint64_t gpa, void *bytes, size_t size)
{
	size_t got = vp_guest_memory_copy(scan->setup.memory, gpa, bytes, size);

	/* Checking whether pages are present has a cost, too. */
	scan->pace.bytes += got + MIN_COST;
	return got;
}

/* Copies a chunk and the overlap with the next one; false: no page of it is present. */
static bool copy_chunk(struct vp_kernel_scan *scan, uint64_t gpa)
{
	if (vp_guest_memory_has(scan->setup.memory, gpa, CHUNK + OVERLAP))
		return copy(scan, gpa, scan->chunk, CHUNK + OVERLAP);
	scan->pace.bytes += MIN_COST;
	return false;
}

/* Finds the first address >= `from` that is a multiple of `align` and in a slot; false: none. */
static bool next_memory(const struct vp_kernel_scan *scan, uint64_t from, uint64_t align,
			uint64_t *ret)
{
	vp_vec_each (&scan->ranges, range) {
		uint64_t at = from > range->gpa ? from : range->gpa;
		at = (at + align - 1) / align * align;
		if (at < range->end) {
			*ret = at;
			return true;
		}
	}
	return false;
}

/* Reads the difference between virtual and physical kernel addresses from a kernel variable. */
static bool read_shift(struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack,
		       uint64_t text, uint64_t *ret)
{
	const bool arm = scan->setup.memory->arch == VP_GUEST_ARM64;
	uint32_t at = arm ? pack->symbol.kimage_voffset.offset : pack->symbol.phys_base.offset;
	uint64_t value;

	if (!vp_guest_memory_read(&scan->careful, text + at, &value, sizeof(value)))
		return false;
	*ret = arm ? value : VP_KERNEL_MAP - value;
	return true;
}

/* Locates the image of the pack's kernel with its own page tables; false: it does not start at
 * `text`. */
static bool locate_with(struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack,
			uint64_t text, const struct vp_paging *paging, struct vp_guest_view *ret)
{
	uint64_t shift;

	if (!read_shift(scan, pack, text, &shift))
		return false;
	uint64_t va = text + shift;
	*ret = (struct vp_guest_view){.memory = &scan->careful,
				      .root = text + vp_kernel_pack_top(pack).offset,
				      .paging = *paging};
	/* Some kernels do not map the first part (Arm's 6.1). */
	uint64_t inside = va + (scan->setup.memory->arch == VP_GUEST_ARM64 ? scan->align : 0);
	bool mapped = va % scan->align == 0 && vp_guest_view_find_image(ret, inside) &&
		      va - ret->image_va == text - ret->image_gpa;
	ret->memory = scan->setup.memory;
	return mapped;
}

static bool can_locate(const struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack)
{
	const struct vp_pack_symbol needed[] = {pack->symbol.banner, vp_kernel_pack_top(pack),
						scan->setup.memory->arch == VP_GUEST_ARM64
						    ? pack->symbol.kimage_voffset
						    : pack->symbol.phys_base};

	for (size_t i = 0; i < VP_ARRAY_SIZE(needed); i++)
		if (needed[i].offset == VP_PACK_NONE || needed[i].percpu)
			return false;
	return true;
}

/* Tries all page-table formats of the guest's architecture. */
static bool locate_with_any(struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack,
			    uint64_t text, struct vp_guest_view *ret)
{
	struct vp_paging paging;

	for (unsigned i = 0; vp_guest_view_paging_of_kernels(scan->setup.memory->arch, i, &paging);
	     i++)
		if (locate_with(scan, pack, text, &paging, ret))
			return true;
	return false;
}

/* Locates the pack's kernel from the address of its banner. */
static bool locate(struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack, uint64_t banner,
		   struct vp_guest_view *ret)
{
	uint64_t text = banner - pack->symbol.banner.offset;

	return can_locate(scan, pack) && banner >= pack->symbol.banner.offset &&
	       text % scan->align == 0 && locate_with_any(scan, pack, text, ret);
}

/* The same from the address of an unused banner: since v6.2 (2df8220cc511 "kbuild: build
 * init/built-in.a just once", also in Debian's 6.1) a weak one remains at the start of the
 * read-only data, before the real one. */
static bool locate_by_other(struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack,
			    uint64_t banner, struct vp_guest_view *ret)
{
	char start[sizeof(banner_text) - 1];

	if (!can_locate(scan, pack))
		return false;
	for (uint64_t back = 0, usual = banner / scan->align * scan->align; back <= MAX_IMAGE;
	     back += scan->align) {
		uint64_t own = usual - back + pack->symbol.banner.offset;
		if (back <= usual && own > banner &&
		    vp_guest_memory_read(&scan->careful, own, start, sizeof(start)) &&
		    !memcmp(start, banner_text, sizeof(start)) && locate(scan, pack, own, ret))
			return true;
	}
	return false;
}

/* Finds the next banner between `from` and `end`; NULL: none. */
static const char *next_banner(const char *from, const char *end)
{
	const size_t size = sizeof(banner_text) - 1;

	for (; (from = memmem(from, (size_t)(end - from), banner_text, size)); from += size)
		if (end - from > (ptrdiff_t)size && from[size] >= '0' && from[size] <= '9')
			return from;
	return NULL;
}

/* Locates the pack's kernel from the address of its symbol tables: searches for its banner around
 * them. */
static bool locate_around(struct vp_kernel_scan *scan, const struct vp_kernel_pack *pack,
			  uint64_t tables, struct vp_guest_view *ret)
{
	uint64_t from = tables > MAX_RODATA ? tables - MAX_RODATA : 0;

	for (uint64_t at = from; at < tables + MAX_RODATA; at += CHUNK) {
		const char *end = scan->chunk + CHUNK + OVERLAP;
		if (!copy_chunk(scan, at))
			continue;
		for (const char *found = scan->chunk; (found = next_banner(found, end)); found++)
			if (locate(scan, pack, at + (uint64_t)(found - scan->chunk), ret))
				return true;
	}
	return false;
}

/* Start of a search around `at`: after the nearest absent chunk, or `from`. A kernel image has no
 * large hole. */
static uint64_t begin_around(const struct vp_kernel_scan *scan, uint64_t at, uint64_t from)
{
	uint64_t begin = at / CHUNK * CHUNK;

	while (begin > from && vp_guest_memory_has(scan->setup.memory, begin - CHUNK, CHUNK))
		begin -= CHUNK;
	return begin > from ? begin : from;
}

/* End of a search around `at`: the nearest absent chunk, or `until`. */
static uint64_t end_around(const struct vp_kernel_scan *scan, uint64_t at, uint64_t until)
{
	uint64_t end = at / CHUNK * CHUNK + CHUNK;

	while (end < until && vp_guest_memory_has(scan->setup.memory, end, CHUNK))
		end += CHUNK;
	return end < until ? end : until;
}

/* Searches for symbol tables around the candidate at `tokens`, and locates their kernel. `banner`:
 * its address; 0: unknown. *tables: symbol tables were found, even if not of a valid kernel. */
static bool try_tables(struct vp_kernel_scan *scan, uint64_t tokens, uint64_t banner,
		       struct vp_guest_view *ret, bool *tables)
{
	static const uint64_t sizes[][2] = {{8 * MIB, 2 * MIB}, {40 * MIB, 20 * MIB}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(sizes); i++) {
		uint64_t from = tokens > sizes[i][0] ? tokens - sizes[i][0] : 0;
		from = begin_around(scan, tokens, from);
		size_t size = (size_t)(end_around(scan, tokens, tokens + sizes[i][1]) - from);
		struct vp_kernel_pack pack;
		uint64_t text;
		scan->window.size = 0;
		char *bytes = vp_buffer_extend(&scan->window, size);
		copy(scan, from, bytes, size);
		vp_kernel_pack_init(&pack);
		struct vp_error *error = vp_kallsyms_find(bytes, size, 0, &pack.kallsyms);
		*tables = !error && vp_kernel_pack_symbols(&pack, bytes, size, &text);
		vp_error_free(error);
		if (*tables)
			return banner ? locate(scan, &pack, banner, ret) ||
					    locate_by_other(scan, &pack, banner, ret)
				      : locate_around(scan, &pack, tokens, ret);
	}
	return false;
}

/* Locates a kernel from its banner and the first symbol tables after it. */
static bool try_tables_behind(struct vp_kernel_scan *scan, uint64_t banner,
			      struct vp_guest_view *ret)
{
	uint64_t from = banner / scan->align * scan->align;
	bool tables = false;

	for (uint64_t at = from; at < from + MAX_RODATA && !tables; at += CHUNK) {
		if (!copy_chunk(scan, at))
			continue;
		const char *found = vp_kallsyms_find_candidate(scan->chunk, CHUNK + OVERLAP);
		if (found &&
		    try_tables(scan, at + (uint64_t)(found - scan->chunk), banner, ret, &tables))
			return true;
	}
	return false;
}

/* Whether a pack has the banner's release. */
static bool knows_release(struct vp_kernel_scan *scan, uint64_t banner)
{
	char text[sizeof(banner_text) + MAX_RELEASE] = "";

	if (!vp_guest_memory_read(&scan->careful, banner, text, sizeof(text) - 1))
		return false;
	const char *release = text + sizeof(banner_text) - 1;
	vp_vec_each (scan->setup.packs, pack) {
		size_t size = strlen(pack->release);
		if (size && !strncmp(release, pack->release, size) && release[size] == ' ')
			return true;
	}
	return false;
}

/* Whether the kernel may be booting: its banner is in memory before its symbol tables. If a pack
 * has its release, the kernel is found with the pack later, and the slow search for tables is
 * postponed. */
static bool may_be_booting(struct vp_kernel_scan *scan, uint64_t banner)
{
	if (!knows_release(scan, banner))
		return false;
	if (!scan->boots_until)
		scan->boots_until = scan->pace.now + BOOT_S * SECOND;
	return scan->pace.now < scan->boots_until;
}

static bool try_banner(struct vp_kernel_scan *scan, uint64_t banner, struct vp_guest_view *ret)
{
	vp_vec_each (scan->setup.packs, pack)
		if (locate(scan, pack, banner, ret) || locate_by_other(scan, pack, banner, ret))
			return true;
	return !may_be_booting(scan, banner) && try_tables_behind(scan, banner, ret);
}

/* Charges the time for a candidate, which is examined without pauses. */
static bool note_try(struct vp_kernel_scan *scan, bool found)
{
	vp_throttle_update(&scan->pace, true);
	return found;
}

/* Searches a page for the banner of a valid kernel. *tried: the page has a banner. */
static bool try_page(struct vp_kernel_scan *scan, uint64_t gpa, struct vp_guest_view *ret,
		     bool *tried)
{
	uint64_t banners[MAX_BANNERS];
	size_t count = 0;

	*tried = false;

	if (!copy(scan, gpa, scan->chunk, VP_GUEST_PAGE))
		return false;
	const char *found = scan->chunk, *end = scan->chunk + VP_GUEST_PAGE;
	for (; count < MAX_BANNERS && (found = next_banner(found, end)); found++)
		banners[count++] = gpa + (uint64_t)(found - scan->chunk);
	*tried = count > 0;
	if (*tried)
		vp_throttle_update(&scan->pace, true);
	for (size_t i = 0; i < count; i++)
		if (note_try(scan, try_banner(scan, banners[i], ret)))
			return true;
	return false;
}

/* Ends a search of usual addresses, and schedules the next one: the guest may be booting. */
static void end_usual(struct vp_kernel_scan *scan)
{
	uint64_t took = scan->pace.now - scan->usual_began, pause = took * AGAIN_SHARE;

	if (pause < AGAIN_MIN_S * SECOND)
		pause = AGAIN_MIN_S * SECOND;
	scan->usual_again = scan->pace.now + pause;
	scan->stage = EVERYWHERE;
	scan->usual = FIRST_KERNEL;
	scan->low = false;
}

static enum vp_scan_result scan_usual(struct vp_kernel_scan *scan, struct vp_guest_view *ret)
{
	bool tried = false;

	do {
		uint64_t gpa;
		bool any = next_memory(scan, scan->usual, scan->align, &gpa);
		if (!any || (scan->low && gpa >= FIRST_KERNEL)) {
			if (scan->low) {
				vp_throttle_update(&scan->pace, true);
				end_usual(scan);
				return VP_SCAN_GOES_ON;
			}
			scan->low = true;
			scan->usual = 0;
			continue;
		}
		scan->usual = gpa + scan->align;
		if (try_page(scan, gpa, ret, &tried))
			return VP_SCAN_FOUND;
	} while (!tried && !vp_throttle_charge(&scan->pace, 0));
	return VP_SCAN_GOES_ON;
}

static enum vp_scan_result look_everywhere(struct vp_kernel_scan *scan, struct vp_guest_view *ret)
{
	uint64_t gpa;
	bool tables;

	if (scan->pace.now >= scan->usual_again) {
		scan->stage = USUAL;
		scan->usual_began = scan->pace.now;
		return VP_SCAN_GOES_ON;
	}
	do {
		if (!next_memory(scan, scan->everywhere, VP_GUEST_PAGE, &gpa))
			return VP_SCAN_ENDED;
		scan->everywhere = gpa + CHUNK;
		scan->done += CHUNK;
		if (!copy_chunk(scan, gpa))
			continue;
		const char *tokens = vp_kallsyms_find_candidate(scan->chunk, CHUNK + OVERLAP);
		if (!tokens)
			continue;
		vp_throttle_update(&scan->pace, true);
		uint64_t at = gpa + (uint64_t)(tokens - scan->chunk);
		return note_try(scan, try_tables(scan, at, 0, ret, &tables)) ? VP_SCAN_FOUND
									     : VP_SCAN_GOES_ON;
	} while (!vp_throttle_charge(&scan->pace, 0));
	return VP_SCAN_GOES_ON;
}

static enum vp_scan_result look_on(struct vp_kernel_scan *scan, struct vp_guest_view *ret)
{
	bool tried;

	switch (scan->stage) {
	case REMEMBERED:
		scan->stage = USUAL;
		return try_page(scan, scan->setup.remembered / VP_GUEST_PAGE * VP_GUEST_PAGE, ret,
				&tried)
			   ? VP_SCAN_FOUND
			   : VP_SCAN_GOES_ON;
	case USUAL:
		return scan_usual(scan, ret);
	case EVERYWHERE:
		return look_everywhere(scan, ret);
	}
	return VP_SCAN_ENDED;
}

enum vp_scan_result vp_kernel_scan_step(struct vp_kernel_scan *scan, uint64_t slice_ns,
					struct vp_guest_view *ret)
{
	enum vp_scan_result result = VP_SCAN_GOES_ON;

	if (!scan->setup.memory->backed)
		return VP_SCAN_ENDED;
	/* Work since the last step is charged only if the caller examined a kernel that it
	 * found. */
	vp_throttle_update(&scan->pace, scan->found);
	uint64_t end = scan->pace.now + slice_ns;
	while (result == VP_SCAN_GOES_ON && vp_throttle_wait(&scan->pace, end) &&
	       scan->pace.now < end)
		result = look_on(scan, ret);
	scan->found = result == VP_SCAN_FOUND;
	return result;
}

struct vp_scan_progress vp_kernel_scan_progress(const struct vp_kernel_scan *scan)
{
	struct vp_scan_progress progress = {.done = scan->done};

	vp_vec_each (&scan->ranges, range)
		progress.all += range->end - range->gpa;
	if (progress.done > progress.all)
		progress.done = progress.all;
	return progress;
}
