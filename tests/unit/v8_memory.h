/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a process with V8, made by code: constants, frames, functions with scopes, and
 * strings of all kinds. */
#ifndef VP_TESTS_V8_MEMORY_H
#define VP_TESTS_V8_MEMORY_H

#include <string.h>

#include "runtime/v8.h"

#define V8_BASE 0x7f0000000000ULL

enum {
	V8_SIZE = 0x4000,
	/* Places, from V8_BASE on: */
	V8_AT_SYMBOLS = 0x100,
	V8_AT_CODE = 0x400,       /* of the functions that return the blob */
	V8_AT_BLOB = 0x480,       /* what they return */
	V8_AT_MAPS = 0x800,       /* 0x20 bytes each, by enum v8_type */
	V8_AT_FUNCTIONS = 0x1000, /* 0x40 each */
	V8_AT_SHARED = 0x1200,    /* 0x40 each */
	V8_AT_SCOPES = 0x1400,    /* 0x400 each */
	V8_AT_SCRIPT = 0x2400,
	V8_AT_TEXTS = 0x2800, /* 0x100 each */
	V8_FUNCTIONS = 4,
	/* Version of V8 */
	V8_OLD = 10,
	V8_NEW = 13,
};

enum v8_type {
	V8_TYPE_ONE_BYTE = 8,
	V8_TYPE_TWO_BYTE = 0,
	V8_TYPE_CONS = 1,
	V8_TYPE_THIN = 5,
	V8_TYPE_SLICED = 3,
	V8_TYPE_SCRIPT = 170,
	V8_TYPE_SCOPE = 256,
	V8_TYPE_SHARED = 257,
	V8_TYPE_FUNCTION = 2065,
};

struct v8_memory {
	unsigned char bytes[V8_SIZE];
	uint64_t symbols[VP_V8_SYMBOLS];
	uint64_t reads, maps, texts;
	unsigned version;
	struct vp_process_memory memory;
};

static inline void v8_put(struct v8_memory *v8, size_t at, uint64_t value, size_t size)
{
	memcpy(v8->bytes + at, &value, size);
}

static inline bool v8_memory_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	struct v8_memory *v8 = context;
	uint64_t at = addr - V8_BASE;

	v8->reads++;
	if (at >= V8_SIZE || size > V8_SIZE - at)
		return false;
	memcpy(bytes, v8->bytes + at, size);
	return true;
}

static inline uint64_t v8_tagged(size_t at)
{
	return V8_BASE + at + 1;
}

static inline uint64_t v8_smi(uint64_t value)
{
	return value << 32;
}

/* Gives the object at that place a new map of that type. */
static inline void v8_put_type(struct v8_memory *v8, size_t at, enum v8_type type)
{
	size_t map = V8_AT_MAPS + 0x20 * v8->maps++;

	v8_put(v8, map + 12, type, 2);
	v8_put(v8, at, v8_tagged(map), 8);
}

/* A string of characters of one or two bytes; its tagged address. */
static inline uint64_t v8_put_string(struct v8_memory *v8, const char *text, bool two_bytes)
{
	size_t at = V8_AT_TEXTS + 0x100 * v8->texts++, length = strlen(text);

	v8_put_type(v8, at, two_bytes ? V8_TYPE_TWO_BYTE : V8_TYPE_ONE_BYTE);
	v8_put(v8, at + 12, length, 4);
	for (size_t i = 0; i < length; i++)
		v8_put(v8, at + 16 + i * (two_bytes ? 2 : 1), (unsigned char)text[i],
		       two_bytes ? 2 : 1);
	return v8_tagged(at);
}

/* A string that refers to one or two others. */
static inline uint64_t v8_put_pair(struct v8_memory *v8, enum v8_type type, uint64_t first,
				   uint64_t second)
{
	size_t at = V8_AT_TEXTS + 0x100 * v8->texts++;

	v8_put_type(v8, at, type);
	v8_put(v8, at + 12, 16, 4);
	v8_put(v8, at + 16, first, 8);
	v8_put(v8, at + 24, second, 8);
	return v8_tagged(at);
}

static inline uint64_t v8_shared_at(unsigned number)
{
	return V8_BASE + V8_AT_SHARED + 0x40UL * number;
}

static inline void v8_put_symbol(struct v8_memory *v8, enum vp_v8_symbol symbol, int32_t value)
{
	v8->symbols[symbol] = V8_BASE + V8_AT_SYMBOLS + 8UL * symbol;
	v8_put(v8, V8_AT_SYMBOLS + 8UL * symbol, (uint32_t)value, 4);
}

/* Values as in Node.js 18, and 24. */
static inline void v8_put_symbols(struct v8_memory *v8)
{
	bool old = v8->version == V8_OLD;
	const struct {
		enum vp_v8_symbol symbol;
		int32_t value;
	} values[] = {
	    {VP_V8_OFF_FUNCTION, -16},
	    {VP_V8_OFF_CONTEXT, -8},
	    {VP_V8_TAGGED_SIZE, 8},
	    {VP_V8_MAP_TYPE, 12},
	    {VP_V8_FUNCTION_SHARED, old ? 24 : 32},
	    {old ? VP_V8_SHARED_NAME : VP_V8_SHARED_NAME_13, old ? 16 : 24},
	    {old ? VP_V8_SHARED_SCRIPT : VP_V8_SHARED_SCRIPT_12, old ? 32 : 40},
	    {VP_V8_SCRIPT_NAME, 16},
	    {VP_V8_STRING_LENGTH, 12},
	    {VP_V8_ONE_BYTE_CHARS, 16},
	    {VP_V8_TWO_BYTE_CHARS, 16},
	    {VP_V8_CONS_FIRST, 16},
	    {VP_V8_CONS_SECOND, 24},
	    {VP_V8_THIN_ACTUAL, 16},
	    {VP_V8_FIRST_NONSTRING, 128},
	    {VP_V8_REPRESENTATION_MASK, 7},
	    {VP_V8_ENCODING_MASK, 8},
	    {VP_V8_CONS_TAG, 1},
	    {VP_V8_THIN_TAG, 5},
	    {VP_V8_ONE_BYTE_TAG, 8},
	    {VP_V8_TYPE_SHARED, V8_TYPE_SHARED},
	    {VP_V8_TYPE_SCRIPT, V8_TYPE_SCRIPT},
	    {VP_V8_TYPE_SCOPE, V8_TYPE_SCOPE},
	    {VP_V8_SCOPE_LOCALS, 2},
	    {VP_V8_SCOPE_FIRST, old ? 3 : 5},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		v8_put_symbol(v8, values[i].symbol, values[i].value);
	/* mov N(%rip), %rax; ret, and the same with %eax, after endbr64 */
	v8->symbols[VP_V8_BLOB] = V8_BASE + V8_AT_CODE;
	v8->symbols[VP_V8_BLOB_SIZE] = V8_BASE + V8_AT_CODE + 0x20;
	memcpy(v8->bytes + V8_AT_CODE, "\x48\x8b\x05\x79\0\0\0\xc3", 8);
	memcpy(v8->bytes + V8_AT_CODE + 0x20, "\xf3\x0f\x1e\xfa\x8b\x05\x5e\0\0\0\xc3", 11);
	v8_put(v8, V8_AT_BLOB, V8_BASE + 0x100000, 8);
	v8_put(v8, V8_AT_BLOB + 8, 0x200000, 4);
}

/* Puts a scope with that number of variables; `name` 0: none. */
static inline uint64_t v8_put_scope(struct v8_memory *v8, unsigned number, unsigned locals,
				    uint64_t name, unsigned start, unsigned end)
{
	size_t place = V8_AT_SCOPES + 0x400UL * number, at = place + 8;
	bool old = v8->version == V8_OLD;

	v8_put_type(v8, place, V8_TYPE_SCOPE);
	v8_put(v8, at, v8_smi(0x1234), 8);
	v8_put(v8, at + 16, v8_smi(locals), 8);
	at += 24;
	if (!old) {
		v8_put(v8, at, v8_smi(start), 8);
		v8_put(v8, at + 8, v8_smi(end), 8);
		at += 16;
	}
	for (unsigned i = 0; i < locals && locals < 75; i++, at += 8)
		v8_put(v8, at, v8_tagged(V8_AT_TEXTS), 8);
	if (locals >= 75) {
		v8_put(v8, at, v8_tagged(V8_AT_SCRIPT), 8); /* some object */
		at += 8;
	}
	for (unsigned i = 0; i < locals; i++, at += 8)
		v8_put(v8, at, v8_smi(100 - i), 8);
	if (name) {
		v8_put(v8, at, name, 8);
		v8_put(v8, at + 8, v8_smi(0), 8);
		at += 16;
	}
	if (old) {
		v8_put(v8, at, v8_smi(start), 8);
		v8_put(v8, at + 8, v8_smi(end), 8);
		at += 16;
	}
	v8_put(v8, at, v8_tagged(V8_AT_SCOPES), 8); /* the outer scope, and another object */
	v8_put(v8, at + 8, v8_tagged(V8_AT_TEXTS), 8);
	return v8_tagged(place);
}

static inline void v8_put_function(struct v8_memory *v8, unsigned number, uint64_t name,
				   uint64_t script)
{
	bool old = v8->version == V8_OLD;
	size_t shared = V8_AT_SHARED + 0x40UL * number;
	size_t function = V8_AT_FUNCTIONS + 0x40UL * number;

	v8_put_type(v8, function, V8_TYPE_FUNCTION);
	v8_put(v8, function + (old ? 24 : 32), v8_tagged(shared), 8);
	v8_put_type(v8, shared, V8_TYPE_SHARED);
	v8_put(v8, shared + (old ? 16 : 24), name, 8);
	v8_put(v8, shared + (old ? 32 : 40), script, 8);
}

/* Functions: with a name in its scope, without one, with one of its own, and one with many
 * variables. */
static inline void v8_memory_make(struct v8_memory *v8, unsigned version)
{
	memset(v8, 0, sizeof(*v8));
	v8->version = version;
	v8->memory = (struct vp_process_memory){v8_memory_read, v8};
	v8_put_symbols(v8);
	v8_put_string(v8, "variable", false);
	uint64_t first = v8_put_string(v8, "Class.", false);
	uint64_t second = v8_put_string(v8, "m\xe9thode", true);
	uint64_t whole = v8_put_pair(v8, V8_TYPE_CONS, first, second);
	uint64_t thin = v8_put_pair(v8, V8_TYPE_THIN, v8_put_string(v8, "map", false), 0);
	uint64_t file = v8_put_string(v8, "/app/main.js", false);
	uint64_t many = v8_put_string(v8, "many", false);
	uint64_t script = v8_tagged(V8_AT_SCRIPT);
	v8_put_type(v8, V8_AT_SCRIPT, V8_TYPE_SCRIPT);
	v8_put(v8, V8_AT_SCRIPT + 16, file, 8);
	v8_put_function(v8, 0, v8_put_scope(v8, 0, 3, whole, 10, 90), script);
	v8_put_function(v8, 1, v8_put_scope(v8, 1, 2, 0, 42, 90), script);
	v8_put_function(v8, 2, thin, v8_tagged(V8_AT_TEXTS) /* no script */);
	v8_put_function(v8, 3, v8_put_scope(v8, 2, 80, many, 10, 90), script);
}

#endif
