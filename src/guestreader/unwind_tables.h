/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind tables of the files mapped by a guest's processes, from its page cache, and of its vDSO.
 * Each file is read once for all processes; rows are cached. */
#ifndef VP_GUESTREADER_UNWIND_TABLES_H
#define VP_GUESTREADER_UNWIND_TABLES_H

#include "base/macros.h"
#include "guestmem/tasks/pagecache.h"
#include "unwind/cfi.h"

struct vp_unwind_tables;

enum { VP_NO_UNWIND_TABLE = -1 };

/* Source of a file's bytes. Bytes that cannot be read now may be readable later. */
struct vp_unwind_file {
	uint64_t key; /* identifies the file */
	uint64_t size;
	vp_file_bytes read;
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

/* Whether the table has missing pages, and no copy of its file was named yet. */
bool vp_unwind_tables_wants_copy(const struct vp_unwind_tables *tables, int32_t number);
/* Names where the host may have a copy of the file. */
void vp_unwind_tables_name_copy(struct vp_unwind_tables *tables, int32_t number,
				const struct vp_build_id *build_id, const char *path);
/* Calls `each` for the copies that were named since the last call, if pages are still missing. */
void vp_unwind_tables_each_copy(struct vp_unwind_tables *tables,
				void (*each)(void *context, const struct vp_build_id *build_id,
					     const char *path),
				void *context);
/* Reads the missing pages of a table from a copy of its file, if that has the build-id. */
void vp_unwind_tables_take_copy(struct vp_unwind_tables *tables, const struct vp_build_id *build_id,
				const struct vp_unwind_file *copy);

#endif
