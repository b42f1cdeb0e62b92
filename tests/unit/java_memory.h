/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a Java process, made by code: HotSpot's tables, a code heap, two methods. */
#ifndef VP_TESTS_JAVA_MEMORY_H
#define VP_TESTS_JAVA_MEMORY_H

#include <stdio.h>
#include <string.h>

#include "runtime/java.h"

#define JAVA_BASE 0x7f0000000000ULL

enum {
	JAVA_SIZE = 0xb000,
	/* Places, from JAVA_BASE on: */
	JAVA_AT_STRUCTS = 0x8000,
	JAVA_AT_TYPES = 0x800,
	JAVA_AT_STRINGS = 0xa00,
	JAVA_AT_STATICS = 0x1800, /* the pointers to the array of heaps, and to the only heap */
	JAVA_AT_ARRAY = 0x1820,
	JAVA_AT_HEAP_POINTERS = 0x1840,
	JAVA_AT_HEAP = 0x1900,
	JAVA_AT_METHODS = 0x2000, /* 0x20 bytes each, then what belongs to them */
	JAVA_AT_CONSTS = 0x2080,
	JAVA_AT_POOL = 0x2100,
	JAVA_AT_KLASS = 0x2200,
	JAVA_AT_SYMBOLS = 0x2300, /* 0x40 bytes each: class, method 1, method 2 */
	JAVA_AT_NAMES = 0x2500,   /* of blobs, 0x20 bytes each */
	JAVA_AT_DEBUG = 0x2700,   /* JDK 25: debug information of block 2 */
	JAVA_AT_METADATA = 0x2800,
	JAVA_AT_MAP = 0x3000,
	JAVA_AT_CODE = 0x4000,
	JAVA_CODE_SIZE = 0x4000,
	JAVA_SEGMENT = 0x80,
	JAVA_STRIDE = 48,
	JAVA_BLOCKS = 5,
	/* In each block with code: */
	JAVA_CODE_OFFSET = 0x80,
	JAVA_FRAME_WORDS = 6,
	JAVA_FRAME_COMPLETE = 9,
};

enum java_version { JAVA_8, JAVA_13, JAVA_25 };

struct java_memory {
	char bytes[JAVA_SIZE];
	size_t structs, types, strings;
	enum java_version version;
	uint64_t symbols[VP_JAVA_SYMBOLS];
	uint64_t readable; /* bytes from JAVA_BASE on */
	uint64_t reads;
	struct vp_process_memory memory;
};

static inline void java_put(struct java_memory *java, size_t at, uint64_t value, size_t size)
{
	memcpy(java->bytes + at, &value, size);
}

static inline uint64_t java_string(struct java_memory *java, const char *text)
{
	size_t at = java->strings;

	memcpy(java->bytes + at, text, strlen(text) + 1);
	java->strings += strlen(text) + 1;
	return JAVA_BASE + at;
}

static inline void java_member(struct java_memory *java, const char *type, const char *field,
			       uint64_t offset, uint64_t address)
{
	size_t at = JAVA_AT_STRUCTS + JAVA_STRIDE * java->structs++;

	java_put(java, at, java_string(java, type), 8);
	java_put(java, at + 8, java_string(java, field), 8);
	java_put(java, at + 24, address != 0, 4);
	java_put(java, at + 32, offset, 8);
	java_put(java, at + 40, address, 8);
}

static inline void java_type(struct java_memory *java, const char *type, uint64_t size)
{
	size_t at = JAVA_AT_TYPES + JAVA_STRIDE * java->types++;

	java_put(java, at, java_string(java, type), 8);
	java_put(java, at + 32, size, 8);
}

static inline void java_tables(struct java_memory *java)
{
	bool old = java->version == JAVA_8, newest = java->version == JAVA_25;

	if (!old)
		java_member(java, "CodeCache", "_heaps", 0, JAVA_BASE + JAVA_AT_STATICS);
	else
		java_member(java, "CodeCache", "_heap", 0, JAVA_BASE + JAVA_AT_STATICS + 8);
	java_member(java, newest ? "GrowableArrayBase" : "GenericGrowableArray", "_len", 0, 0);
	java_member(java, "GrowableArray<int>", "_data", 8, 0);
	java_member(java, "CodeHeap", "_memory", 0x10, 0);
	java_member(java, "CodeHeap", "_segmap", 0x40, 0);
	java_member(java, "CodeHeap", "_log2_segment_size", 0x80, 0);
	java_member(java, "VirtualSpace", "_low", 0x10, 0);
	java_member(java, "VirtualSpace", "_high", 0x18, 0);
	java_member(java, "HeapBlock::Header", "_length", 0, 0);
	java_member(java, "HeapBlock::Header", "_used", newest ? 4 : 8, 0);
	java_member(java, "CodeBlob", "_name", 0x8, 0);
	java_member(java, "CodeBlob", "_size", 0x10, 0);
	java_member(java, java->version == JAVA_13 ? "CompiledMethod" : "nmethod", "_method", 0x20,
		    0);
	java_member(java, "nmethod", "_compile_id", 0x28, 0);
	java_member(java, "nmethod", "_comp_level", 0x2c, 0);
	java_member(java, "Method", "_constMethod", 8, 0);
	java_member(java, "ConstMethod", "_constants", 8, 0);
	java_member(java, "ConstMethod", "_name_index", 0x12, 0);
	java_member(java, "ConstantPool", "_pool_holder", 0x18, 0);
	java_member(java, "ConstantPool", "_length", 0x3c, 0);
	java_member(java, "Klass", "_name", 0x18, 0);
	java_member(java, "Symbol", java->version == JAVA_13 ? "_length_and_refcount" : "_length",
		    0, 0);
	java_member(java, "Symbol", "_body", 6, 0);
	java_member(java, "CodeBlob", java->version == JAVA_13 ? "_code_begin" : "_code_offset",
		    0x30, 0);
	java_member(java, "CodeBlob", "_frame_size", 0x38, 0);
	java_member(java, "CodeBlob", "_frame_complete_offset", 0x3c, 0);
	java_member(java, "nmethod", "_scopes_pcs_offset", 0x40, 0);
	java_member(java, "nmethod", newest ? "_scopes_data_offset" : "_dependencies_offset", 0x44,
		    0);
	if (newest) {
		java_member(java, "ConstMethod", "_flags._flags", 0, 0);
		java_member(java, "nmethod", "_immutable_data", 0x48, 0);
		java_member(java, "nmethod", "_immutable_data_size", 0x50, 0);
		java_member(java, "CodeBlob", "_mutable_data", 0x58, 0);
		java_member(java, "CodeBlob", "_mutable_data_size", 0x60, 0);
		java_member(java, "CodeBlob", "_relocation_size", 0x64, 0);
	} else {
		java_member(java, old ? "nmethod" : "CompiledMethod",
			    old ? "_scopes_data_offset" : "_scopes_data_begin", 0x48, 0);
		java_member(java, "nmethod", "_metadata_offset", 0x50, 0);
	}
	java_member(java, "PcDesc", "_pc_offset", 0, 0);
	java_member(java, "PcDesc", "_scope_decode_offset", 4, 0);
	java_type(java, "HeapBlock", newest ? 8 : 16);
	java_type(java, "ConstantPool", 0x48);
	java_type(java, "PcDesc", 16);
}

/* The addresses of the exported variables, and their values. */
static inline void java_exports(struct java_memory *java)
{
	static const uint64_t values[VP_JAVA_SYMBOLS] = {
	    [VP_JAVA_STRUCTS] = JAVA_BASE + JAVA_AT_STRUCTS,
	    [VP_JAVA_STRUCT_FIELD_NAME] = 8,
	    [VP_JAVA_STRUCT_IS_STATIC] = 24,
	    [VP_JAVA_STRUCT_OFFSET] = 32,
	    [VP_JAVA_STRUCT_ADDRESS] = 40,
	    [VP_JAVA_STRUCT_STRIDE] = JAVA_STRIDE,
	    [VP_JAVA_TYPES] = JAVA_BASE + JAVA_AT_TYPES,
	    [VP_JAVA_TYPE_SIZE] = 32,
	    [VP_JAVA_TYPE_STRIDE] = JAVA_STRIDE,
	};

	for (size_t i = 0; i < VP_JAVA_SYMBOLS; i++) {
		java->symbols[i] = JAVA_BASE + 8 * i;
		java_put(java, 8 * i, values[i], 8);
	}
}

static inline void java_symbol(struct java_memory *java, unsigned number, const char *text)
{
	size_t at = JAVA_AT_SYMBOLS + 0x40 * number;

	if (java->version == JAVA_13)
		java_put(java, at, strlen(text) << 16 | 7, 4);
	else
		java_put(java, at, strlen(text), 2);
	memcpy(java->bytes + at + 6, text, strlen(text));
}

static inline uint64_t java_method(unsigned number)
{
	return JAVA_BASE + JAVA_AT_METHODS + 0x20 * number;
}

static inline void java_methods(struct java_memory *java)
{
	java_symbol(java, 0, "com/example/Work$$Lambda+0x12");
	java_symbol(java, 1, "spin");
	java_symbol(java, 2, "<init>");
	java_put(java, JAVA_AT_KLASS + 0x18, JAVA_BASE + JAVA_AT_SYMBOLS, 8);
	java_put(java, JAVA_AT_POOL + 0x18, JAVA_BASE + JAVA_AT_KLASS, 8);
	java_put(java, JAVA_AT_POOL + 0x3c, 3, 4);
	/* Right after the pool there is what looks like one more constant. */
	java_put(java, JAVA_AT_POOL + 0x48 + 8UL * 3, JAVA_BASE + JAVA_AT_SYMBOLS, 8);
	for (unsigned i = 0; i < 2; i++) {
		size_t constants = JAVA_AT_CONSTS + 0x20 * i;
		java_put(java, JAVA_AT_METHODS + 0x20 * i + 8, JAVA_BASE + constants, 8);
		java_put(java, constants + 8, JAVA_BASE + JAVA_AT_POOL, 8);
		java_put(java, constants + 0x12, i + 1, 2);
		java_put(java, JAVA_AT_POOL + 0x48 + 8 * (i + 1),
			 (JAVA_BASE + JAVA_AT_SYMBOLS + 0x40 * (i + 1)) | (i == 1), 8);
	}
}

/* First segment and segments of each block; names of blobs, NULL: not in use. */
static const struct {
	unsigned segment, count;
	const char *name;
	unsigned method;
} java_blocks[JAVA_BLOCKS] = {
    {0, 40, "Interpreter", 0}, {40, 2, "StubRoutines (1)", 0}, {42, 8, "nmethod", 0},
    {50, 4, NULL, 0},          {54, 6, "native nmethod", 1},
};

/* The address of a block's blob. */
static inline uint64_t java_blob(const struct java_memory *java, unsigned block)
{
	return JAVA_BASE + JAVA_AT_CODE + JAVA_SEGMENT * java_blocks[block].segment +
	       (java->version == JAVA_25 ? 8 : 16);
}

/* Debug information of a method: up to offset 0x10 in its code it is the method itself, up to 0x20
 * method 1, which is inlined. */
static inline void java_debug(struct java_memory *java, size_t pcs, size_t data, size_t metadata)
{
	uint8_t zero = java->version == JAVA_25;
	const uint32_t entries[][2] = {{UINT32_MAX, 0}, {0x10, 1}, {0x20, 3}, {INT32_MAX, 0}};
	const uint8_t scopes[] = {0xff, zero, (uint8_t)(zero + 1), (uint8_t)(zero + 1),
				  (uint8_t)(zero + 2)};

	for (unsigned i = 0; i < 4; i++)
		memcpy(java->bytes + pcs + 16UL * i, entries[i], sizeof(entries[i]));
	memcpy(java->bytes + data, scopes, sizeof(scopes));
	java_put(java, metadata, java_method(0), 8);
	java_put(java, metadata + 8, java_method(1), 8);
}

static inline void java_frames(struct java_memory *java, size_t blob, bool with_debug)
{
	bool newest = java->version == JAVA_25;

	java_put(java, blob + 0x30,
		 java->version == JAVA_13 ? JAVA_BASE + blob + JAVA_CODE_OFFSET : JAVA_CODE_OFFSET,
		 java->version == JAVA_13 ? 8 : 4);
	java_put(java, blob + 0x38, JAVA_FRAME_WORDS, 4);
	java_put(java, blob + 0x3c, JAVA_FRAME_COMPLETE, 2);
	if (!with_debug)
		return;
	java_put(java, blob + 0x40, newest ? 0 : 0x280, 4);
	java_put(java, blob + 0x44, newest ? 0x40 : 0x2c0, 4);
	if (java->version == JAVA_8)
		java_put(java, blob + 0x48, 0x200, 4);
	else
		java_put(java, blob + 0x48, JAVA_BASE + (newest ? JAVA_AT_DEBUG : blob + 0x200), 8);
	java_put(java, blob + 0x50, newest ? 0x80 : 0x1c0, 4);
	if (newest) {
		java_put(java, blob + 0x58, JAVA_BASE + JAVA_AT_METADATA, 8);
		java_put(java, blob + 0x60, 0x20, 4);
		java_put(java, blob + 0x64, 8, 4);
		java_debug(java, JAVA_AT_DEBUG, JAVA_AT_DEBUG + 0x40, JAVA_AT_METADATA + 8);
	} else {
		java_debug(java, blob + 0x280, blob + 0x200, blob + 0x1c0);
	}
}

static inline void java_code(struct java_memory *java)
{
	memset(java->bytes + JAVA_AT_MAP, 0xff, JAVA_CODE_SIZE / JAVA_SEGMENT);
	for (unsigned i = 0; i < JAVA_BLOCKS; i++) {
		size_t start = JAVA_AT_CODE + JAVA_SEGMENT * java_blocks[i].segment;
		size_t blob = java_blob(java, i) - JAVA_BASE;
		java_put(java, start, java_blocks[i].count, 4);
		java_put(java, start + (java->version == JAVA_25 ? 4 : 8),
			 java_blocks[i].name != NULL, 1);
		/* Each segment leads ten back at most. */
		for (unsigned j = 0; j < java_blocks[i].count && java_blocks[i].name; j++)
			java->bytes[JAVA_AT_MAP + java_blocks[i].segment + j] =
			    (char)(j < 10 ? j : 10);
		if (!java_blocks[i].name)
			continue;
		strcpy(java->bytes + JAVA_AT_NAMES + 0x20 * i, java_blocks[i].name);
		java_put(java, blob + 8, JAVA_BASE + JAVA_AT_NAMES + 0x20 * i, 8);
		java_put(java, blob + 0x10, JAVA_SEGMENT * java_blocks[i].count - 0x20, 4);
		java_put(java, blob + 0x20, java_method(java_blocks[i].method), 8);
		java_put(java, blob + 0x28, 100 + i, 4);
		java->bytes[blob + 0x2c] = 4;
		java_frames(java, blob, i == 2);
	}
}

static inline bool java_memory_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	struct java_memory *java = context;

	java->reads++;
	if (addr < JAVA_BASE || addr - JAVA_BASE > java->readable ||
	    size > java->readable - (addr - JAVA_BASE))
		return false;
	memcpy(bytes, java->bytes + (addr - JAVA_BASE), size);
	return true;
}

static inline void java_memory_make(struct java_memory *java, enum java_version version)
{
	*java = (struct java_memory){
	    .version = version, .strings = JAVA_AT_STRINGS, .readable = JAVA_SIZE};
	java->memory = (struct vp_process_memory){java_memory_read, java};
	java_exports(java);
	java_tables(java);
	java_methods(java);
	java_put(java, JAVA_AT_STATICS, JAVA_BASE + JAVA_AT_ARRAY, 8);
	java_put(java, JAVA_AT_STATICS + 8, JAVA_BASE + JAVA_AT_HEAP, 8);
	java_put(java, JAVA_AT_ARRAY, 1, 4);
	java_put(java, JAVA_AT_ARRAY + 8, JAVA_BASE + JAVA_AT_HEAP_POINTERS, 8);
	java_put(java, JAVA_AT_HEAP_POINTERS, JAVA_BASE + JAVA_AT_HEAP, 8);
	java_put(java, JAVA_AT_HEAP + 0x20, JAVA_BASE + JAVA_AT_CODE, 8);
	java_put(java, JAVA_AT_HEAP + 0x28, JAVA_BASE + JAVA_AT_CODE + JAVA_CODE_SIZE, 8);
	java_put(java, JAVA_AT_HEAP + 0x50, JAVA_BASE + JAVA_AT_MAP, 8);
	java_put(java, JAVA_AT_HEAP + 0x58, JAVA_BASE + JAVA_AT_MAP + JAVA_CODE_SIZE / JAVA_SEGMENT,
		 8);
	java_put(java, JAVA_AT_HEAP + 0x80, 7, 4);
	java_code(java);
}

#endif
