/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of a Java process (HotSpot), from its own data in memory: code that was compiled, stubs, the
 * interpreter; and names of methods. Lists are bounded, and a block or a method is believed only if
 * its invariants hold.
 */
#ifndef VP_RUNTIME_JAVA_H
#define VP_RUNTIME_JAVA_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "runtime/java_tables.h"

enum { VP_JAVA_HEAPS = 8, VP_JAVA_BLOB_NAME = 96 };

/* A piece of the code cache: its blocks are in segments, each with a byte in a map. */
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
	uint64_t method;                  /* VP_JAVA_METHOD: its Method */
	uint32_t compile_id;              /* the same: its number, which is not used again */
	uint8_t level;                    /* the same: 1 to 3 by C1, 4 by C2; 0: not known */
	char name[VP_JAVA_BLOB_NAME + 1]; /* else: the name that HotSpot gave it */
};

/* Reads where code is. Fails if it is nowhere: the VM is starting, or what is there makes no sense.
 * To be called again before code is looked for: code heaps grow. */
struct vp_error *vp_java_heaps_read(struct vp_java_vm *vm) VP_MUST_CHECK;
/* The block with that address; false: not found, or inconsistent. */
bool vp_java_code_find(const struct vp_java_vm *vm, uint64_t addr,
		       struct vp_java_code *ret) VP_MUST_CHECK;
/* Calls `each` for every block in use, until it returns false; *damaged: the list of blocks ended
 * too early. */
void vp_java_code_each(const struct vp_java_vm *vm,
		       bool (*each)(void *context, const struct vp_java_code *code), void *context,
		       bool *damaged);
/* Appends "com.example.Class.method"; false if `method` is no Method. */
bool vp_java_method_name(const struct vp_java_vm *vm, uint64_t method,
			 struct vp_buffer *name) VP_MUST_CHECK;

#endif
