/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of a vCPU from Xen, which pauses the vCPU meanwhile. Structures are those of Xen's
 * public headers, unchanged since 4.0. */
#ifndef VP_XEN_CONTEXT_H
#define VP_XEN_CONTEXT_H

#include "base/macros.h"
#include "guestmem/memory/memory.h"
#include "xen/library.h"

/* Size of struct vcpu_guest_context of Xen's public/arch-x86/xen.h, with a reserve. */
enum { VP_XEN_CONTEXT_SIZE = 8192 };

/* Execution context of a vCPU. */
struct vp_xen_context {
	uint64_t ip, sp, bp;
	/* CR3, for a PV guest of the kernel half, as a machine address. All bits set: unknown. */
	uint64_t root;
	bool user; /* in user space */
};

/* `hvm`: the domain is HVM or PVH. */
void vp_xen_context_parse(const void *bytes, bool hvm, struct vp_xen_context *ret);
/* Registers for locating a guest's kernel: of a PV guest (a context), and of others (struct
 * hvm_hw_cpu). */
void vp_xen_registers_parse_pv(const void *bytes, struct vp_guest_registers *ret);

/* False: the domain or the vCPU is gone, or was never online. */
bool vp_xen_context_read(const struct vp_xen *xen, const struct vp_xen_domain *domain,
			 uint32_t vcpu, struct vp_xen_context *ret) VP_MUST_CHECK;
bool vp_xen_registers_read(const struct vp_xen *xen, const struct vp_xen_domain *domain,
			   uint32_t vcpu, struct vp_guest_registers *ret) VP_MUST_CHECK;

#endif
