/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Debug information of HotSpot's compilers: the methods that were inlined at an instruction. JDK 9
 * to 22, and 25. */
#ifndef VP_RUNTIME_JAVA_SCOPES_H
#define VP_RUNTIME_JAVA_SCOPES_H

#include "runtime/java.h"

enum { VP_JAVA_INLINED = 16 };

/* Writes the addresses of the methods that were inlined at an offset in the code, innermost first;
 * returns their number. 0: none, unknown or invalid. */
unsigned vp_java_scopes_read(const struct vp_java_vm *vm, const struct vp_java_code *code,
			     uint64_t offset, uint64_t methods[VP_JAVA_INLINED]);

#endif
