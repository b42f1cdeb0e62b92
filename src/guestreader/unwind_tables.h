/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind tables of the files mapped by a guest's processes, from its page cache, and of its vDSO.
 * Each file is read once for all processes; rows are cached. */
#ifndef VP_GUESTREADER_UNWIND_TABLES_H
#define VP_GUESTREADER_UNWIND_TABLES_H

#include "base/macros.h"
#include "unwind/cfi.h"

struct vp_unwind_tables;

enum { VP_NO_UNWIND_TABLE = -1 };

/* Source of a file's bytes. Bytes that cannot be read now may be readable later. */
struct vp_unwind_file {
	uint64_t key; /* identifies the file */
	uint64_t size;
	bool (*read)(void *context, uint64_t offset, void *bytes, size_t size);
	void *context;
};

struct vp_unwind_tables *vp_unwind_tables_new(void);
void vp_unwind_tables_free(struct vp_unwind_tables *tables);

/* Returns the number of the file's table, and reads the table if it is new. VP_NO_UNWIND_TABLE: no
 * table, or limit exceeded. */
int32_t vp_unwind_tables_add(struct vp_unwind_tables *tables, const struct vp_unwind_file *file);
/* Finds the row of the instruction at a file offset. `expressions`: the bytes with its expressions.
 * *work as in vp_cfi_find(). */
enum vp_cfi_result vp_unwind_tables_find(struct vp_unwind_tables *tables, int32_t number,
					 uint64_t offset, uint32_t *work, struct vp_cfi_row *row,
					 struct vp_slice *expressions);
/* Whether to try missing pages of the table again: once per second, a limited number of times. */
bool vp_unwind_tables_lacks(struct vp_unwind_tables *tables, int32_t number, uint64_t now);
/* Reads the missing pages. */
void vp_unwind_tables_complete(struct vp_unwind_tables *tables, int32_t number,
			       const struct vp_unwind_file *file);

#endif
