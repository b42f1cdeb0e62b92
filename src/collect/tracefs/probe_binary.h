/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of programs and libraries as places for probes. */
#ifndef VP_COLLECT_TRACEFS_PROBE_BINARY_H
#define VP_COLLECT_TRACEFS_PROBE_BINARY_H

#include "base/buffer.h"
#include "base/macros.h"
#include "collect/tracefs/probe_definition.h"

/* Where the definition's function is: *path is the file's (to be freed), *offset in it. A name
 * without a slash is looked for in $PATH. Errors: no such file, no such function in it (with near
 * names). */
struct vp_error *vp_probe_binary_find(const struct vp_probe_definition *definition, char **path,
				      uint64_t *offset) VP_MUST_CHECK;
/* As vp_probe_function_argument(); $argN is the register that a function has it in. */
struct vp_error *vp_probe_binary_argument(const struct vp_probe_definition *definition,
					  const struct vp_probe_argument *argument,
					  struct vp_buffer *out) VP_MUST_CHECK;

#endif
