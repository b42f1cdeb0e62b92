/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol tables and tables of functions of a guest's ELF file, as far as it is in the guest's page
 * cache. */
#ifndef VP_GUESTMEM_ELF_TABLES_H
#define VP_GUESTMEM_ELF_TABLES_H

#include "base/buffer.h"
#include "guestmem/pagecache.h"

/* Bytes of one file's headers and tables; the file itself may be of any size. */
#define VP_ELF_TABLES_MAX (256ULL << 20)

struct vp_elf_pages {
	uint64_t all, missing; /* what is missing reads as zero */
};

struct vp_elf_tables {
	struct vp_buffer bytes; /* a small ELF file: headers, symbols, names, tables of functions */
	bool has_symtab, has_symbols, has_functions;
	struct vp_elf_pages symbols;   /* and their names */
	struct vp_elf_pages functions; /* unwind tables, and others that have functions */
	char *problem;                 /* why not, or NULL */
};

/*
 * Makes an ELF file of the headers and tables of `file`: those pages alone are read, and at most
 * `limit` bytes. A name that goes on in a missing page is left out.
 */
void vp_elf_tables_read(const struct vp_guest_file *file, uint64_t limit,
			struct vp_elf_tables *ret);
void vp_elf_tables_deinit(struct vp_elf_tables *tables);

#endif
