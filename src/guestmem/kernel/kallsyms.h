/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds and decodes the symbol table in a kernel's read-only data (CONFIG_KALLSYMS), in a copy of
 * its image. Its tables have no header, and their order depends on the kernel version; they are
 * found by invariants between them:
 *
 *   token_table   256 texts; token_index the 256 offsets of these texts, right after
 *   names         per symbol a length (one byte; since v6.1 two if >= 128) and that many tokens
 *   markers       the offset in names of every 256th symbol; between names and token_table
 *   num_syms      the number of symbols, right before names
 *   offsets       per symbol 32 bits relative to relative_base, which follows; before num_syms,
 *                 since v6.4 (404bad70fcf7 "scripts: kallsyms: change the output order") after
 *                 token_index
 */
#ifndef VP_GUESTMEM_KERNEL_KALLSYMS_H
#define VP_GUESTMEM_KERNEL_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

enum { VP_KALLSYMS_NAME_MAX = 512 };

/* Encoding of symbol addresses in 32 bits. */
enum vp_kallsyms_encoding {
	VP_KALLSYMS_RELATIVE = 1, /* base + value */
	/* Values >= 0 are per-CPU offsets, others base - 1 - value. Used until v6.15 (01157ddc58dc
	 * "kallsyms: Remove KALLSYMS_ABSOLUTE_PERCPU") on x86-64 with SMP. */
	VP_KALLSYMS_PERCPU = 2,
	VP_KALLSYMS_SELF_RELATIVE = 3, /* relative to the value's own address */
};

/* Offsets of the tables in the image. */
struct vp_kallsyms {
	uint64_t names, token_table, token_index, offsets;
	uint32_t count;
	enum vp_kallsyms_encoding encoding;
	uint64_t base; /* relative_base, as relocated in the running kernel */
};

struct vp_kallsyms_symbol {
	uint64_t addr;
	char type;
	bool percpu; /* `addr` is an offset from the per-CPU base */
	char name[VP_KALLSYMS_NAME_MAX];
};

/* Searches the image for the tables. `image_va`: the image's address; 0: unknown. */
struct vp_error *vp_kallsyms_find(const char *image, size_t size, uint64_t image_va,
				  struct vp_kallsyms *ret) VP_MUST_CHECK;
/* Finds the first bytes that may be part of a token table; NULL: none. */
const char *vp_kallsyms_find_candidate(const char *bytes, size_t size);
/* Calls `each` for every symbol until it returns false. False: damaged tables. */
bool vp_kallsyms_each(const struct vp_kallsyms *tables, const char *image, size_t size,
		      bool (*each)(void *context, const struct vp_kallsyms_symbol *symbol),
		      void *context);

#endif
