/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ELF files of one code segment and any sections, made by code. */
#ifndef VP_TESTS_ELF_SECTIONS_H
#define VP_TESTS_ELF_SECTIONS_H

#include <elf.h>
#include <string.h>

#include "base/buffer.h"

enum { MADE_CODE = 0x1000, MADE_UNWIND = 0x4000, MADE_SECTIONS = 12 };

/* A file of one code segment, from 0 on, with any sections. */
struct made_elf {
	struct vp_buffer bytes, names;
	Elf64_Shdr sections[MADE_SECTIONS];
	uint16_t count;
};

static inline void made_start(struct made_elf *file)
{
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = 1,
			     .e_phoff = sizeof(Elf64_Ehdr),
			     .e_ehsize = sizeof(Elf64_Ehdr),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1,
			     .e_shentsize = sizeof(Elf64_Shdr)};
	Elf64_Phdr segment = {
	    .p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_filesz = 0x8000, .p_memsz = 0x8000};

	*file = (struct made_elf){.count = 1};
	vp_buffer_append(&file->names, "", 1);
	vp_buffer_append(&file->bytes, &header, sizeof(header));
	vp_buffer_append(&file->bytes, &segment, sizeof(segment));
}

static inline Elf64_Shdr *made_section(struct made_elf *file, const char *name, uint32_t type,
				       uint64_t addr, const void *bytes, size_t size)
{
	Elf64_Shdr *section = &file->sections[file->count++];

	assert_true(file->count <= MADE_SECTIONS);
	vp_buffer_fill(&file->bytes, 0, -file->bytes.size % 8);
	*section = (Elf64_Shdr){.sh_name = (uint32_t)file->names.size,
				.sh_type = type,
				.sh_addr = addr,
				.sh_offset = file->bytes.size,
				.sh_size = size,
				.sh_addralign = 8};
	vp_buffer_append(&file->names, name, strlen(name) + 1);
	vp_buffer_append(&file->bytes, bytes, size);
	return section;
}

static inline void made_finish(struct made_elf *file)
{
	uint16_t names = file->count;

	made_section(file, ".shstrtab", SHT_STRTAB, 0, "", 0);
	file->sections[names].sh_size = file->names.size;
	vp_buffer_append(&file->bytes, file->names.bytes, file->names.size);
	vp_buffer_fill(&file->bytes, 0, -file->bytes.size % 8);
	Elf64_Ehdr *header = (void *)file->bytes.bytes;
	header->e_shoff = file->bytes.size;
	header->e_shnum = file->count;
	header->e_shstrndx = names;
	vp_buffer_append(&file->bytes, file->sections, file->count * sizeof(*file->sections));
}

struct made_symbol {
	uint64_t offset, size;
	const char *name;
};

/* A table of symbols in the code, whose names are in the next section. */
static inline void made_symbols(struct made_elf *file, const char *name, uint32_t type,
				const struct made_symbol *symbols, size_t count)
{
	struct vp_buffer strings = {0};
	Elf64_Sym table[8] = {0};

	vp_buffer_append(&strings, "", 1);
	for (size_t i = 0; i < count; i++) {
		table[i + 1] = (Elf64_Sym){
		    .st_name = (uint32_t)strings.size,
		    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		    .st_shndx = symbols[i].offset ? SHN_ABS : SHN_UNDEF,
		    .st_value = symbols[i].offset,
		    .st_size = symbols[i].size,
		};
		vp_buffer_append(&strings, symbols[i].name, strlen(symbols[i].name) + 1);
	}
	Elf64_Shdr *section =
	    made_section(file, name, type, 0, table, (count + 1) * sizeof(*table));
	section->sh_link = file->count;
	section->sh_entsize = sizeof(*table);
	made_section(file, ".strings", SHT_STRTAB, 0, strings.bytes, strings.size);
	vp_buffer_deinit(&strings);
}

/* One CIE, and functions of 0x40 bytes at MADE_CODE, of 0x20 bytes at MADE_CODE + 0x80. */
static inline void made_eh_frame(struct made_elf *file)
{
	static const uint64_t addr = MADE_UNWIND;
	uint32_t frame[5] = {0};
	static const char cie[] = "\0\0\0\0\1zR\0\1\x78\x10\1\x1b";

	frame[0] = 16;
	memcpy(&frame[1], cie, sizeof(cie) - 1);
	struct vp_buffer bytes = {0};
	vp_buffer_append(&bytes, frame, 20);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t at = 20 + 16 * i;
		const uint32_t fde[] = {12, at + 4,
					(uint32_t)(MADE_CODE + 0x80 * i - (addr + at + 8)),
					i ? 0x20 : 0x40};
		vp_buffer_append(&bytes, fde, sizeof(fde));
	}
	vp_buffer_append(&bytes, "\0\0\0", 4);
	made_section(file, ".eh_frame", SHT_PROGBITS, addr, bytes.bytes, bytes.size);
	vp_buffer_deinit(&bytes);
}

enum { MADE_GHC = 0x6000, MADE_GHC_STEP = 0x100, MADE_GHC_END = 0x20000 };

/* GHC's info table of code that starts at `at` in `text`. */
static inline void made_info_table(unsigned char *text, size_t at, uint64_t layout, uint32_t type,
				   int32_t references)
{
	memcpy(text + at - 16, &layout, sizeof(layout));
	memcpy(text + at - 8, &type, sizeof(type));
	memcpy(text + at - 4, &references, sizeof(references));
}

/* Makes the segment of a new file as large as it takes for that code. */
static inline void made_for_ghc(struct made_elf *file)
{
	Elf64_Phdr *segment = (void *)(file->bytes.bytes + sizeof(Elf64_Ehdr));

	segment->p_filesz = segment->p_memsz = MADE_GHC_END;
}

/* Code as of GHC at MADE_GHC: a function at each MADE_GHC_STEP with a place to return to. */
static inline void made_ghc_code(unsigned char *text, size_t size)
{
	memset(text, 0x90, size);
	for (size_t at = MADE_GHC_STEP; at < size; at += MADE_GHC_STEP) {
		made_info_table(text, at, 2 | 1ULL << 32, 14, 0); /* a static function */
		if (at + 0x40 < size)
			made_info_table(text, at + 0x40, 3 | 1 << 6, 30, 0);
	}
}

#endif
