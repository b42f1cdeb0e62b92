/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of intervals.bpf.c: classification of VM exits. */
#ifndef VP_BPF_INTERVALS_EXIT_H
#define VP_BPF_INTERVALS_EXIT_H

#include "bpf/account_abi.h"
#include "bpf/intervals_state.bpf.h"
#include "schema/exit_class.h"

enum { X86_PAGE_FAULT = 14 };

#if defined(__TARGET_ARCH_arm64)

/* First two words of kvm_exit: ARM_EXCEPTION_IRQ is 0; a trap has its class from ESR_EL2.EC. They
 * are valid for all exits. */
static __always_inline __u32 class_of_exit(struct vp_subject *subject, __u64 first, __u64 second,
					   __u32 reported)
{
	if (!((__u32)first & 0x7fffffff))
		return VP_EXITS_interrupt;
	switch ((__u32)second) {
	case 0x01: /* WFI, WFE */
		return VP_EXITS_halt;
	case 0x12: /* HVC and SMC, of 32 and 64 bits */
	case 0x13:
	case 0x16:
	case 0x17:
		return VP_EXITS_hypercall;
	case 0x18: /* MSR, MRS, system instructions */
		return VP_EXITS_msr;
	case 0x20: /* instruction and data aborts of a lower level */
	case 0x24:
		return VP_EXITS_page_fault;
	default:
		return VP_EXITS_other;
	}
}

#else

static __always_inline __u32 reason_of_amd(struct vp_subject *subject, void *vcpu)
{
	struct vmcb_view vmcb;
	__u64 code;

	return read_exit_reason(vcpu, &subject->vmcb, &code, &vmcb) ? (__u32)code : VMEXIT_VMRUN;
}

/*
 * Since v5.17, 0a62a0319abb "KVM: x86: Get error code from get_exit_info" and related commits, the
 * reason is no longer before the vCPU; a kernel pointer is negative, a reason is not. Reasons
 * passed in `told` need not be read.
 */
static __always_inline __u32 class_of_exit(struct vp_subject *subject, __u64 first, __u64 second,
					   __u32 reported)
{
	__u32 reason = (__s64)first >= 0 ? (__u32)first : reported;

	if ((__s64)first >= 0 || reported != VP_REASON_MISSING)
		return vendor == VP_VENDOR_AMD ? vp_exit_class_of_amd(reason)
					       : vp_exit_class_of_intel(reason);
	if (vendor == VP_VENDOR_AMD)
		return vp_exit_class_of_amd(reason_of_amd(subject, (void *)first));
	return read_vmx_exit_reason((void *)first, &reason) ? vp_exit_class_of_intel(reason)
							    : VP_EXITS_other;
}

#endif
#endif
