/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of functions of the host kernel. */
#ifndef VP_HOST_KERNEL_FUNCTION_H
#define VP_HOST_KERNEL_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

struct vp_kernel_function {
	uint64_t begin, end; /* start of the function and of the next symbol */
};

/* Searches `kallsyms`, the path of the kernel's symbol list. False: no such function, or addresses
 * are hidden. */
bool vp_kernel_function_find(const char *kallsyms, const char *name,
			     struct vp_kernel_function *ret);

#endif
