/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resolves probe locations in the host kernel, and function parameters with BTF. */
#ifndef VP_COLLECT_TRACEFS_PROBE_KERNEL_H
#define VP_COLLECT_TRACEFS_PROBE_KERNEL_H

#include "base/buffer.h"
#include "base/macros.h"
#include "collect/tracefs/probe_definition.h"

struct btf;

struct vp_probe_function {
	const char *name;
	char module[64]; /* "": the kernel itself */
	struct btf *kernel,
	    *own; /* NULL: not available; `own`: BTF of the module, or the kernel's */
};

/* Resolves the definition's function. `kallsyms`: its path. Errors: no such function (with
 * suggestions), or several. */
struct vp_error *vp_probe_function_find(const struct vp_probe_definition *definition,
					const char *kallsyms,
					struct vp_probe_function *ret) VP_MUST_CHECK;
void vp_probe_function_deinit(struct vp_probe_function *function);
/* Appends "VALUE[:TYPE]" in the kernel's syntax (Documentation/trace/kprobetrace.rst). Errors: an
 * unknown parameter or member. */
struct vp_error *vp_probe_function_argument(const struct vp_probe_function *function,
					    const struct vp_probe_definition *definition,
					    const struct vp_probe_argument *argument,
					    struct vp_buffer *out) VP_MUST_CHECK;

#endif
