/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/v8.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "runtime/characters.h"

enum {
	WORD = 8,
	LONGEST_FUNCTION = 256, /* characters */
	LONGEST_SCRIPT = 1024,
	MAX_PIECES = 16, /* of a string that was concatenated */
	MAX_THIN = 4,    /* strings that refer to another one */
	MAX_LOCALS = 75, /* more have their names in a table (kScopeInfoMaxInlinedLocalNamesSize) */
	AFTER_LOCALS = 10, /* words of a ScopeInfo after its locals */
	LARGEST_OFFSET = 1 << 10,
	LARGEST_TYPE = 1 << 16,
	HEAP_TAG = 1,
	HEAP_TAG_MASK = 3,
	SMI_SHIFT = 32,
	CODE_SIZE = 20, /* of a function that returns a variable, at most */
};
#define LARGEST_BLOB (64ULL << 20)
/* Upper limit of user space with 5 levels of page tables. */
#define V8_USER_END (1ULL << 56)

static const char *const symbol_names[VP_V8_SYMBOLS] = {
    [VP_V8_OFF_FUNCTION] = "v8dbg_off_fp_function",
    [VP_V8_OFF_CONTEXT] = "v8dbg_off_fp_context",
    [VP_V8_TAGGED_SIZE] = "v8dbg_TaggedSize",
    [VP_V8_MAP_TYPE] = "v8dbg_class_Map__instance_type__uint16_t",
    [VP_V8_FUNCTION_SHARED] = "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
    [VP_V8_SHARED_NAME] = "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
    [VP_V8_SHARED_NAME_12] = "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
    [VP_V8_SHARED_NAME_13] =
	"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
    [VP_V8_SHARED_SCRIPT] = "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
    [VP_V8_SHARED_SCRIPT_12] = "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
    [VP_V8_SCRIPT_NAME] = "v8dbg_class_Script__name__Object",
    [VP_V8_STRING_LENGTH] = "v8dbg_class_String__length__int32_t",
    [VP_V8_ONE_BYTE_CHARS] = "v8dbg_class_SeqOneByteString__chars__char",
    [VP_V8_TWO_BYTE_CHARS] = "v8dbg_class_SeqTwoByteString__chars__char",
    [VP_V8_CONS_FIRST] = "v8dbg_class_ConsString__first__String",
    [VP_V8_CONS_SECOND] = "v8dbg_class_ConsString__second__String",
    [VP_V8_THIN_ACTUAL] = "v8dbg_class_ThinString__actual__String",
    [VP_V8_FIRST_NONSTRING] = "v8dbg_FirstNonstringType",
    [VP_V8_REPRESENTATION_MASK] = "v8dbg_StringRepresentationMask",
    [VP_V8_ENCODING_MASK] = "v8dbg_StringEncodingMask",
    [VP_V8_CONS_TAG] = "v8dbg_ConsStringTag",
    [VP_V8_THIN_TAG] = "v8dbg_ThinStringTag",
    [VP_V8_ONE_BYTE_TAG] = "v8dbg_OneByteStringTag",
    [VP_V8_TYPE_SHARED] = "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
    [VP_V8_TYPE_SCRIPT] = "v8dbg_type_Script__SCRIPT_TYPE",
    [VP_V8_TYPE_SCOPE] = "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
    [VP_V8_SCOPE_LOCALS] = "v8dbg_scopeinfo_idx_ncontextlocals",
    [VP_V8_SCOPE_FIRST] = "v8dbg_scopeinfo_idx_first_vars",
    [VP_V8_BLOB] = "_ZN2v88internal7Isolate23CurrentEmbeddedBlobCodeEv",
    [VP_V8_BLOB_SIZE] = "_ZN2v88internal7Isolate27CurrentEmbeddedBlobCodeSizeEv",
};

/* Members of the layout, and the symbols of which the first that exists has the value. */
static const struct {
	size_t place; /* offset in struct vp_v8_layout */
	enum vp_v8_symbol first, last;
	uint32_t limit, align;
} v8_members[] = {
#define MEMBER(member, first, last, limit, align)                                                  \
	{                                                                                          \
		offsetof(struct vp_v8_layout, member), first, last, limit, align                   \
	}
#define OFFSET(member, symbol) MEMBER(member, symbol, symbol, LARGEST_OFFSET, WORD)
#define VALUE(member, symbol) MEMBER(member, symbol, symbol, LARGEST_TYPE, 1)
    MEMBER(map_type, VP_V8_MAP_TYPE, VP_V8_MAP_TYPE, LARGEST_OFFSET, 2),
    OFFSET(function_shared, VP_V8_FUNCTION_SHARED),
    MEMBER(shared_name, VP_V8_SHARED_NAME, VP_V8_SHARED_NAME_13, LARGEST_OFFSET, WORD),
    MEMBER(shared_script, VP_V8_SHARED_SCRIPT, VP_V8_SHARED_SCRIPT_12, LARGEST_OFFSET, WORD),
    OFFSET(script_name, VP_V8_SCRIPT_NAME),
    MEMBER(string_length, VP_V8_STRING_LENGTH, VP_V8_STRING_LENGTH, LARGEST_OFFSET, 4),
    MEMBER(one_byte_chars, VP_V8_ONE_BYTE_CHARS, VP_V8_ONE_BYTE_CHARS, LARGEST_OFFSET, 4),
    MEMBER(two_byte_chars, VP_V8_TWO_BYTE_CHARS, VP_V8_TWO_BYTE_CHARS, LARGEST_OFFSET, 4),
    OFFSET(cons_first, VP_V8_CONS_FIRST),
    OFFSET(cons_second, VP_V8_CONS_SECOND),
    OFFSET(thin_actual, VP_V8_THIN_ACTUAL),
    VALUE(first_nonstring, VP_V8_FIRST_NONSTRING),
    VALUE(representation_mask, VP_V8_REPRESENTATION_MASK),
    VALUE(encoding_mask, VP_V8_ENCODING_MASK),
    VALUE(cons_tag, VP_V8_CONS_TAG),
    VALUE(thin_tag, VP_V8_THIN_TAG),
    VALUE(one_byte_tag, VP_V8_ONE_BYTE_TAG),
    VALUE(type_shared, VP_V8_TYPE_SHARED),
    VALUE(type_script, VP_V8_TYPE_SCRIPT),
    VALUE(type_scope, VP_V8_TYPE_SCOPE),
    MEMBER(scope_locals, VP_V8_SCOPE_LOCALS, VP_V8_SCOPE_LOCALS, 16, 1),
    MEMBER(scope_first, VP_V8_SCOPE_FIRST, VP_V8_SCOPE_FIRST, 16, 1),
#undef MEMBER
#undef OFFSET
#undef VALUE
};

const char *vp_v8_symbol_name(enum vp_v8_symbol symbol)
{
	return symbol_names[symbol];
}

/* The first symbol of a member that exists; VP_V8_SYMBOLS: none. */
static enum vp_v8_symbol found_symbol(const uint64_t symbols[VP_V8_SYMBOLS], size_t member)
{
	for (unsigned i = v8_members[member].first; i <= (unsigned)v8_members[member].last; i++)
		if (symbols[i])
			return (enum vp_v8_symbol)i;
	return VP_V8_SYMBOLS;
}

/* The first symbol that is needed and missing; VP_V8_SYMBOLS: none. */
static enum vp_v8_symbol missing_symbol(const uint64_t symbols[VP_V8_SYMBOLS])
{
	for (unsigned i = VP_V8_OFF_FUNCTION; i <= VP_V8_TAGGED_SIZE; i++)
		if (!symbols[i])
			return (enum vp_v8_symbol)i;
	for (size_t i = 0; i < VP_ARRAY_SIZE(v8_members); i++)
		if (found_symbol(symbols, i) == VP_V8_SYMBOLS)
			return v8_members[i].first;
	return VP_V8_SYMBOLS;
}

bool vp_v8_has_symbols(const uint64_t symbols[VP_V8_SYMBOLS])
{
	return missing_symbol(symbols) == VP_V8_SYMBOLS;
}

static struct vp_error *v8_invalid(enum vp_v8_symbol symbol)
{
	return vp_error_new("%s is unreadable or invalid", symbol_names[symbol]);
}

/* Reads an offset below the frame pointer, which is negative. */
static bool read_below(const struct vp_process_memory *memory, uint64_t symbol, uint32_t *ret)
{
	uint32_t value;

	if (!vp_process_u32(memory, symbol, &value))
		return false;
	*ret = 0U - value;
	return *ret && *ret < LARGEST_OFFSET && *ret % WORD == 0;
}

/* The address that x86-64 code returns the value of: `mov N(%rip), %rax; ret`, or %eax. 0: other
 * code. */
static uint64_t returned_by_x86(const unsigned char code[CODE_SIZE], uint64_t function,
				bool is_word)
{
	size_t at = 0;
	int32_t distance;

	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	if (is_word && code[at++] != 0x48)
		return 0;
	if (code[at] != 0x8b || code[at + 1] != 0x05 || code[at + 6] != 0xc3)
		return 0;
	memcpy(&distance, code + at + 2, sizeof(distance));
	return function + at + 6 + (uint64_t)(int64_t)distance;
}

/* The same of 64-bit Arm's: `adrp x0, N; add x0, x0, #N; ldr x0, [x0, #N]; ret`, or w0, and without
 * the addition. */
static uint64_t returned_by_arm(const unsigned char code[CODE_SIZE], uint64_t function,
				bool is_word)
{
	const uint32_t landing = 0xd503245f, load = is_word ? 0xf9400000 : 0xb9400000;
	uint32_t words[CODE_SIZE / sizeof(uint32_t)];
	const uint32_t *next = words;

	memcpy(words, code, sizeof(words));
	next += *next == landing;
	uint64_t address = (function + 4 * (uint64_t)(next - words)) & ~0xfffULL;
	if ((*next & 0x9f00001f) != 0x90000000)
		return 0;
	/* 21 bits with a sign */
	uint64_t pages = (uint64_t)(*next >> 5 & 0x7ffff) << 2 | (*next >> 29 & 3);
	address += ((pages ^ (1ULL << 20)) - (1ULL << 20)) * 4096;
	if ((*++next & 0xffc003ff) == 0x91000000)
		address += *next++ >> 10 & 0xfff;
	if ((*next & 0xffc003ff) != load || next[1] != 0xd65f03c0)
		return 0;
	return address + (uint64_t)(*next >> 10 & 0xfff) * (is_word ? 8 : 4);
}

/* Reads the variable that the function returns. */
static bool read_returned(const struct vp_process_memory *memory, uint64_t function, bool is_word,
			  uint64_t *ret)
{
	unsigned char code[CODE_SIZE];

	*ret = 0;
	if (!function || !vp_process_read(memory, function, code, sizeof(code)))
		return false;
	uint64_t address = returned_by_x86(code, function, is_word);
	if (!address)
		address = returned_by_arm(code, function, is_word);
	return address && vp_process_read(memory, address, ret, is_word ? 8 : 4);
}

void vp_v8_find_blob(struct vp_v8 *v8)
{
	uint64_t low, size;

	if (!v8->blob_high && read_returned(v8->memory, v8->blob_function, true, &low) &&
	    read_returned(v8->memory, v8->blob_size_function, false, &size) && low && size &&
	    low < V8_USER_END && size <= LARGEST_BLOB) {
		v8->blob_low = low;
		v8->blob_high = low + size;
	}
}

struct vp_error *vp_v8_open(const struct vp_process_memory *memory,
			    const uint64_t symbols[VP_V8_SYMBOLS], struct vp_v8 *ret)
{
	enum vp_v8_symbol missing = missing_symbol(symbols);
	uint32_t size;

	*ret = (struct vp_v8){.memory = memory,
			      .blob_function = symbols[VP_V8_BLOB],
			      .blob_size_function = symbols[VP_V8_BLOB_SIZE]};
	if (missing != VP_V8_SYMBOLS)
		return vp_error_new("it does not export %s", symbol_names[missing]);
	if (!vp_process_u32(memory, symbols[VP_V8_TAGGED_SIZE], &size))
		return v8_invalid(VP_V8_TAGGED_SIZE);
	if (size != WORD)
		return vp_error_new("V8 with compressed pointers is not supported");
	if (!read_below(memory, symbols[VP_V8_OFF_FUNCTION], &ret->layout.function_below))
		return v8_invalid(VP_V8_OFF_FUNCTION);
	if (!read_below(memory, symbols[VP_V8_OFF_CONTEXT], &ret->layout.context_below))
		return v8_invalid(VP_V8_OFF_CONTEXT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(v8_members); i++) {
		enum vp_v8_symbol symbol = found_symbol(symbols, i);
		uint32_t value;
		if (!vp_process_u32(memory, symbols[symbol], &value) ||
		    value >= v8_members[i].limit || value % v8_members[i].align)
			return v8_invalid(symbol);
		memcpy((char *)&ret->layout + v8_members[i].place, &value, sizeof(value));
	}
	vp_v8_find_blob(ret);
	return NULL;
}

static bool is_object(uint64_t tagged)
{
	return (tagged & HEAP_TAG_MASK) == HEAP_TAG && tagged < V8_USER_END;
}

static bool is_smi(uint64_t tagged)
{
	return !(tagged & HEAP_TAG) && !(tagged & UINT32_MAX);
}

uint64_t vp_v8_function_of_frame(const struct vp_v8 *v8, uint64_t context, uint64_t function)
{
	uint64_t shared;

	/* Frames of other kinds have a number in place of the context. */
	if (!is_object(context) || !is_object(function) ||
	    !vp_process_u64(v8->memory, function - HEAP_TAG + v8->layout.function_shared,
			    &shared) ||
	    !is_object(shared) || (shared - HEAP_TAG) % WORD)
		return 0;
	return shared - HEAP_TAG;
}

/* Reads the type of a tagged object; 0: unreadable. Types of strings are the smallest ones. */
static bool read_type(const struct vp_v8 *v8, uint64_t tagged, uint16_t *ret)
{
	uint64_t map;

	return is_object(tagged) && vp_process_u64(v8->memory, tagged - HEAP_TAG, &map) &&
	       is_object(map) &&
	       vp_process_u16(v8->memory, map - HEAP_TAG + v8->layout.map_type, ret);
}

static bool has_type(const struct vp_v8 *v8, uint64_t tagged, uint32_t type)
{
	uint16_t found;

	return read_type(v8, tagged, &found) && found == type;
}

static bool v8_fail(struct vp_v8 *v8, enum vp_v8_failure failure)
{
	v8->failures[failure]++;
	return false;
}

/* Reads the pointers to the function's name, or its scope, and to its script. */
static bool read_shared(struct vp_v8 *v8, uint64_t shared, uint64_t *name, uint64_t *script)
{
	const struct vp_v8_layout *at = &v8->layout;
	uint16_t type;

	if (!shared || shared % WORD || shared >= V8_USER_END)
		return v8_fail(v8, VP_V8_NO_FUNCTION);
	if (!read_type(v8, shared | HEAP_TAG, &type))
		return v8_fail(v8, VP_V8_UNREADABLE);
	if (type != at->type_shared)
		return v8_fail(v8, VP_V8_NO_FUNCTION);
	return (vp_process_u64(v8->memory, shared + at->shared_name, name) &&
		vp_process_u64(v8->memory, shared + at->shared_script, script)) ||
	       v8_fail(v8, VP_V8_UNREADABLE);
}

bool vp_v8_identity(struct vp_v8 *v8, uint64_t shared, uint64_t *ret)
{
	uint64_t name, script;

	if (!read_shared(v8, shared, &name, &script))
		return false;
	*ret = vp_hash64(name) ^ vp_hash64(~script);
	return true;
}

/* Appends a flat string, at most `most` characters. */
static bool put_flat(const struct vp_v8 *v8, uint64_t string, uint16_t type, uint64_t most,
		     struct vp_buffer *text)
{
	const struct vp_v8_layout *at = &v8->layout;
	unsigned char bytes[LONGEST_SCRIPT * 2];
	bool one_byte = (type & at->encoding_mask) == at->one_byte_tag;
	size_t size = one_byte ? 1 : 2;
	uint32_t length;

	if (!vp_process_u32(v8->memory, string + at->string_length, &length) || length > INT32_MAX)
		return false;
	most = length < most ? length : most;
	if (!vp_process_read(v8->memory,
			     string + (one_byte ? at->one_byte_chars : at->two_byte_chars), bytes,
			     (size_t)most * size))
		return false;
	for (uint64_t i = 0; i < most; i++) {
		uint32_t c = 0;
		memcpy(&c, bytes + i * size, size);
		vp_put_character(text, c);
	}
	return true;
}

/* Appends a string of any kind, at most `most` bytes or a few more. Its pieces are a stack of
 * tagged pointers. */
static bool v8_put_text(const struct vp_v8 *v8, uint64_t tagged, size_t most,
			struct vp_buffer *text)
{
	const struct vp_v8_layout *at = &v8->layout;
	uint64_t pieces[MAX_PIECES] = {tagged};
	size_t end = text->size + most;
	uint16_t type;

	for (unsigned count = 1, steps = 0; count && text->size < end; steps++) {
		uint64_t piece = pieces[--count];
		if (steps == MAX_PIECES * MAX_THIN || !read_type(v8, piece, &type) ||
		    type >= at->first_nonstring)
			return false;
		uint64_t string = piece - HEAP_TAG;
		uint32_t kind = type & at->representation_mask;
		if (!kind) {
			if (!put_flat(v8, string, type, end - text->size, text))
				return false;
		} else if (kind == at->thin_tag) {
			if (!vp_process_u64(v8->memory, string + at->thin_actual, &pieces[count++]))
				return false;
		} else if (kind == at->cons_tag) {
			if (count + 2 > MAX_PIECES ||
			    !vp_process_u64(v8->memory, string + at->cons_second,
					    &pieces[count++]) ||
			    !vp_process_u64(v8->memory, string + at->cons_first, &pieces[count++]))
				return false;
		} else {
			return false; /* a part of another string, or outside of the heap */
		}
	}
	return true;
}

/* Whether two words are where a function starts and ends in its script. */
static bool is_position(uint64_t start, uint64_t end)
{
	return is_smi(start) && is_smi(end) && start < end;
}

/* The words of a scope after its variables. Each of these has a name and a number; many share one
 * table of names. */
static bool read_after_locals(const struct vp_v8 *v8, uint64_t start, uint64_t words[AFTER_LOCALS])
{
	const struct vp_v8_layout *at = &v8->layout;
	uint64_t count;

	if (!vp_process_u64(v8->memory, start + (uint64_t)WORD * at->scope_locals, &count) ||
	    !is_smi(count))
		return false;
	count >>= SMI_SHIFT;
	if (count >= INT32_MAX)
		return false;
	count = at->scope_first + (count < MAX_LOCALS ? 2 * count : count + 1);
	for (unsigned i = 0; i < AFTER_LOCALS; i++)
		if (!vp_process_u64(v8->memory, start + WORD * (count + i), &words[i]))
			words[i] = 0;
	return true;
}

/* Appends the function's name in its scope: the first string after the variables. Sets *position,
 * from 1 on: that of the function, which is before the variables since V8 13, and after the name in
 * older versions. */
static bool put_scope_name(const struct vp_v8 *v8, uint64_t tagged, struct vp_buffer *text,
			   uint64_t *position)
{
	const struct vp_v8_layout *at = &v8->layout;
	uint64_t words[AFTER_LOCALS], start = tagged - HEAP_TAG + WORD, pair[2] = {0};
	size_t size = text->size;

	if (!read_after_locals(v8, start, words))
		return false;
	if (at->scope_first < at->scope_locals + 3 ||
	    !vp_process_read(v8->memory, start + WORD * (at->scope_locals + 1ULL), pair,
			     sizeof(pair)))
		pair[0] = pair[1] = 0;
	for (unsigned i = 0; i + 1 < AFTER_LOCALS && !is_position(pair[0], pair[1]); i++)
		memcpy(pair, words + i, sizeof(pair));
	if (is_position(pair[0], pair[1]))
		*position = (pair[0] >> SMI_SHIFT) + 1;
	for (unsigned i = 0; i + 1 < AFTER_LOCALS && text->size == size; i++) {
		/* The name is before the position and the outer scope. */
		if (is_position(words[i], words[i + 1]) || has_type(v8, words[i], at->type_scope))
			break;
		if (is_object(words[i]) && !v8_put_text(v8, words[i], LONGEST_FUNCTION, text))
			text->size = size;
	}
	return text->size > size;
}

bool vp_v8_name(struct vp_v8 *v8, uint64_t shared, struct vp_buffer *name)
{
	uint64_t of, script, file, position = 0;
	bool named;

	if (!read_shared(v8, shared, &of, &script))
		return false;
	vp_buffer_string(name, "JS:");
	size_t start = name->size;
	if (has_type(v8, of, v8->layout.type_scope))
		named = put_scope_name(v8, of, name, &position);
	else
		named = is_object(of) && v8_put_text(v8, of, LONGEST_FUNCTION, name);
	if (!named || name->size == start) {
		name->size = start;
		vp_buffer_string(name, "(anonymous)");
		named = false;
	}
	if (!has_type(v8, script, v8->layout.type_script) ||
	    !vp_process_u64(v8->memory, script - HEAP_TAG + v8->layout.script_name, &file))
		return true;
	vp_buffer_string(name, " ");
	size_t end = name->size;
	if (!v8_put_text(v8, file, LONGEST_SCRIPT, name) || name->size == end)
		name->size = end - 1;
	else if (!named && position)
		vp_buffer_printf(name, ":@%" PRIu64, position - 1);
	return true;
}
