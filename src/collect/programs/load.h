/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads and attaches the BPF programs of an object on the running kernel. */
#ifndef VP_COLLECT_PROGRAMS_LOAD_H
#define VP_COLLECT_PROGRAMS_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include <bpf/libbpf.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_exit_event;
struct vp_kernel_btf;

/* An object of programs (bpf/NAME.bpf.c) and how to load it. */
struct vp_programs_load {
	const char *name; /* in errors: "cannot load the NAME programs" */
	const void *elf;  /* bytes of the object */
	size_t elf_size;
	struct vp_kernel_btf *kernel;           /* already parsed, or NULL */
	const struct vp_exit_event *exit_event; /* already open, or NULL */
	void *context;
	/* Opens the object, sets its constants and map sizes, selects its programs. *ret: its
	 * skeleton, also after an error if it is open. */
	struct vp_error *(*open)(void *context, const struct bpf_object_open_opts *options,
				 struct bpf_object_skeleton **ret);
	/* Selects whether programs read the VMCB by direct loads (svm_data.h). NULL: they do not
	 * read it. */
	void (*set_svm_data)(void *context, bool is_known);
	/* Destroys the object; `open` is called again. Required with `set_svm_data`. */
	void (*close)(void *context);
};

/* Opens and loads the object. If the kernel rejects direct loads of the VMCB, it is loaded without
 * them. After an error the object may be open; it belongs to the context. */
struct vp_error *vp_programs_load(const struct vp_programs_load *load) VP_MUST_CHECK;

/* A program that some kernels cannot attach. */
struct vp_optional_program {
	const char *name;
	const char *cost; /* the limitation without it, as a sentence */
};

typedef VP_VEC(struct bpf_link *) vp_links;

struct vp_programs_attach {
	const struct vp_optional_program *optional;
	size_t n_optional;
	void *context;
	/* Whether to attach the program; NULL: attach all loaded programs. */
	bool (*is_attached)(const struct bpf_program *program);
	/* Whether recording is impossible without the program. NULL: all except the optional ones
	 * are needed; otherwise other programs may fail, too. */
	bool (*is_needed)(const char *program);
	/* Whether a failed optional program is a limitation here. NULL: always. */
	bool (*is_missed)(void *context, size_t optional);
};

/* Attaches the programs; *missing: limitations as a sentence, to be freed (NULL: none). */
struct vp_error *vp_programs_attach(const struct bpf_object *object,
				    const struct vp_programs_attach *attach, vp_links *links,
				    char **missing) VP_MUST_CHECK;
void vp_links_deinit(vp_links *links);
/* Appends a limitation to the sentence. */
void vp_missing_add(char **missing, const char *limitation);

#endif
