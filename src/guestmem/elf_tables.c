/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/elf_tables.h"

#include <elf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

enum { PAGE = 4096, MAX_PROGRAM_HEADERS = 512, ALIGN = 8 };

struct reading {
	const struct vp_guest_file *file;
	uint64_t left; /* bytes that may still be read */
	struct vp_elf_tables *tables;
	Elf64_Ehdr header;
	Elf64_Shdr *sections; /* as in the file */
};

static bool is_in_file(const struct vp_guest_file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

/* Room for `size` bytes after the existing ones; NULL if the limit is met. */
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

/* The last name in `text` goes on in a page that is missing: it is none. */
static void drop_cut_name(char *text, size_t size)
{
	while (size && text[size - 1])
		text[--size] = 0;
}

/* Copies a table page by page, with zeros for those that are missing. */
static void copy_table(struct reading *reading, const Elf64_Shdr *section, char *to)
{
	uint64_t offset = section->sh_offset;

	for (uint64_t done = 0, piece; done < section->sh_size; done += piece) {
		piece = PAGE - (offset + done) % PAGE;
		piece = piece < section->sh_size - done ? piece : section->sh_size - done;
		reading->tables->pages++;
		if (vp_guest_file_read(reading->file, offset + done, to + done, piece))
			continue;
		reading->tables->missing++;
		memset(to + done, 0, piece);
		if (section->sh_type == SHT_STRTAB)
			drop_cut_name(to, done);
	}
}

/* Section `number` goes into the new file; false if there is no room. */
static bool keep_section(struct reading *reading, Elf64_Shdr *places, uint32_t number)
{
	const Elf64_Shdr *section = &reading->sections[number];
	uint64_t *place = &places[number].sh_offset;

	if (*place || !section->sh_size)
		return true;
	char *to = extend(reading, section->sh_size);
	if (!to)
		return false;
	copy_table(reading, section, to);
	*place = (uint64_t)(to - reading->tables->bytes.bytes);
	return true;
}

static const char *keep_tables(struct reading *reading, Elf64_Shdr *places)
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
		if (!keep_section(reading, places, i) || !keep_section(reading, places, names))
			return "its symbol tables are larger than the limit";
		any = true;
	}
	return any ? NULL : "it has no symbol table";
}

/* All sections keep their numbers and flags; only the tables keep their bytes. */
static const char *put_sections(struct reading *reading)
{
	size_t size = reading->header.e_shnum * sizeof(Elf64_Shdr);
	VP_AUTO_FREE Elf64_Shdr *places = vp_alloc(size);
	char *at = extend(reading, size);

	if (!at)
		return "it has too many sections";
	uint64_t offset = (uint64_t)(at - reading->tables->bytes.bytes);
	const char *problem = keep_tables(reading, places);
	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		uint64_t place = places[i].sh_offset;
		places[i] = reading->sections[i];
		places[i].sh_offset = place;
		if (!place)
			places[i].sh_type = SHT_NOBITS;
	}
	memcpy(reading->tables->bytes.bytes + offset, places, size);
	((Elf64_Ehdr *)(void *)reading->tables->bytes.bytes)->e_shoff = offset;
	return problem;
}

/* Segments map addresses to places in the file. Their contents are missing, and so are notes. */
static const char *put_segments(struct reading *reading)
{
	size_t size = reading->header.e_phnum * sizeof(Elf64_Phdr);
	char *to = extend(reading, size);

	if (!to || !vp_guest_file_read(reading->file, reading->header.e_phoff, to, size))
		return "its program headers are not in the guest's page cache";
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
	if (!header->e_shnum)
		return "it has no section headers";
	Elf64_Ehdr made = *header;
	char *to = extend(reading, sizeof(made));
	made.e_phoff = sizeof(made);
	made.e_shstrndx = SHN_UNDEF;
	if (!to)
		return "it is too large";
	memcpy(to, &made, sizeof(made));
	return NULL;
}

static const char *elf_tables_read_tables(struct reading *reading)
{
	const char *problem = elf_tables_put_header(reading);

	if (!problem)
		problem = put_segments(reading);
	if (problem)
		return problem;
	size_t size = reading->header.e_shnum * sizeof(Elf64_Shdr);
	reading->sections = vp_alloc(size);
	if (!vp_guest_file_read(reading->file, reading->header.e_shoff, reading->sections, size))
		return "its section headers are not in the guest's page cache";
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
	free(reading.sections);
}

void vp_elf_tables_deinit(struct vp_elf_tables *tables)
{
	vp_buffer_deinit(&tables->bytes);
	free(tables->problem);
	*tables = (struct vp_elf_tables){0};
}
