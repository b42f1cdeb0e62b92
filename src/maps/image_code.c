/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions without symbols: of Go programs, of the PLT, and unnamed ones. */
#include "maps/image_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/code_ranges.h"
#include "maps/eh_frame.h"
#include "maps/elf_file.h"
#include "maps/ghc_functions.h"
#include "maps/go_functions.h"
#include "maps/image.h"

enum {
	GO_HEADER_TEXT = 24,     /* offset of the code's address in the table of Go 1.18 to 1.25 */
	GO_MODULE_TEXT = 22 * 8, /* and in moduledata */
	GO_TABLE_ALIGN = 8,
	PLT_ENTRY = 16,
	PLT_GOT_ENTRY = 8,
	PLT_NAME = 512,
};

static bool is_readable(const struct vp_elf_file *file)
{
	const char *ident = elf_getident(file->elf, NULL);

	return ident && ident[EI_DATA] == ELFDATA2LSB;
}

/* Relocations as an array in the machine's layout; false: another kind of section. */
static bool relocations(const struct vp_elf_file *file, enum vp_elf_section which, Elf_Data **data,
			size_t *count)
{
	struct vp_section_bytes bytes;
	GElf_Shdr header;

	if (!vp_elf_section_bytes(file, which, &bytes) ||
	    !gelf_getshdr(file->section[which], &header) || header.sh_type != SHT_RELA)
		return false;
	size_t entry = gelf_fsize(file->elf, ELF_T_RELA, 1, EV_CURRENT);
	*data = elf_getdata(file->section[which], NULL);
	*count = *data && (*data)->d_buf && entry ? (*data)->d_size / entry : 0;
	return *count;
}

/* The word that the loader writes to this address; 0: none. */
static uint64_t relocated_word(const struct vp_elf_file *file, uint64_t addr)
{
	Elf_Data *data;
	size_t count;

	if (!relocations(file, VP_ELF_RELA_DYN, &data, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Rela rela;
		if (gelf_getrela(data, (int)i, &rela) && rela.r_offset == addr &&
		    !GELF_R_SYM(rela.r_info))
			return (uint64_t)rela.r_addend;
	}
	return 0;
}

/* Start of the Go code, if it is not in the table. */
static uint64_t go_text(const struct vp_elf_file *file, uint64_t table)
{
	struct vp_section_bytes module;
	uint64_t text = relocated_word(file, table + GO_HEADER_TEXT);

	if (text || !vp_elf_section_bytes(file, VP_ELF_GO_MODULE, &module) ||
	    module.size < GO_MODULE_TEXT + sizeof(text))
		return text;
	memcpy(&text, (const char *)module.bytes + GO_MODULE_TEXT, sizeof(text));
	return text ? text : relocated_word(file, module.addr + GO_MODULE_TEXT);
}

/* The table has a section of its own, or is in .data.rel.ro. */
static bool find_go_table(const struct vp_elf_file *file, struct vp_section_bytes *ret)
{
	if (vp_elf_section_bytes(file, VP_ELF_GO_TABLE, ret))
		return vp_go_table_starts(ret->bytes, ret->size);
	if (!file->section[VP_ELF_GO_BUILDINFO] || !vp_elf_section_bytes(file, VP_ELF_REL_RO, ret))
		return false;
	for (size_t at = 0; at < ret->size; at += GO_TABLE_ALIGN) {
		const char *start = (const char *)ret->bytes + at;
		if (!vp_go_table_starts(start, ret->size - at))
			continue;
		*ret = (struct vp_section_bytes){start, ret->size - at, ret->addr + at};
		return true;
	}
	return false;
}

struct adding {
	struct vp_image *image;
	const struct vp_elf_file *file;
};

static void take_go_function(void *context, const struct vp_go_function *function)
{
	const struct adding *adding = context;
	struct vp_image_symbol symbol = {.size = function->size, .rank = VP_IMAGE_RANK_DERIVED};

	if (function->name.size &&
	    vp_elf_code_offset_of(adding->file, function->addr, &symbol.offset))
		vp_image_add(adding->image, &symbol, function->name);
}

/* Unnamed functions are shown by their range. */
static void take_go_extent(void *context, const struct vp_go_function *function)
{
	vp_code_ranges *ranges = context;

	vp_vec_push(ranges, ((struct vp_code_range){function->addr, function->size}));
}

static bool open_go_table(const struct vp_elf_file *file, struct vp_go_table *ret)
{
	struct vp_section_bytes found;

	if (!is_readable(file) || !find_go_table(file, &found))
		return false;
	*ret = (struct vp_go_table){found.bytes, found.size, 0};
	if (vp_go_table_needs_text(found.bytes, found.size))
		ret->text = go_text(file, found.addr);
	return true;
}

void vp_image_add_go(struct vp_image *image, const struct vp_elf_file *file)
{
	struct adding adding = {image, file};
	struct vp_go_table table;

	if (open_go_table(file, &table))
		vp_go_functions(&table, take_go_function, &adding);
}

/* Names of imported functions by the address of their GOT slot. */
struct imports {
	const struct vp_elf_file *file;
	struct vp_map symbol_of_slot;
	Elf_Data *symbols;
	size_t strings;
};

static void add_imports(struct imports *imports, enum vp_elf_section which)
{
	Elf_Data *data;
	size_t count;

	if (!relocations(imports->file, which, &data, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Rela rela;
		bool inserted;
		if (gelf_getrela(data, (int)i, &rela) && GELF_R_SYM(rela.r_info))
			vp_map_insert(&imports->symbol_of_slot, rela.r_offset,
				      (uint32_t)GELF_R_SYM(rela.r_info), &inserted);
	}
}

static const char *import_at(const struct imports *imports, uint64_t slot)
{
	const uint32_t *number = vp_map_find(&imports->symbol_of_slot, slot);
	GElf_Sym symbol;

	if (!number || !gelf_getsym(imports->symbols, (int)*number, &symbol))
		return NULL;
	const char *name = elf_strptr(imports->file->elf, imports->strings, symbol.st_name);
	return name && *name ? name : NULL;
}

/* GOT slot of a PLT entry: `jmp *slot(%rip)`, optionally after `endbr64` and with the prefix
 * `bnd`. */
static bool slot_of_entry(const unsigned char *code, size_t size, uint64_t addr, uint64_t *ret)
{
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at =
	    size > sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64)) ? sizeof(endbr64) : 0;
	int32_t distance;

	at += at < size && code[at] == 0xf2;
	if (at + 6 > size || code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	memcpy(&distance, code + at + 2, sizeof(distance));
	*ret = addr + at + 6 + (uint64_t)(int64_t)distance;
	return true;
}

static void add_plt_entries(struct vp_image *image, const struct imports *imports,
			    enum vp_elf_section which)
{
	size_t step = which == VP_ELF_PLT_GOT ? PLT_GOT_ENTRY : PLT_ENTRY;
	struct vp_section_bytes plt;
	GElf_Shdr header;

	if (!vp_elf_section_bytes(imports->file, which, &plt) ||
	    !gelf_getshdr(imports->file->section[which], &header))
		return;
	if (header.sh_entsize == PLT_ENTRY || header.sh_entsize == PLT_GOT_ENTRY)
		step = header.sh_entsize;
	for (size_t at = 0; at + step <= plt.size; at += step) {
		struct vp_image_symbol symbol = {.size = step, .rank = VP_IMAGE_RANK_DERIVED};
		char name[PLT_NAME];
		uint64_t slot;
		const char *import =
		    slot_of_entry((const unsigned char *)plt.bytes + at, step, plt.addr + at, &slot)
			? import_at(imports, slot)
			: NULL;
		if (!import || !vp_elf_code_offset_of(imports->file, plt.addr + at, &symbol.offset))
			continue;
		int size = snprintf(name, sizeof(name), "%.*s@plt", PLT_NAME - 8, import);
		vp_image_add(image, &symbol, (struct vp_slice){name, (size_t)size});
	}
}

void vp_image_add_plt(struct vp_image *image, const struct vp_elf_file *file)
{
	struct imports imports = {.file = file};
	GElf_Ehdr machine;
	GElf_Shdr header;

	if (!file->section[VP_ELF_DYNSYM] || !gelf_getehdr(file->elf, &machine) ||
	    machine.e_machine != EM_X86_64 ||
	    !gelf_getshdr(file->section[VP_ELF_DYNSYM], &header) ||
	    header.sh_size > VP_ELF_MAX_TABLE || !vp_elf_has_names(file, header.sh_link))
		return;
	imports.strings = header.sh_link;
	imports.symbols = elf_getdata(file->section[VP_ELF_DYNSYM], NULL);
	if (!imports.symbols || !imports.symbols->d_buf)
		return;
	add_imports(&imports, VP_ELF_RELA_PLT);
	add_imports(&imports, VP_ELF_RELA_DYN);
	add_plt_entries(image, &imports, VP_ELF_PLT);
	add_plt_entries(image, &imports, VP_ELF_PLT_SEC);
	add_plt_entries(image, &imports, VP_ELF_PLT_GOT);
	vp_map_deinit(&imports.symbol_of_slot);
}

static int by_start(const void *left, const void *right)
{
	const struct vp_code_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->size > b->size ? -1 : a->size < b->size;
}

/* Sorts the ranges and removes overlaps. */
static void tidy_ranges(vp_code_ranges *ranges)
{
	size_t kept = 1;

	if (!ranges->count)
		return;
	qsort(ranges->at, ranges->count, sizeof(*ranges->at), by_start);
	for (size_t i = 1; i < ranges->count; i++) {
		const struct vp_code_range *range = &ranges->at[i];
		struct vp_code_range *last = &ranges->at[kept - 1];
		if (range->start == last->start)
			continue;
		if (!last->size || last->size > range->start - last->start)
			last->size = range->start - last->start;
		ranges->at[kept++] = *range;
	}
	ranges->count = kept;
}

/* Converts addresses to file offsets. */
static void place_ranges(const struct vp_elf_file *file, vp_code_ranges *ranges)
{
	size_t kept = 0;

	vp_vec_each (ranges, range)
		if (vp_elf_code_offset_of(file, range->start, &range->start))
			ranges->at[kept++] = *range;
	ranges->count = kept;
}

struct ghc_search {
	vp_code_ranges *ranges;
	struct vp_section_bytes text;
	uint64_t data_start, data_end;
};

static void search_gap(const struct ghc_search *search, uint64_t start, uint64_t end)
{
	if (!search->text.size)
		return;
	const struct vp_section_bytes gap = {
	    (const char *)search->text.bytes + (start - search->text.addr), end - start, start};

	vp_ghc_functions(&gap, search->data_start, search->data_end, search->ranges);
}

/* Adds the functions in parts without ranges, which are in order, of this section's code; without
 * its contents, only counts those parts. Returns the number of parts of at least `smallest` bytes.
 */
static size_t search_gaps(struct ghc_search *search, const GElf_Shdr *text, size_t smallest)
{
	const vp_code_ranges *ranges = search->ranges;
	size_t count = ranges->count, found = 0;
	uint64_t at = text->sh_addr, end;

	if (__builtin_add_overflow(at, text->sh_size, &end))
		return 0;
	for (size_t i = 0; i <= count && at < end; i++) {
		struct vp_code_range range = {end, 0};
		if (i < count && ranges->at[i].start < end)
			range = ranges->at[i];
		if (range.start > at && range.start - at >= smallest) {
			found++;
			search_gap(search, at, range.start);
		}
		uint64_t over = range.start + range.size;
		at = over > at ? over : at;
	}
	return found;
}

/* Adds the functions of a Haskell program where the ranges, which are in order, have large gaps.
 * Other programs' code is not read. */
static void add_ghc(const struct vp_elf_file *file, vp_code_ranges *ranges)
{
	struct ghc_search search = {.ranges = ranges, .data_start = UINT64_MAX};
	GElf_Ehdr machine;
	GElf_Shdr header;

	if (!gelf_getehdr(file->elf, &machine) || machine.e_machine != EM_X86_64 ||
	    !file->section[VP_ELF_TEXT] || !gelf_getshdr(file->section[VP_ELF_TEXT], &header) ||
	    !search_gaps(&search, &header, VP_GHC_SMALLEST) ||
	    !vp_elf_section_bytes(file, VP_ELF_TEXT, &search.text) ||
	    search.text.size != header.sh_size)
		return;
	vp_vec_each (&file->segments, segment)
		if (!segment->code) {
			search.data_start =
			    segment->start < search.data_start ? segment->start : search.data_start;
			search.data_end =
			    segment->end > search.data_end ? segment->end : search.data_end;
		}
	/* The runtime system has small pieces of such code between functions of C. */
	for (size_t smallest = VP_GHC_SMALLEST, count = ranges->count; smallest;
	     smallest = smallest == VP_GHC_SMALLEST ? VP_GHC_SMALLEST_MORE : 0) {
		search_gaps(&search, &header, smallest);
		if (ranges->count == count)
			return;
		tidy_ranges(ranges);
	}
}

/* Iterator over the sorted symbols. */
struct filling {
	struct vp_image *image;
	size_t count, next;      /* symbols below `next` were passed */
	uint64_t covered;        /* end of the symbols that were passed */
	uint64_t outer_end;      /* end of an enclosing longer symbol */
	uint32_t outer, no_name; /* offsets of names in the text */
};

/* Passes the symbols before `at` in the range that ends at `end`. */
static void pass_symbols(struct filling *filling, const struct vp_code_range *range, uint64_t at,
			 uint64_t end)
{
	struct vp_image_symbol *symbols = filling->image->symbols.at;

	for (; filling->next < filling->count && symbols[filling->next].offset <= at;
	     filling->next++) {
		struct vp_image_symbol *symbol = &symbols[filling->next];
		bool is_last = filling->next + 1 == filling->count;
		uint64_t limit = is_last ? UINT64_MAX : symbols[filling->next + 1].offset, reach;
		if (!symbol->size && symbol->offset >= range->start)
			symbol->size = (limit < end ? limit : end) - symbol->offset;
		if (__builtin_add_overflow(symbol->offset, symbol->size, &reach))
			reach = UINT64_MAX;
		filling->covered = reach < limit ? reach : limit;
		/* The first symbol of a function covers all of it. */
		if (symbol->offset == range->start && reach < end)
			reach = end;
		if (reach > filling->outer_end) {
			filling->outer_end = reach;
			filling->outer = symbol->name;
		}
	}
}

static void fill_range(struct filling *filling, const struct vp_code_range *range)
{
	uint64_t at = range->start, end = at + range->size;

	while (at < end) {
		pass_symbols(filling, range, at, end);
		if (filling->covered > at) {
			at = filling->covered;
			continue;
		}
		uint64_t limit = filling->next < filling->count
				     ? filling->image->symbols.at[filling->next].offset
				     : end;
		bool is_outer = filling->outer_end > at;
		limit = limit < end ? limit : end;
		if (is_outer && filling->outer_end < limit)
			limit = filling->outer_end;
		vp_vec_push(
		    &filling->image->symbols,
		    ((struct vp_image_symbol){.offset = at,
					      .size = limit - at,
					      .name = is_outer ? filling->outer : filling->no_name,
					      .rank = VP_IMAGE_RANK_DERIVED}));
		at = limit;
	}
}

/* Adds these ranges of file offsets where no symbol covers them. */
static void image_fill(struct vp_image *image, vp_code_ranges *ranges)
{
	struct filling filling = {
	    .image = image, .count = image->symbols.count, .no_name = (uint32_t)image->names.size};

	vp_buffer_append(&image->names, "", 1);
	vp_vec_each (ranges, range)
		fill_range(&filling, range);
	vp_image_sort(image);
}

void vp_image_add_extents(struct vp_image *image, const struct vp_elf_file *file)
{
	struct vp_eh_frame tables = {.is_64_bit = gelf_getclass(file->elf) == ELFCLASS64};
	vp_code_ranges ranges = {0};
	struct vp_go_table go;

	if (!is_readable(file))
		return;
	vp_elf_section_bytes(file, VP_ELF_EH_FRAME, &tables.frame);
	vp_elf_section_bytes(file, VP_ELF_EH_FRAME_HDR, &tables.header);
	vp_eh_frame_functions(&tables, &ranges);
	if (open_go_table(file, &go))
		vp_go_functions(&go, take_go_extent, &ranges);
	tidy_ranges(&ranges);
	add_ghc(file, &ranges);
	place_ranges(file, &ranges);
	tidy_ranges(&ranges);
	image_fill(image, &ranges);
	vp_vec_deinit(&ranges);
}
