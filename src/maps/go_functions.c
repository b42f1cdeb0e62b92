/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Layout: pcHeader, functab and _func in Go's runtime/symtab.go. */
#include "maps/go_functions.h"

#include "maps/code_ranges.h"

enum {
	GO_1_16 = 0xfffffffa,
	GO_1_18 = 0xfffffff0,
	GO_1_20 = 0xfffffff1,
	POINTER = 8,
	LONGEST_NAME = 4096,
};

struct layout {
	bool relative; /* addresses are 32-bit offsets from the start of the code */
	uint64_t functions, text;
	struct vp_slice names, table; /* table: functab, and the functions that it refers to */
};

static struct vp_slice rest_from(const struct vp_go_table *table, uint64_t offset)
{
	if (offset >= table->size)
		return (struct vp_slice){"", 0};
	return (struct vp_slice){(const char *)table->bytes + offset, table->size - offset};
}

/* Reads the version (a magic number) and sizes that identify the table. */
static bool read_start(struct vp_cursor *cursor, uint32_t *magic)
{
	*magic = vp_cursor_u32(cursor);
	uint16_t zero = vp_cursor_u16(cursor);
	struct vp_slice sizes = vp_cursor_bytes(cursor, 2); /* of an instruction, of a pointer */

	return vp_cursor_ok(cursor) &&
	       (*magic == GO_1_16 || *magic == GO_1_18 || *magic == GO_1_20) && !zero &&
	       (sizes.bytes[0] == 1 || sizes.bytes[0] == 2 || sizes.bytes[0] == 4) &&
	       sizes.bytes[1] == POINTER;
}

bool vp_go_table_starts(const void *bytes, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	uint32_t magic;

	return read_start(&cursor, &magic);
}

static bool read_layout(const struct vp_go_table *table, struct layout *ret)
{
	struct vp_cursor cursor = vp_cursor_of(table->bytes, table->size);
	uint32_t magic;

	*ret = (struct layout){0};
	if (!read_start(&cursor, &magic))
		return false;
	ret->relative = magic != GO_1_16;
	ret->functions = vp_cursor_u64(&cursor);
	vp_cursor_u64(&cursor); /* number of files */
	if (ret->relative)
		ret->text = vp_cursor_u64(&cursor);
	ret->names = rest_from(table, vp_cursor_u64(&cursor));
	vp_cursor_bytes(&cursor, 3UL * POINTER); /* compilation units, file names, tables by PC */
	ret->table = rest_from(table, vp_cursor_u64(&cursor));
	return vp_cursor_ok(&cursor) && ret->functions <= VP_CODE_RANGES_MAX;
}

bool vp_go_table_needs_text(const void *bytes, size_t size)
{
	const struct vp_go_table table = {bytes, size, 0};
	struct layout layout;

	return read_layout(&table, &layout) && layout.relative && !layout.text;
}

static uint64_t next_word(const struct layout *layout, struct vp_cursor *cursor)
{
	return layout->relative ? vp_cursor_u32(cursor) : vp_cursor_u64(cursor);
}

/* Name of the function described at `offset`. */
static struct vp_slice name_of(const struct layout *layout, uint64_t offset, uint64_t entry)
{
	const struct vp_slice none = {"", 0};

	if (offset >= layout->table.size)
		return none;
	struct vp_cursor facts =
	    vp_cursor_of(layout->table.bytes + offset, layout->table.size - offset);
	uint64_t repeated = next_word(layout, &facts);
	uint32_t at = vp_cursor_u32(&facts);
	if (!vp_cursor_ok(&facts) || repeated != entry || at >= layout->names.size)
		return none;
	size_t most = layout->names.size - at;
	struct vp_slice name = {layout->names.bytes + at, most};
	name.size = strnlen(name.bytes, most < LONGEST_NAME ? most : LONGEST_NAME);
	return name.size < most && name.size < LONGEST_NAME ? name : none;
}

void vp_go_functions(const struct vp_go_table *table,
		     void (*take)(void *context, const struct vp_go_function *function),
		     void *context)
{
	struct layout layout;

	if (!read_layout(table, &layout))
		return;
	uint64_t text = layout.text ? layout.text : table->text;
	struct vp_cursor entries = vp_cursor_of(layout.table.bytes, layout.table.size);
	uint64_t entry = next_word(&layout, &entries);
	if (layout.relative && !text)
		return;
	for (uint64_t i = 0; i < layout.functions; i++) {
		uint64_t offset = next_word(&layout, &entries);
		uint64_t next = next_word(&layout, &entries);
		if (!vp_cursor_ok(&entries))
			return;
		const struct vp_go_function function = {.addr =
							    layout.relative ? text + entry : entry,
							.size = next - entry,
							.name = name_of(&layout, offset, entry)};
		if (offset && next > entry)
			take(context, &function);
		entry = next;
	}
}
