/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resolves probe locations in programs and libraries. */
#ifndef VP_COLLECT_TRACEFS_PROBE_BINARY_H
#define VP_COLLECT_TRACEFS_PROBE_BINARY_H

#include "base/buffer.h"
#include "base/macros.h"
#include "collect/tracefs/probe_definition.h"

/*
 * Resolves the definition's function: *path of the file (to be freed), *offset in it. A name
 * without a slash is searched for in $PATH. Errors: no such file, no such function (with
 * suggestions).
 */
struct vp_error *vp_probe_binary_find(const struct vp_probe_definition *definition, char **path,
				      uint64_t *offset) VP_MUST_CHECK;
/* Like vp_probe_function_argument(); $argN is the register of the calling convention. */
struct vp_error *vp_probe_binary_argument(const struct vp_probe_definition *definition,
					  const struct vp_probe_argument *argument,
					  struct vp_buffer *out) VP_MUST_CHECK;

#endif
