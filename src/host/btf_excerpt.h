/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types of some BTF that have the names which a program's have, and what these consist of. */
#ifndef VP_HOST_BTF_EXCERPT_H
#define VP_HOST_BTF_EXCERPT_H

#include <stddef.h>

struct btf;

/* Builds BTF with all types whose name is in `wanted`, and the types of their members. `from`: the
 * kernel's BTF, followed by modules' or NULL. Names count up to "___", as in libbpf. Targets of
 * pointers are left out: they do not affect offsets of members. To be freed with btf__free(); NULL:
 * no memory. */
struct btf *vp_btf_excerpt(const struct btf *const *from, size_t count, const struct btf *wanted);

#endif
