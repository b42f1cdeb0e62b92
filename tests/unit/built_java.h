/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Java process of the built guest: its library in the page cache, and its user space. */
#ifndef VP_TESTS_BUILT_JAVA_H
#define VP_TESTS_BUILT_JAVA_H

#include <elf.h>
/* guest_builder.h has a place of that name. */
#undef AT_ENTRY

#include "guest_files.h"
#include "java_memory.h"

#define BUILT_LIBRARY 0x7eff00000000ULL

enum { SYMBOLS_AT = 0x400, NAMES_AT = 0x800, LIBRARY_SIZE = 0x1000 };

struct built_java {
	struct java_memory memory;
	uint64_t pages[JAVA_SIZE / 0x1000]; /* physical addresses */
	uint64_t place;                     /* of its task */
};

/* A page of a page table, reached from an entry; its physical address. */
static inline uint64_t built_table(struct guest_builder *guest, uint64_t table, unsigned index)
{
	uint64_t below = built_object(guest, 0x1000, 0x1000) - BUILT_DIRECT;

	put64(guest->low + table + 8UL * index, below | 7);
	return below;
}

/* User space is what the process's memory is by now. */
static inline void built_java_update(struct guest_builder *guest, const struct built_java *java)
{
	for (unsigned i = 0; i < JAVA_SIZE / 0x1000; i++)
		memcpy(guest->low + java->pages[i], java->memory.bytes + 0x1000 * i, 0x1000);
}

static inline void built_user_space(struct guest_builder *guest, struct built_java *java)
{
	uint64_t table = BUILT_CR3;

	for (unsigned shift = 39; shift > 12; shift -= 9)
		table = built_table(guest, table, JAVA_BASE >> shift & 511);
	for (unsigned i = 0; i < JAVA_SIZE / 0x1000; i++) {
		java->pages[i] = built_object(guest, 0x1000, 0x1000) - BUILT_DIRECT;
		put64(guest->low + table + 8UL * i, java->pages[i] | 7);
	}
	built_java_update(guest, java);
}

/* An exported symbol: its name, its address in the process, and its size. */
struct built_export {
	const char *name;
	uint64_t value, size;
};

/* A library with exported symbols alone. */
static inline void built_library(const struct built_export *exports, unsigned count,
				 char bytes[LIBRARY_SIZE])
{
	Elf64_Ehdr *header = (void *)bytes;
	Elf64_Phdr *segments = (void *)(bytes + sizeof(*header));
	Elf64_Dyn *dynamic = (void *)(bytes + 0x200);
	Elf64_Sym *symbols = (void *)(bytes + SYMBOLS_AT);
	size_t name = NAMES_AT + 1;

	memset(bytes, 0, LIBRARY_SIZE);
	memcpy(header->e_ident, ELFMAG "\2\1\1", 7);
	header->e_phoff = sizeof(*header);
	header->e_phentsize = sizeof(*segments);
	header->e_phnum = 2;
	segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				   .p_flags = PF_R | PF_X,
				   .p_vaddr = 0x10000,
				   .p_filesz = LIBRARY_SIZE,
				   .p_memsz = LIBRARY_SIZE};
	segments[1] = (Elf64_Phdr){
	    .p_type = PT_DYNAMIC, .p_vaddr = 0x10200, .p_offset = 0x200, .p_filesz = 0x100};
	dynamic[0] = (Elf64_Dyn){DT_SYMTAB, {0x10000 + SYMBOLS_AT}};
	dynamic[1] = (Elf64_Dyn){DT_STRTAB, {0x10000 + NAMES_AT}};
	dynamic[2] = (Elf64_Dyn){DT_STRSZ, {0x800}};
	dynamic[3] = (Elf64_Dyn){DT_HASH, {0x10300}};
	put32(bytes + 0x304, count + 1);
	for (unsigned i = 0; i < count; i++) {
		symbols[i + 1] =
		    (Elf64_Sym){.st_name = (uint32_t)(name - NAMES_AT),
				.st_value = exports[i].value - (BUILT_LIBRARY - 0x10000),
				.st_size = exports[i].size};
		strcpy(bytes + name, exports[i].name);
		name += strlen(exports[i].name) + 1;
	}
}

/* Process `tgid`, which has a library of that name with these symbols. */
static inline void built_process_with(struct guest_builder *guest, uint32_t tgid,
				      const char *library_name, const struct built_export *exports,
				      unsigned count, struct built_java *java)
{
	char library[LIBRARY_SIZE];
	struct root root = built_root(guest);
	uint64_t mm = built_mm(guest);
	uint64_t file = built_file(guest, built_dentry(guest, root.dentry, library_name), root.mnt);

	built_library(exports, count, library);
	const struct page_at page = {0, built_page(guest, library, sizeof(library))};
	built_page_cache(guest, file, built_tree(guest, &page, 1), sizeof(library));
	built_put64(guest, mm + guest->pack.at.mm_maple_root,
		    built_vma(guest, BUILT_LIBRARY, BUILT_LIBRARY + 0x1000, 0, file));
	java->place = built_process(guest, tgid, mm, "java");
	built_put64(guest, java->place + guest->pack.at.task_fs, root.fs);
	built_user_space(guest, java);
}

/* Java process `tgid`, with its library under that name. */
static inline void built_java_process(struct guest_builder *guest, uint32_t tgid,
				      const char *library_name, struct built_java *java)
{
	struct built_export exports[VP_JAVA_SYMBOLS];

	java_memory_make(&java->memory, JAVA_25);
	for (unsigned i = 0; i < VP_JAVA_SYMBOLS; i++)
		exports[i] = (struct built_export){vp_java_symbol_name((enum vp_java_symbol)i),
						   java->memory.symbols[i], 8};
	built_process_with(guest, tgid, library_name, exports, VP_JAVA_SYMBOLS, java);
}

#endif
