/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets programs name a variable of the kernel's or of a module's: they have a mark, a constant of
 * 64 bits, where the loader puts the variable. A weak `extern` of libbpf's would do the same, but
 * refuses to load where the variable has another type.
 */
#ifndef VP_HOST_KERNEL_VARIABLE_H
#define VP_HOST_KERNEL_VARIABLE_H

#include <stdint.h>

#include <bpf/libbpf.h>

struct btf;

struct vp_kernel_variable {
	uint64_t mark;
	unsigned type; /* its number in the BTF; 0: it is not described there */
	int fd;        /* of the module's BTF; 0: it is the kernel's own */
};

/* The number of the variable, if it is a struct itself; 0: it is not, or does not exist. */
unsigned vp_kernel_variable_find(const struct btf *types, const char *name);
/* Into all programs of an object that is open and not loaded yet; a negative errno if that cannot
 * be. */
int vp_kernel_variable_put(struct bpf_object *programs, const struct vp_kernel_variable *variable);

#endif
