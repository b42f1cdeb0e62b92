/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of a Java process (HotSpot) from its own data in memory: compiled code, stubs, the
 * interpreter; and names of methods. Lists are bounded, and blocks and methods are accepted only if
 * their invariants hold.
 */
#ifndef VP_RUNTIME_JAVA_H
#define VP_RUNTIME_JAVA_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "runtime/java_tables.h"

enum { VP_JAVA_HEAPS = 8, VP_JAVA_BLOB_NAME = 96 };

/* A code heap: its blocks consist of segments, each with a byte in a map. */
struct vp_java_heap {
	uint64_t low, high;
	uint64_t map_low, map_high;
	unsigned log2_segment;
};

struct vp_java_vm {
	const struct vp_process_memory *memory;
	struct vp_java_tables tables;
	struct vp_java_heap heaps[VP_JAVA_HEAPS];
	unsigned n_heaps;
};

enum vp_java_kind { VP_JAVA_METHOD, VP_JAVA_INTERPRETER, VP_JAVA_STUB };

/* A block of code. */
struct vp_java_code {
	enum vp_java_kind kind;
	uint64_t start, end;
	uint64_t method;     /* VP_JAVA_METHOD: address of its Method */
	uint32_t compile_id; /* VP_JAVA_METHOD: its compile id, which is never reused */
	uint8_t level;       /* VP_JAVA_METHOD: 1 to 3: C1, 4: C2; 0: unknown */
	char name[VP_JAVA_BLOB_NAME + 1]; /* otherwise: name given by HotSpot */
};

/* Reads the code heaps. Errors: the VM is starting and has none, or they are invalid.
 * Call it again before each search for code: code heaps grow. */
struct vp_error *vp_java_heaps_read(struct vp_java_vm *vm) VP_MUST_CHECK;
/* Finds the block that contains the address; false: not found, or invalid. */
bool vp_java_code_find(const struct vp_java_vm *vm, uint64_t addr,
		       struct vp_java_code *ret) VP_MUST_CHECK;
/* Finds the start of the block's instructions, to which offsets are relative. */
bool vp_java_code_begin(const struct vp_java_vm *vm, const struct vp_java_code *code,
			uint64_t *ret) VP_MUST_CHECK;
/* Calls `each` for every block in use until it returns false; *damaged: the list of blocks is
 * incomplete. */
void vp_java_code_each(const struct vp_java_vm *vm,
		       bool (*each)(void *context, const struct vp_java_code *code), void *context,
		       bool *damaged);
/* Appends "com.example.Class.method"; false if `method` is not a valid Method. */
bool vp_java_method_name(const struct vp_java_vm *vm, uint64_t method,
			 struct vp_buffer *name) VP_MUST_CHECK;

#endif
