/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this host's kernel is like, asked of it. */
#ifndef VP_COLLECT_HOST_H
#define VP_COLLECT_HOST_H

#include <stdbool.h>

#include "base/error.h"
#include "schema/records.h"

#define VP_HOST_BTF "/sys/kernel/btf/vmlinux"

/* Which vendor's KVM this kernel runs. */
enum vp_vendor vp_host_vendor(void);
/* Whether AMD's KVM uses nested paging. */
bool vp_host_has_nested_paging(void);
/* Whether the BTF of that module, or of the kernel itself, describes the struct; and the member. */
bool vp_host_has_struct(const char *module, const char *name);
bool vp_host_has_member(const char *module, const char *name, const char *member);

/* Before programs are opened: an error if the kernel has no BTF that these ("sampling") programs
 * can be fitted to. Keeps libbpf's own messages from the terminal, unless VPERF_DEBUG is set. */
struct vp_error *vp_host_expect_btf(const char *programs) VP_MUST_CHECK;
void vp_host_quiet_libbpf(void);
/* The error of loading these programs that came with -errno. */
struct vp_error *vp_host_load_error(int result, const char *programs) VP_MUST_CHECK;

#endif
