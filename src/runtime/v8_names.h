/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a Node.js process's sampled functions, each valid from a time on: V8's garbage collector
 * moves their data. */
#ifndef VP_RUNTIME_V8_NAMES_H
#define VP_RUNTIME_V8_NAMES_H

#include "runtime/code_names.h"
#include "runtime/v8.h"

/* Notes a sample of the function with that SharedFunctionInfo at `time_ns`; false: it has no name.
 */
bool vp_v8_names_see(struct vp_code_names *names, struct vp_v8 *v8, uint64_t shared,
		     uint64_t time_ns);

#endif
