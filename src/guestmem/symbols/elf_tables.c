/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/elf_tables.h"

#include <elf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "guestmem/symbols/elf_segments.h"
#include "maps/elf_file.h"
#include "maps/ghc_functions.h"

enum {
	PAGE = 4096,
	MAX_PROGRAM_HEADERS = 512,
	ALIGN = 8,
	MAX_SECTION_NAMES = 1 << 20,
	UNWIND_ROW = 8,       /* bytes in .eh_frame_hdr for each function */
	BARE_FUNCTION = 4096, /* bytes of code for each such row that are too many */
};

struct reading {
	const struct vp_guest_file *file;
	uint64_t left; /* remaining bytes to read */
	struct vp_elf_tables *tables;
	Elf64_Ehdr header;
	Elf64_Phdr *segments; /* as in the file */
	Elf64_Shdr *sections; /* as in the file, or found by program headers */
	const char *names;    /* of sections; NULL: missing */
	uint64_t names_size;
	struct vp_elf_segments found;   /* its `names` is NULL if the sections are the file's own */
	bool has_kind[VP_ELF_SECTIONS]; /* kinds of sections */
	struct vp_elf_pages code;       /* missing pages of code do not run */
	bool has_bare_code;             /* much of the code is not in the unwind tables */
};

static bool is_in_file(const struct vp_guest_file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

/* Space for `size` bytes after the existing ones; NULL: limit exceeded. */
static char *extend(struct reading *reading, uint64_t size)
{
	struct vp_buffer *bytes = &reading->tables->bytes;
	size_t gap = (ALIGN - bytes->size % ALIGN) % ALIGN;

	if (size > reading->left)
		return NULL;
	reading->left -= size;
	if (gap)
		memset(vp_buffer_extend(bytes, gap), 0, gap);
	return vp_buffer_extend(bytes, size);
}

/* Drops the last name in `text`, which continues in a missing page. */
static void drop_cut_name(char *text, size_t size)
{
	while (size && text[size - 1])
		text[--size] = 0;
}

/* The kind of section `number`; VP_ELF_SECTIONS: not used. */
static enum vp_elf_section kind_of(const struct reading *reading, uint32_t number)
{
	uint32_t at = reading->sections[number].sh_name;
	enum vp_elf_section kind;

	if (!reading->names || at >= reading->names_size ||
	    !memchr(reading->names + at, 0, reading->names_size - at) ||
	    !vp_elf_section_of_name(reading->names + at, &kind))
		return VP_ELF_SECTIONS;
	return kind;
}

/* Copies a table page by page, with zeros for missing pages. */
static void copy_table(struct reading *reading, const Elf64_Shdr *section, char *to)
{
	bool symbols = section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM ||
		       section->sh_type == SHT_STRTAB;
	bool is_code = kind_of(reading, (uint32_t)(section - reading->sections)) == VP_ELF_TEXT;
	struct vp_elf_pages *pages = is_code   ? &reading->code
				     : symbols ? &reading->tables->symbols
					       : &reading->tables->functions;
	uint64_t offset = section->sh_offset;

	for (uint64_t done = 0, piece; done < section->sh_size; done += piece) {
		piece = PAGE - (offset + done) % PAGE;
		piece = piece < section->sh_size - done ? piece : section->sh_size - done;
		pages->all++;
		if (vp_guest_file_read(reading->file, offset + done, to + done, piece))
			continue;
		pages->missing++;
		memset(to + done, 0, piece);
		if (section->sh_type == SHT_STRTAB)
			drop_cut_name(to, done);
	}
}

/* Copies section `number` to the new file; false: limit exceeded. */
static bool keep_section(struct reading *reading, Elf64_Shdr *copies, uint32_t number)
{
	const Elf64_Shdr *section = &reading->sections[number];
	uint64_t *copied = &copies[number].sh_offset;

	if (*copied || !section->sh_size)
		return true;
	char *to = extend(reading, section->sh_size);
	if (!to)
		return false;
	copy_table(reading, section, to);
	*copied = (uint64_t)(to - reading->tables->bytes.bytes);
	return true;
}

static const char *keep_tables(struct reading *reading, Elf64_Shdr *copies)
{
	bool any = false;

	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		const Elf64_Shdr *section = &reading->sections[i];
		uint32_t names = section->sh_link;
		if (section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM)
			continue;
		if (names >= reading->header.e_shnum ||
		    reading->sections[names].sh_type != SHT_STRTAB ||
		    !is_in_file(reading->file, section->sh_offset, section->sh_size) ||
		    !is_in_file(reading->file, reading->sections[names].sh_offset,
				reading->sections[names].sh_size))
			return "its section headers are invalid";
		if (!keep_section(reading, copies, i) || !keep_section(reading, copies, names))
			return "its symbol tables are larger than the limit";
		any = true;
		reading->tables->has_symtab |= section->sh_type == SHT_SYMTAB;
	}
	reading->tables->has_symbols = any;
	return NULL;
}

/* Whether the unwind tables are small for so much code, as in Haskell programs: their functions are
 * found in the code itself. */
static bool has_bare_code(const struct reading *reading)
{
	uint64_t code = 0, rows = 0;

	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		enum vp_elf_section kind = kind_of(reading, i);
		if (kind == VP_ELF_TEXT)
			code = reading->sections[i].sh_size;
		else if (kind == VP_ELF_EH_FRAME_HDR)
			rows = reading->sections[i].sh_size / UNWIND_ROW;
	}
	return !reading->tables->has_symtab && !reading->has_kind[VP_ELF_GO_BUILDINFO] &&
	       reading->header.e_machine == EM_X86_64 && code >= VP_GHC_SMALLEST &&
	       code / BARE_FUNCTION > rows;
}

/* Whether functions may be found in a section of this kind. */
static bool is_needed(const struct reading *reading, enum vp_elf_section kind)
{
	bool is_go = reading->has_kind[VP_ELF_GO_BUILDINFO];

	switch (kind) {
	case VP_ELF_SECTIONS:
	case VP_ELF_DEBUGLINK:
		return false;
	case VP_ELF_TEXT:
		return reading->has_bare_code;
	case VP_ELF_REL_RO:
		return is_go && !reading->has_kind[VP_ELF_GO_TABLE];
	case VP_ELF_RELA_DYN:
		return is_go || reading->has_kind[VP_ELF_PLT_GOT];
	default:
		return true;
	}
}

/* Copies sections from which functions without symbols are found, within the limit. */
static void keep_functions(struct reading *reading, Elf64_Shdr *copies)
{
	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		enum vp_elf_section kind = kind_of(reading, i);
		if (kind != VP_ELF_SECTIONS)
			reading->has_kind[kind] = true;
	}
	reading->has_bare_code = has_bare_code(reading);
	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		const Elf64_Shdr *section = &reading->sections[i];
		enum vp_elf_section kind = kind_of(reading, i);
		if (is_needed(reading, kind) && section->sh_type != SHT_NOBITS &&
		    section->sh_size && section->sh_size <= VP_ELF_MAX_TABLE &&
		    is_in_file(reading->file, section->sh_offset, section->sh_size) &&
		    keep_section(reading, copies, i))
			reading->tables->has_functions |= kind != VP_ELF_TEXT;
	}
}

/* Copies the section names; false: missing. */
static bool copy_names(struct reading *reading, Elf64_Shdr *copies, struct vp_buffer *names)
{
	uint16_t number = reading->header.e_shstrndx;
	const Elf64_Shdr *section = &reading->sections[number];

	if (number == SHN_UNDEF || number >= reading->header.e_shnum ||
	    section->sh_size > MAX_SECTION_NAMES || section->sh_type != SHT_STRTAB ||
	    !is_in_file(reading->file, section->sh_offset, section->sh_size))
		return false;
	char *to = vp_buffer_extend(names, section->sh_size);
	return vp_guest_file_read(reading->file, section->sh_offset, to, section->sh_size) &&
	       keep_section(reading, copies, number);
}

/* Adds a section with the names of sections found by program headers. */
static bool put_names(struct reading *reading, Elf64_Shdr *copies, struct vp_buffer *names)
{
	uint16_t number = VP_ELF_SEGMENT_SECTIONS;
	size_t size = reading->found.names_size;
	char *to = extend(reading, size);

	if (!to)
		return false;
	memcpy(to, reading->found.names, size);
	vp_buffer_append(names, reading->found.names, size);
	copies[number].sh_offset = (uint64_t)(to - reading->tables->bytes.bytes);
	reading->sections[number] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_size = size};
	reading->header.e_shstrndx = number;
	return true;
}

/* Copies section names, and the sections found by name; without names, only symbol tables are
 * used. */
static void keep_names(struct reading *reading, Elf64_Shdr *copies)
{
	struct vp_buffer names = {0};

	if (reading->found.names ? put_names(reading, copies, &names)
				 : copy_names(reading, copies, &names)) {
		Elf64_Ehdr *made = (void *)reading->tables->bytes.bytes;
		made->e_shstrndx = reading->header.e_shstrndx;
		reading->names = names.bytes;
		reading->names_size = names.size;
		keep_functions(reading, copies);
		reading->names = NULL;
	} else {
		reading->tables->no_sections = true;
	}
	vp_buffer_deinit(&names);
}

/* Writes section headers and tables. All sections keep their numbers and flags; only tables keep
 * their contents. */
static const char *put_sections(struct reading *reading)
{
	size_t size = reading->header.e_shnum * sizeof(Elf64_Shdr);
	VP_AUTO_FREE Elf64_Shdr *copies = vp_alloc(size);
	char *at = extend(reading, size);

	if (!at)
		return "it has too many sections";
	uint64_t offset = (uint64_t)(at - reading->tables->bytes.bytes);
	const char *problem = keep_tables(reading, copies);
	if (!problem)
		keep_names(reading, copies);
	if (!problem && !reading->tables->has_symbols && !reading->tables->has_functions)
		problem = reading->tables->no_sections
			      ? "its section headers are not in the guest's page cache"
			      : "it has no symbol table";
	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		uint64_t copied = copies[i].sh_offset;
		copies[i] = reading->sections[i];
		copies[i].sh_offset = copied;
		if (!copied)
			copies[i].sh_type = SHT_NOBITS;
	}
	memcpy(reading->tables->bytes.bytes + offset, copies, size);
	Elf64_Ehdr *made = (void *)reading->tables->bytes.bytes;
	made->e_shoff = offset;
	made->e_shnum = reading->header.e_shnum;
	return problem;
}

/* Writes the program headers of loaded segments, which map addresses to file offsets. The contents
 * of segments are not copied. */
static const char *put_segments(struct reading *reading)
{
	size_t size = reading->header.e_phnum * sizeof(Elf64_Phdr);
	char *to = extend(reading, size);

	if (!to || !vp_guest_file_read(reading->file, reading->header.e_phoff, to, size))
		return "its program headers are not in the guest's page cache";
	reading->segments = vp_alloc(size);
	memcpy(reading->segments, to, size);
	for (unsigned i = 0; i < reading->header.e_phnum; i++) {
		Elf64_Phdr segment;
		memcpy(&segment, to + i * sizeof(segment), sizeof(segment));
		if (segment.p_type != PT_LOAD)
			segment.p_type = PT_NULL;
		memcpy(to + i * sizeof(segment), &segment, sizeof(segment));
	}
	return NULL;
}

static const char *elf_tables_put_header(struct reading *reading)
{
	Elf64_Ehdr *header = &reading->header;

	if (!vp_guest_file_read(reading->file, 0, header, sizeof(*header)))
		return "its first page is not in the guest's page cache";
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header->e_phnum && header->e_phentsize != sizeof(Elf64_Phdr)) ||
	    (header->e_shnum && header->e_shentsize != sizeof(Elf64_Shdr)))
		return "it is not a 64-bit ELF file";
	if (header->e_phnum > MAX_PROGRAM_HEADERS)
		return "it has too many program headers";
	Elf64_Ehdr made = *header;
	char *to = extend(reading, sizeof(made));
	made.e_phoff = sizeof(made);
	made.e_shstrndx = SHN_UNDEF;
	if (!to)
		return "it is too large";
	memcpy(to, &made, sizeof(made));
	return NULL;
}

static bool read_sections(struct reading *reading)
{
	size_t size = reading->header.e_shnum * sizeof(Elf64_Shdr);

	reading->sections = vp_alloc(size);
	return vp_guest_file_read(reading->file, reading->header.e_shoff, reading->sections, size);
}

/* Replaces the sections by those found by program headers, and one for their names. */
static bool find_sections(struct reading *reading)
{
	if (!vp_elf_segments_find(reading->file, reading->segments, reading->header.e_phnum,
				  &reading->found))
		return false;
	free(reading->sections);
	reading->header.e_shnum = VP_ELF_SEGMENT_SECTIONS + 1;
	reading->sections = vp_alloc(reading->header.e_shnum * sizeof(Elf64_Shdr));
	memcpy(reading->sections, reading->found.sections, sizeof(reading->found.sections));
	return true;
}

static const char *elf_tables_read_tables(struct reading *reading)
{
	const char *problem = elf_tables_put_header(reading);
	bool has_sections = reading->header.e_shnum;

	if (!problem)
		problem = put_segments(reading);
	if (problem)
		return problem;
	if (!has_sections || !read_sections(reading)) {
		if (!find_sections(reading))
			return has_sections
				   ? "its section headers are not in the guest's page cache"
				   : "it has no section headers";
		reading->tables->no_sections = has_sections;
	}
	return put_sections(reading);
}

void vp_elf_tables_read(const struct vp_guest_file *file, uint64_t limit, struct vp_elf_tables *ret)
{
	struct reading reading = {.file = file, .left = limit, .tables = ret};

	*ret = (struct vp_elf_tables){0};
	if (reading.left > VP_ELF_TABLES_MAX)
		reading.left = VP_ELF_TABLES_MAX;
	const char *problem = elf_tables_read_tables(&reading);
	if (problem)
		ret->problem = vp_strdup(problem);
	free(reading.segments);
	free(reading.sections);
}

void vp_elf_tables_deinit(struct vp_elf_tables *tables)
{
	vp_buffer_deinit(&tables->bytes);
	free(tables->problem);
	*tables = (struct vp_elf_tables){0};
}
