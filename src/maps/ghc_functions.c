/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Format: StgInfoTable in rts/include/rts/storage/InfoTables.h of GHC, with "tables next to code".
 */
#include "maps/ghc_functions.h"

#include <stdbool.h>
#include <string.h>

#include "base/vec.h"

enum {
	ALIGN = 8,
	MAX_WORDS = 4096,      /* pointers in an object, and other words in it */
	BYTES_PER_TABLE = 1024 /* at most, in code of GHC; usually some 100 */
};

/* Types of objects, from rts/storage/ClosureTypes.h: the same since GHC 8.2. */
enum {
	CONSTRUCTOR = 1,
	FUNCTION = 8,
	LAST_THUNK = 22,
	LAST_OBJECT = 28,
	RETURN_SMALL = 30,
	RETURN_BIG = 31,
	LAST_TYPE = 64,
	BITMAP_SIZE_BITS = 6,
};

/* An info table, which ends where its code starts. */
struct info_table {
	union {
		struct {
			uint32_t pointers, others;
		};
		uint64_t bitmap; /* of a return point's frame: its size, and a bit for each word */
	};
	uint32_t type;
	/* Distance from the code to the table of static references, or 0; of a constructor, its
	 * number in the type. */
	int32_t references;
};

static bool is_bitmap(uint64_t bitmap)
{
	uint64_t size = bitmap & ((1 << BITMAP_SIZE_BITS) - 1);

	return size <= 64 - BITMAP_SIZE_BITS &&
	       (size == 64 - BITMAP_SIZE_BITS || !(bitmap >> (BITMAP_SIZE_BITS + size)));
}

static bool is_table(const struct info_table *table, uint64_t code, uint64_t data_start,
		     uint64_t data_end)
{
	uint64_t references = code + (uint64_t)(int64_t)table->references;
	bool is_constructor = table->type < FUNCTION;

	if (table->type < CONSTRUCTOR || table->type > LAST_TYPE)
		return false;
	if (is_constructor && (table->references < 0 || table->references >= MAX_WORDS))
		return false;
	if (!is_constructor && table->references &&
	    (references < data_start || references >= data_end))
		return false;
	if (table->type <= LAST_OBJECT)
		return table->pointers < MAX_WORDS && table->others < MAX_WORDS;
	return table->type == RETURN_BIG || is_bitmap(table->bitmap);
}

void vp_ghc_functions(const struct vp_section_bytes *code, uint64_t data_start, uint64_t data_end,
		      vp_code_ranges *ret)
{
	size_t before = ret->count, first = (size_t)(-code->addr % ALIGN), tables = 0;
	bool in_function = false; /* places to which others return belong to it */
	struct info_table table;

	for (size_t at = first + sizeof(table); at < code->size; at += ALIGN) {
		memcpy(&table, (const char *)code->bytes + at - sizeof(table), sizeof(table));
		if (!is_table(&table, code->addr + at, data_start, data_end))
			continue;
		bool is_return = table.type == RETURN_SMALL || table.type == RETURN_BIG;
		tables++;
		if (is_return && (in_function || table.type == RETURN_BIG))
			continue;
		in_function = table.type >= FUNCTION && table.type <= LAST_THUNK;
		if (ret->count > before)
			ret->at[ret->count - 1].size =
			    code->addr + at - ret->at[ret->count - 1].start;
		vp_vec_push(ret, ((struct vp_code_range){code->addr + at, code->size - at}));
	}
	if (tables <= code->size / BYTES_PER_TABLE || ret->count - before > VP_CODE_RANGES_MAX)
		ret->count = before;
}
