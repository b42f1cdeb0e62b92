/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JavaScript functions of a process with V8 (Node.js) from its own data in memory. All frames of
 * JavaScript, interpreted or compiled, keep their JSFunction at a fixed offset from the frame
 * pointer. It leads to the SharedFunctionInfo, which has the function's name and script. The layout
 * is in constants that V8 exports for debuggers (v8dbg_…). Reads are bounded, and objects are
 * accepted only if their types are right.
 */
#ifndef VP_RUNTIME_V8_H
#define VP_RUNTIME_V8_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "runtime/process_memory.h"

/* Exported symbols. Where V8 renamed one, the later names follow: one of them is needed. */
enum vp_v8_symbol {
	VP_V8_OFF_FUNCTION,
	VP_V8_OFF_CONTEXT,
	VP_V8_TAGGED_SIZE,
	VP_V8_MAP_TYPE,
	VP_V8_FUNCTION_SHARED,
	VP_V8_SHARED_NAME,
	VP_V8_SHARED_NAME_12,
	VP_V8_SHARED_NAME_13,
	VP_V8_SHARED_SCRIPT,
	VP_V8_SHARED_SCRIPT_12,
	VP_V8_SCRIPT_NAME,
	VP_V8_STRING_LENGTH,
	VP_V8_ONE_BYTE_CHARS,
	VP_V8_TWO_BYTE_CHARS,
	VP_V8_CONS_FIRST,
	VP_V8_CONS_SECOND,
	VP_V8_THIN_ACTUAL,
	VP_V8_FIRST_NONSTRING,
	VP_V8_REPRESENTATION_MASK,
	VP_V8_ENCODING_MASK,
	VP_V8_CONS_TAG,
	VP_V8_THIN_TAG,
	VP_V8_ONE_BYTE_TAG,
	VP_V8_TYPE_SHARED,
	VP_V8_TYPE_SCRIPT,
	VP_V8_TYPE_SCOPE,
	VP_V8_SCOPE_LOCALS,
	VP_V8_SCOPE_FIRST,
	/* Functions that return the address and the size of V8's own code, which includes the
	 * interpreter. Not exported by all builds. */
	VP_V8_BLOB,
	VP_V8_BLOB_SIZE,
	VP_V8_SYMBOLS,
};

/* Offsets from an object's address, without the tag of pointers. */
struct vp_v8_layout {
	uint32_t function_below, context_below; /* below the frame pointer */
	uint32_t map_type;
	uint32_t function_shared;
	uint32_t shared_name, shared_script;
	uint32_t script_name;
	uint32_t string_length, one_byte_chars, two_byte_chars;
	uint32_t cons_first, cons_second, thin_actual;
	uint32_t first_nonstring, representation_mask, encoding_mask;
	uint32_t cons_tag, thin_tag, one_byte_tag;
	uint32_t type_shared, type_script, type_scope;
	uint32_t scope_locals, scope_first; /* indexes of words after the map */
};

/* Failures of name lookups. */
enum vp_v8_failure {
	VP_V8_UNREADABLE,
	VP_V8_NO_FUNCTION, /* not a SharedFunctionInfo */
	VP_V8_FAILURES,
};

struct vp_v8 {
	const struct vp_process_memory *memory;
	struct vp_v8_layout layout;
	/* V8's own code in its file; equal: unknown. */
	uint64_t blob_low, blob_high;
	uint64_t blob_function, blob_size_function; /* 0: not exported */
	uint64_t failures[VP_V8_FAILURES];
};

/* Name of the symbol in .dynsym. */
const char *vp_v8_symbol_name(enum vp_v8_symbol symbol);
/* Whether all symbols are found that are needed. `symbols`: addresses in the process; 0: missing.
 */
bool vp_v8_has_symbols(const uint64_t symbols[VP_V8_SYMBOLS]);
/* Reads the layout. Errors: a symbol is missing, or a value is impossible. */
struct vp_error *vp_v8_open(const struct vp_process_memory *memory,
			    const uint64_t symbols[VP_V8_SYMBOLS], struct vp_v8 *ret) VP_MUST_CHECK;
/* Finds V8's own code, unless it is known. While V8 starts, it is not. */
void vp_v8_find_blob(struct vp_v8 *v8);
/* From the words of a frame to the address of its SharedFunctionInfo; 0: not JavaScript. */
uint64_t vp_v8_function_of_frame(const struct vp_v8 *v8, uint64_t context, uint64_t function);
/* Computes a value that changes if another function is at that address; false: no function. */
bool vp_v8_identity(struct vp_v8 *v8, uint64_t shared, uint64_t *ret) VP_MUST_CHECK;
/* Appends "JS:function script"; false: no function. */
bool vp_v8_name(struct vp_v8 *v8, uint64_t shared, struct vp_buffer *name) VP_MUST_CHECK;

#endif
