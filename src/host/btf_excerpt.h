/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extracts from BTF the types that a BPF program names, with the types that they consist of. */
#ifndef VP_HOST_BTF_EXCERPT_H
#define VP_HOST_BTF_EXCERPT_H

#include <stddef.h>

struct btf;

/*
 * Builds BTF with all types whose name is in `wanted` and the types of their members. `from`: the
 * kernel's BTF, then modules' or NULL. Names are compared up to "___", as in libbpf. Targets of
 * pointers are left out, because they do not affect member offsets. Free with btf__free(); NULL: no
 * memory.
 */
struct btf *vp_btf_excerpt(const struct btf *const *from, size_t count, const struct btf *wanted);

#endif
