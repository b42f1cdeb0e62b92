/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a function of this host's kernel is. */
#ifndef VP_HOST_KERNEL_FUNCTION_H
#define VP_HOST_KERNEL_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

struct vp_kernel_function {
	uint64_t begin, end; /* where the next symbol is */
};

/* By `kallsyms`, the kernel's list of symbols. False: it has no such function, or hides addresses.
 */
bool vp_kernel_function_find(const char *kallsyms, const char *name,
			     struct vp_kernel_function *ret);

#endif
