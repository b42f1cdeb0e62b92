/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Debug information of HotSpot's compilers: the methods that were inlined at an instruction. JDK 9
 * to 22, and 25. */
#ifndef VP_RUNTIME_JAVA_SCOPES_H
#define VP_RUNTIME_JAVA_SCOPES_H

#include "base/macros.h"
#include "runtime/java.h"

enum { VP_JAVA_INLINED = 16 };

/* Instructions that are of the same methods. */
struct vp_java_scope {
	uint64_t begin, end; /* offsets in the code's instructions */
	unsigned n_inlined;
	uint64_t inlined[VP_JAVA_INLINED]; /* methods, innermost first, without the compiled one */
};

/* Finds the methods that were inlined at an offset in the code's instructions; false: unknown or
 * invalid. */
bool vp_java_scopes_read(const struct vp_java_vm *vm, const struct vp_java_code *code,
			 uint64_t offset, struct vp_java_scope *ret) VP_MUST_CHECK;

#endif
