/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/context.h"

#include <string.h>

/* struct vcpu_guest_context of 64-bit x86 (Xen's public/arch-x86/xen.h and xen-x86_64.h). */
enum {
	FLAGS = 512, /* after the FPU's registers */
	IN_KERNEL = 1 << 2,
	USER_REGS = 520,
	RBP = USER_REGS + 32,
	RIP = USER_REGS + 128,
	CS = USER_REGS + 136,
	RSP = USER_REGS + 152,
	TRAPS = USER_REGS + 200, /* 256 entries: vector, flags, CS, and the handler's address */
	TRAP_SIZE = 16,
	TRAP_ADDRESS = 8,
	PAGE_FAULT = 14,
	LDT = TRAPS + 256 * TRAP_SIZE,
	/* After the LDT's two words, the GDT's 17, and the kernel stack. */
	CONTROL_REGS = LDT + 8 * (2 + 17 + 2),
	CR3 = CONTROL_REGS + 3 * 8,
	CR4 = CONTROL_REGS + 4 * 8,
	DEBUG_REGS = CONTROL_REGS + 8 * 8,
	SYSCALL_CALLBACK = DEBUG_REGS + 8 * 8 + 2 * 8, /* after the event and failsafe callbacks */
	GS_BASE_KERNEL = SYSCALL_CALLBACK + 3 * 8,     /* after vm_assist and fs_base */
	GS_BASE_USER = GS_BASE_KERNEL + 8,
};
_Static_assert(GS_BASE_USER + 8 <= VP_XEN_CONTEXT_SIZE, "room for a context");

/* struct hvm_hw_cpu (Xen's public/arch-x86/hvm/save.h). */
enum {
	HVM_CR3 = 672, /* after the FPU's, 16 general registers, RIP, RFLAGS, CR0 and CR2 */
	HVM_CR4 = 680,
	HVM_GS_BASE = 840, /* after 6 debug registers, 8 selectors, 10 limits and 4 bases */
	HVM_IDT_BASE = 872,
	HVM_SHADOW_GS = 944,
	HVM_LSTAR = 960,
};

static uint64_t word_at(const void *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)bytes + offset, sizeof(word));
	return word;
}

void vp_xen_context_parse(const void *bytes, bool hvm, struct vp_xen_context *ret)
{
	bool in_kernel = hvm ? !(word_at(bytes, CS) & 3) : (word_at(bytes, FLAGS) & IN_KERNEL) != 0;

	*ret = (struct vp_xen_context){.ip = word_at(bytes, RIP),
				       .sp = word_at(bytes, RSP),
				       .bp = word_at(bytes, RBP),
				       .root = word_at(bytes, CR3),
				       .user = !in_kernel};
}

void vp_xen_registers_parse_pv(const void *bytes, struct vp_guest_registers *ret)
{
	ret->cr3 = word_at(bytes, CR3);
	ret->cr4 = word_at(bytes, CR4);
	/* A PV guest registers its system call handler with Xen; it has no IDT. */
	ret->lstar = word_at(bytes, SYSCALL_CALLBACK);
	if (!ret->lstar)
		ret->lstar = word_at(bytes, TRAPS + PAGE_FAULT * TRAP_SIZE + TRAP_ADDRESS);
	ret->gs_base = word_at(bytes, GS_BASE_USER);
	ret->kernel_gs_base = word_at(bytes, GS_BASE_KERNEL);
}

static void registers_parse_hvm(const void *bytes, struct vp_guest_registers *ret)
{
	ret->cr3 = word_at(bytes, HVM_CR3);
	ret->cr4 = word_at(bytes, HVM_CR4);
	ret->lstar = word_at(bytes, HVM_LSTAR);
	ret->idt = word_at(bytes, HVM_IDT_BASE);
	ret->gs_base = word_at(bytes, HVM_GS_BASE);
	ret->kernel_gs_base = word_at(bytes, HVM_SHADOW_GS);
}

bool vp_xen_context_read(const struct vp_xen *xen, const struct vp_xen_domain *domain,
			 uint32_t vcpu, struct vp_xen_context *ret)
{
	uint64_t bytes[VP_XEN_CONTEXT_SIZE / sizeof(uint64_t)];

	if (xen->call.vcpu_getcontext(xen->control, domain->id, vcpu, bytes))
		return false;
	vp_xen_context_parse(bytes, domain->flags & VP_XEN_HVM, ret);
	return true;
}

bool vp_xen_registers_read(const struct vp_xen *xen, const struct vp_xen_domain *domain,
			   uint32_t vcpu, struct vp_guest_registers *ret)
{
	uint64_t bytes[VP_XEN_CONTEXT_SIZE / sizeof(uint64_t)];

	*ret = (struct vp_guest_registers){.vcpu = vcpu};
	if (domain->flags & VP_XEN_HVM) {
		if (xen->call.domain_hvm_getcontext_partial(xen->control, domain->id,
							    VP_XEN_HVM_SAVE_CPU, (uint16_t)vcpu,
							    bytes, sizeof(bytes)))
			return false;
		registers_parse_hvm(bytes, ret);
	} else {
		if (xen->call.vcpu_getcontext(xen->control, domain->id, vcpu, bytes))
			return false;
		vp_xen_registers_parse_pv(bytes, ret);
	}
	return true;
}
