/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small ELF files, made by code: one code segment at another address than file offset. */
#ifndef VP_TESTS_ELF_BUILDER_H
#define VP_TESTS_ELF_BUILDER_H

#include <elf.h>
#include <string.h>

enum {
	ELF_BUILDER_NOTE = 0x100,
	ELF_BUILDER_STRINGS = 0x200,
	ELF_BUILDER_SYMBOLS = 0x300,
	ELF_BUILDER_SECTIONS = 0x500,
	ELF_BUILDER_CODE = 0x1000,
	ELF_BUILDER_SIZE = 0x2000,
	ELF_BUILDER_VADDR = 0x401000, /* of the code */
};

struct elf_builder {
	unsigned char bytes[ELF_BUILDER_SIZE];
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[6]; /* null, code, note, strings, symbols, debuglink */
	Elf64_Sym symbols[16];
	char strings[256];
	unsigned symbol_count, string_size;
};

static inline void elf_builder_symbol(struct elf_builder *elf, const char *name, uint64_t value,
				      uint64_t size, unsigned char info, uint16_t section)
{
	elf->symbols[elf->symbol_count++] = (Elf64_Sym){.st_name = elf->string_size,
							.st_info = info,
							.st_shndx = section,
							.st_value = value,
							.st_size = size};
	strcpy(elf->strings + elf->string_size, name);
	elf->string_size += (unsigned)strlen(name) + 1;
}

static inline void elf_builder_init(struct elf_builder *elf)
{
	*elf = (struct elf_builder){.symbol_count = 1, .string_size = 1};
	elf->header = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
				   .e_type = ET_DYN,
				   .e_machine = EM_X86_64,
				   .e_version = 1,
				   .e_phoff = sizeof(Elf64_Ehdr),
				   .e_shoff = ELF_BUILDER_SECTIONS,
				   .e_ehsize = sizeof(Elf64_Ehdr),
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = 1,
				   .e_shentsize = sizeof(Elf64_Shdr),
				   .e_shnum = 5};
	elf->segment = (Elf64_Phdr){.p_type = PT_LOAD,
				    .p_flags = PF_X | PF_R,
				    .p_offset = ELF_BUILDER_CODE,
				    .p_vaddr = ELF_BUILDER_VADDR,
				    .p_filesz = 0x1000,
				    .p_memsz = 0x1000};
	elf->sections[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
					.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					.sh_addr = ELF_BUILDER_VADDR,
					.sh_offset = ELF_BUILDER_CODE,
					.sh_size = 0x1000};
	elf->sections[2] = (Elf64_Shdr){
	    .sh_type = SHT_NOTE, .sh_offset = ELF_BUILDER_NOTE, .sh_size = 20, .sh_addralign = 4};
	elf->sections[3] =
	    (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = ELF_BUILDER_STRINGS, .sh_size = 256};
	elf->sections[4] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					.sh_offset = ELF_BUILDER_SYMBOLS,
					.sh_link = 3,
					.sh_entsize = sizeof(Elf64_Sym)};
}

/* Puts it all together in elf->bytes. */
static inline void elf_builder_finish(struct elf_builder *elf)
{
	static const char note[20] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xde\xad\xbe\xef";

	elf->sections[4].sh_size = elf->symbol_count * sizeof(Elf64_Sym);
	memcpy(elf->bytes, &elf->header, sizeof(elf->header));
	memcpy(elf->bytes + sizeof(elf->header), &elf->segment, sizeof(elf->segment));
	memcpy(elf->bytes + ELF_BUILDER_NOTE, note, sizeof(note));
	memcpy(elf->bytes + ELF_BUILDER_STRINGS, elf->strings, sizeof(elf->strings));
	memcpy(elf->bytes + ELF_BUILDER_SYMBOLS, elf->symbols, sizeof(elf->symbols));
	memcpy(elf->bytes + ELF_BUILDER_SECTIONS, elf->sections, sizeof(elf->sections));
}

#endif
