/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads and attaches the BPF programs of an object, on the kernel that runs. */
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

/* An object of programs (bpf/NAME.bpf.c), and how it is loaded. */
struct vp_programs_load {
	const char *name; /* in errors: "cannot load the NAME programs" */
	const void *elf;  /* its bytes */
	size_t elf_size;
	struct vp_kernel_btf *kernel;           /* read before, or NULL */
	const struct vp_exit_event *exit_event; /* NULL, or opened before */
	void *context;
	/* Opens the object, sets its constants and the sizes of its maps, chooses its programs;
	 * *ret is its skeleton, also after an error if it is open. */
	struct vp_error *(*open)(void *context, const struct bpf_object_open_opts *options,
				 struct bpf_object_skeleton **ret);
	/* Sets whether the programs read the VMCB by direct loads (svm_data.h). NULL: they do not
	 * read it. */
	void (*set_svm_data)(void *context, bool is_known);
	/* Destroys the object; `open` is called once more. Needed with `set_svm_data`. */
	void (*close)(void *context);
};

/* Opens and loads the object. A kernel that refuses direct loads of the VMCB gets the programs
 * without them. After an error, the object may be open: it is the context's. */
struct vp_error *vp_programs_load(const struct vp_programs_load *load) VP_MUST_CHECK;

/* A program that some kernels have no place for. */
struct vp_optional_program {
	const char *name;
	const char *cost; /* the limitation without it, as a sentence */
};

typedef VP_VEC(struct bpf_link *) vp_links;

struct vp_programs_attach {
	const struct vp_optional_program *optional;
	size_t n_optional;
	void *context;
	/* Whether the program is attached here; NULL: all that are loaded. */
	bool (*is_attached)(const struct bpf_program *program);
	/* Whether recording is impossible without the program. NULL: it is without any but the
	 * optional ones; with it, other programs may be missing, too. */
	bool (*is_needed)(const char *program);
	/* The optional program could not be attached. False: that limits nothing here. NULL: it
	 * always does. */
	bool (*is_missed)(void *context, size_t optional);
};

/* Attaches the programs; *missing gets the limitations as a sentence (NULL: none), to be freed. */
struct vp_error *vp_programs_attach(const struct bpf_object *object,
				    const struct vp_programs_attach *attach, vp_links *links,
				    char **missing) VP_MUST_CHECK;
void vp_links_deinit(vp_links *links);
/* Appends a limitation to the sentence. */
void vp_missing_add(char **missing, const char *limitation);

#endif
