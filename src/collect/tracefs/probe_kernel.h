/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of the host's kernel as places for probes, and their parameters by BTF. */
#ifndef VP_COLLECT_TRACEFS_PROBE_KERNEL_H
#define VP_COLLECT_TRACEFS_PROBE_KERNEL_H

#include "base/buffer.h"
#include "base/macros.h"
#include "collect/tracefs/probe_definition.h"

struct btf;

struct vp_probe_function {
	const char *name;
	char module[64];          /* "": the kernel itself */
	struct btf *kernel, *own; /* NULL: not there; `own` is the module's, or the kernel's */
};

/* Finds the definition's function. `kallsyms` is its path. Errors: no function of that name (with
 * near ones), or several. */
struct vp_error *vp_probe_function_find(const struct vp_probe_definition *definition,
					const char *kallsyms,
					struct vp_probe_function *ret) VP_MUST_CHECK;
void vp_probe_function_deinit(struct vp_probe_function *function);
/* Appends "WHAT[:TYPE]" in the kernel's syntax (Documentation/trace/kprobetrace.rst). Errors: an
 * unknown parameter or member. */
struct vp_error *vp_probe_function_argument(const struct vp_probe_function *function,
					    const struct vp_probe_definition *definition,
					    const struct vp_probe_argument *argument,
					    struct vp_buffer *out) VP_MUST_CHECK;

#endif
