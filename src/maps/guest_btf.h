/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of struct members in a guest kernel, from its BTF. libbpf is not used: it trusts lengths
 * and type numbers, and these bytes come from the guest. */
#ifndef VP_MAPS_GUEST_BTF_H
#define VP_MAPS_GUEST_BTF_H

#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_guest_btf {
	struct vp_slice types, strings;
	VP_VEC(uint32_t) offsets; /* of type N + 1, in `types` */
};

/* The bytes must outlive the result. */
struct vp_error *vp_guest_btf_init(const void *bytes, size_t size,
				   struct vp_guest_btf *ret) VP_MUST_CHECK;
void vp_guest_btf_deinit(struct vp_guest_btf *btf);

struct vp_guest_member {
	uint32_t offset, size; /* bytes; size 0: unknown */
};
/* Finds a member of struct `type`, also in its unnamed structs and unions; `member` may be
 * "a.b". */
bool vp_guest_btf_member(const struct vp_guest_btf *btf, const char *type, const char *member,
			 struct vp_guest_member *ret);
/* Value of an enumerator by name; `type`: the enum's name. */
bool vp_guest_btf_enumerator(const struct vp_guest_btf *btf, const char *type, const char *name,
			     uint32_t *ret);
/* Offset of a per-CPU variable in the per-CPU section. */
bool vp_guest_btf_percpu(const struct vp_guest_btf *btf, const char *name, uint32_t *ret);
/* Size of a struct in bytes; 0: unknown. */
uint32_t vp_guest_btf_size(const struct vp_guest_btf *btf, const char *type);

#endif
