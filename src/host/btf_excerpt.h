/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types of some BTF that have the names which a program's have, and what these consist of. */
#ifndef VP_HOST_BTF_EXCERPT_H
#define VP_HOST_BTF_EXCERPT_H

#include <stddef.h>

struct btf;

/*
 * From the kernel's BTF, which is the first of `from`, and modules' on top of it, or NULL: all
 * types with a name that one of `wanted` has, too (up to "___", as libbpf sees it). What a pointer
 * points to is left out: it makes no difference to where members are. To be freed with btf__free();
 * NULL: no memory.
 */
struct btf *vp_btf_excerpt(const struct btf *const *from, size_t count, const struct btf *wanted);

#endif
