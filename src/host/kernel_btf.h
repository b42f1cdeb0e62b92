/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BTF of the kernel and its modules, parsed once for all users. libbpf would parse all of it for
 * each object and search all of it for each type that a program names; it gets an excerpt instead.
 */
#ifndef VP_HOST_KERNEL_BTF_H
#define VP_HOST_KERNEL_BTF_H

#include <stdbool.h>
#include <stddef.h>

#include <bpf/libbpf.h>

struct btf;
struct vp_kernel_btf;

/* BTF is read on first use. */
struct vp_kernel_btf *vp_kernel_btf_new(void);
/* NULL is allowed. */
void vp_kernel_btf_free(struct vp_kernel_btf *kernel);
/* Frees the BTF; the next use reads it again. */
void vp_kernel_btf_forget(struct vp_kernel_btf *kernel);

/* BTF of the kernel; of a module, including the kernel's. NULL: not available. */
const struct btf *vp_kernel_btf_all(struct vp_kernel_btf *kernel);
const struct btf *vp_kernel_btf_module(struct vp_kernel_btf *kernel, const char *module);
/* Whether the BTF of the module, or of the kernel itself, has the struct, and its member unless
 * NULL. With `kernel` NULL, BTF is read for this call. */
bool vp_kernel_btf_has_member(struct vp_kernel_btf *kernel, const char *module, const char *name,
			      const char *member);

/* BTF for opening and loading an object's programs. */
struct vp_btf_open_opts {
	struct vp_kernel_btf *kernel; /* the given one, or one for these programs only */
	bool own;
	int fd;        /* memory file with the types; -1: libbpf reads BTF itself */
	char path[32]; /* path of that file */
	struct bpf_object_open_opts options; /* for opening the object */
};

/* `kernel` may be NULL; `elf`: the object's bytes (NAME_bpf__elf_bytes()). */
void vp_btf_open_opts_init(struct vp_btf_open_opts *fitting, struct vp_kernel_btf *kernel,
			   const void *elf, size_t size);
void vp_btf_open_opts_deinit(struct vp_btf_open_opts *fitting);

#endif
