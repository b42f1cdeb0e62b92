/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the kernel and its modules describe their types (BTF): read once for all who ask. libbpf
 * reads all of it again for each object, and looks through all of it for each type that a program
 * names; it gets the few types that programs need, instead.
 */
#ifndef VP_HOST_KERNEL_BTF_H
#define VP_HOST_KERNEL_BTF_H

#include <stdbool.h>
#include <stddef.h>

#include <bpf/libbpf.h>

struct btf;
struct vp_kernel_btf;

/* Nothing is read until it is asked for. */
struct vp_kernel_btf *vp_kernel_btf_new(void);
/* NULL does nothing. */
void vp_kernel_btf_free(struct vp_kernel_btf *kernel);
/* Gives the memory back: whoever asks again has it read again. */
void vp_kernel_btf_forget(struct vp_kernel_btf *kernel);

/* The kernel's own types; the module's, together with these. NULL: none. */
const struct btf *vp_kernel_btf_all(struct vp_kernel_btf *kernel);
const struct btf *vp_kernel_btf_module(struct vp_kernel_btf *kernel, const char *module);
/* Whether that of the module, or of the kernel itself, describes the struct; and the member, if it
 * is not NULL. With NULL as `kernel` it is read for this. */
bool vp_kernel_btf_has_member(struct vp_kernel_btf *kernel, const char *module, const char *name,
			      const char *member);

/* While an object's programs are opened and loaded: what they are fitted to. */
struct vp_btf_open_opts {
	struct vp_kernel_btf *kernel; /* the given one, or one for these programs alone */
	bool own;
	int fd;        /* of a file in memory with the types; -1: libbpf looks for them itself */
	char path[32]; /* its name */
	struct bpf_object_open_opts options; /* for opening the object */
};

/* `kernel` may be NULL; `elf`: the object's bytes (NAME_bpf__elf_bytes()). */
void vp_btf_open_opts_init(struct vp_btf_open_opts *fitting, struct vp_kernel_btf *kernel,
			   const void *elf, size_t size);
void vp_btf_open_opts_deinit(struct vp_btf_open_opts *fitting);

#endif
