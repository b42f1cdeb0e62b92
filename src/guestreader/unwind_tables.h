/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind tables of the files that a guest's processes have mapped, from its page cache, and of its
 * vDSO. Each file is read once, whichever processes have it; rows that were found are kept.
 */
#ifndef VP_GUESTREADER_UNWIND_TABLES_H
#define VP_GUESTREADER_UNWIND_TABLES_H

#include "base/macros.h"
#include "unwind/cfi.h"

struct vp_unwind_tables;

/* No table. */
enum { VP_NO_UNWIND_TABLE = -1 };

/* Where a file's bytes come from: those that cannot be read now may be readable later. */
struct vp_unwind_file {
	uint64_t key; /* the same file has the same */
	uint64_t size;
	bool (*read)(void *context, uint64_t offset, void *bytes, size_t size);
	void *context;
};

struct vp_unwind_tables *vp_unwind_tables_new(void);
void vp_unwind_tables_free(struct vp_unwind_tables *tables);

/* The number of the file's table, which is read unless it is known; VP_NO_UNWIND_TABLE: the file
 * has none, or a limit is met. */
int32_t vp_unwind_tables_add(struct vp_unwind_tables *tables, const struct vp_unwind_file *file);
/* Finds the row for the instruction at an offset of the file, and the bytes that its expressions
 * are in. *work as in vp_cfi_find(). */
enum vp_cfi_result vp_unwind_tables_find(struct vp_unwind_tables *tables, int32_t number,
					 uint64_t offset, uint32_t *work, struct vp_cfi_row *row,
					 struct vp_slice *expressions);
/* Whether pages of the table are missing that may be read now; at most a few times a second. */
bool vp_unwind_tables_lacks(struct vp_unwind_tables *tables, int32_t number, uint64_t now);
/* Reads those. */
void vp_unwind_tables_complete(struct vp_unwind_tables *tables, int32_t number,
			       const struct vp_unwind_file *file);

#endif
