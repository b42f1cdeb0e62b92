/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties of this host's kernel. */
#ifndef VP_HOST_HOST_H
#define VP_HOST_HOST_H

#include <stdbool.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/records.h"

#define VP_HOST_BTF "/sys/kernel/btf/vmlinux"

/* Vendor of this kernel's KVM. */
enum vp_vendor vp_host_vendor(void);
/* Whether AMD's KVM uses nested paging. */
bool vp_host_has_nested_paging(void);

/* Call it before opening BPF programs. Errors: the kernel has no BTF for these ("sampling")
 * programs. libbpf's own messages are up to the caller (libbpf_set_print()). */
struct vp_error *vp_host_expect_btf(const char *programs) VP_MUST_CHECK;
/* The error for a failure, -errno, to load these programs. */
struct vp_error *vp_host_load_error(int result, const char *programs) VP_MUST_CHECK;

#endif
