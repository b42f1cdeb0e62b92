/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol and function tables of a guest's ELF file, from the resident part of the file in the
 * guest's page cache. */
#ifndef VP_GUESTMEM_SYMBOLS_ELF_TABLES_H
#define VP_GUESTMEM_SYMBOLS_ELF_TABLES_H

#include "base/buffer.h"
#include "guestmem/tasks/pagecache.h"

/* Limit for headers and tables of a file; the file itself may have any size. */
#define VP_ELF_TABLES_MAX (256ULL << 20)

struct vp_elf_pages {
	uint64_t all, missing; /* bytes; missing ones read as zero */
};

struct vp_elf_tables {
	struct vp_buffer bytes; /* a small ELF file: headers, symbols, names, function tables */
	bool has_symtab, has_symbols, has_functions;
	bool no_sections; /* section headers or names are missing: not all tables are found */
	struct vp_elf_pages symbols;   /* symbol tables and symbol names */
	struct vp_elf_pages functions; /* unwind tables, and other tables of functions */
	char *problem;                 /* reason for missing pages, or NULL */
};

/* Makes an ELF file from the headers and tables of `file`: reads only their pages, at most `limit`
 * bytes. Names that continue in a missing page are left out. */
void vp_elf_tables_read(const struct vp_guest_file *file, uint64_t limit,
			struct vp_elf_tables *ret);
void vp_elf_tables_deinit(struct vp_elf_tables *tables);

#endif
