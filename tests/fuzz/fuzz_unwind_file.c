/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind tables of a file that a guest maps, of which pages are missing, and of the host's file
 * that is passed by descriptor because it has the same build-id. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guestreader/unwind_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PAGE = 4096, MAX_WORK = 10000, PLACES = 64 };

struct file {
	const uint8_t *bytes;
	size_t size;
	unsigned missing; /* a bit per page, of the first eight */
};

static bool read_file(void *context, uint64_t offset, void *to, size_t size)
{
	const struct file *file = context;

	if (offset > file->size || size > file->size - offset)
		return false;
	for (uint64_t at = offset; at < offset + size; at += PAGE - at % PAGE)
		if (at / PAGE < 8 && file->missing >> at / PAGE & 1)
			return false;
	memcpy(to, file->bytes + offset, size);
	return true;
}

/* Rows of instructions at many places. */
static void find_rows(struct vp_unwind_tables *tables, int32_t number, size_t size)
{
	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t offset = i * (size / PLACES + 1);
		uint32_t work = MAX_WORK;
		struct vp_slice expressions = {"", 0};
		struct vp_cfi_row row;
		if (vp_unwind_tables_find(tables, number, offset, &work, &row, &expressions) ==
			VP_CFI_FOUND &&
		    (work > MAX_WORK || row.cfa_register >= VP_DWARF_REGISTERS ||
		     row.return_register >= VP_DWARF_REGISTERS))
			abort();
	}
}

static void count_copy(void *context, const struct vp_build_id *build_id, const char *path)
{
	unsigned *count = context;

	*count += build_id->size && *path;
}

static void add_and_complete(struct vp_unwind_tables *tables, struct file *guest, struct file *host)
{
	const struct vp_unwind_file file = {
	    .key = 1, .size = guest->size, .read = read_file, .context = guest};
	const struct vp_unwind_file copy = {.size = INT64_MAX, .read = read_file, .context = host};
	int32_t number = vp_unwind_tables_add(tables, &file);
	struct vp_build_id id;
	unsigned copies = 0;

	if (number == VP_NO_UNWIND_TABLE)
		return;
	find_rows(tables, number, guest->size);
	if (!vp_unwind_tables_wants_copy(tables, number) || !vp_file_build_id(read_file, host, &id))
		return;
	vp_unwind_tables_name_copy(tables, number, &id, "/usr/lib/file");
	vp_unwind_tables_each_copy(tables, count_copy, &copies);
	if (copies != 1)
		abort();
	vp_unwind_tables_take_copy(tables, &id, &copy);
	find_rows(tables, number, guest->size);
}

/* A byte with the guest's missing pages, then the file. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (!size)
		return 0;
	struct file guest = {bytes + 1, size - 1, bytes[0]}, host = {bytes + 1, size - 1, 0};
	struct vp_unwind_tables *tables = vp_unwind_tables_new();

	add_and_complete(tables, &guest, &host);
	vp_unwind_tables_free(tables);
	return 0;
}
