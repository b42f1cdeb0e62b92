/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets BPF programs use the address of a kernel or module variable: programs contain a 64-bit
 * placeholder constant, which the loader replaces by the address. libbpf's weak `extern` would do
 * the same, but loading fails if the variable's type differs.
 */
#ifndef VP_HOST_KERNEL_VARIABLE_H
#define VP_HOST_KERNEL_VARIABLE_H

#include <stdint.h>

#include <bpf/libbpf.h>

struct btf;

struct vp_kernel_variable {
	uint64_t mark;
	unsigned type; /* BTF id of the variable; 0: not in BTF */
	int fd;        /* of the module's BTF; 0: of the kernel */
};

/* BTF id of the variable if it is a struct; 0: it is not, or does not exist. */
unsigned vp_kernel_variable_find(const struct btf *types, const char *name);
/* Patches all programs of an object that is open and not loaded; returns 0 or -errno. */
int vp_kernel_variable_put(struct bpf_object *programs, const struct vp_kernel_variable *variable);

#endif
