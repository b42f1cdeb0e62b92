/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loops of HotSpot's compilers: a safepoint is before the branch to the loop's start. */
#ifndef VP_RUNTIME_JAVA_LOOP_H
#define VP_RUNTIME_JAVA_LOOP_H

#include "base/macros.h"
#include "runtime/process_memory.h"

/* Finds the end of the branch back that follows a safepoint at `addr`; false: no safepoint of a
 * loop. x86-64 and 64-bit Arm. */
bool vp_java_loop_end(const struct vp_process_memory *memory, uint64_t addr,
		      uint64_t *ret) VP_MUST_CHECK;

#endif
