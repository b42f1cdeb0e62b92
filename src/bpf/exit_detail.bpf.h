/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Detail of a VM exit, as enum vp_detail_kind and a number: on Intel from the exit qualification
 * (SDM, volume 3, section 28.2.1), on AMD from EXITINFO1 (APM, volume 2, chapter 15); for MSRs,
 * from the guest's ECX. The address of a memory access is in AMD's EXITINFO2; Intel's is in the
 * VMCS, which KVM reads only after its event of the exit.
 */
#ifndef VP_BPF_EXIT_DETAIL_BPF_H
#define VP_BPF_EXIT_DETAIL_BPF_H

#include "bpf/kvm_compat.bpf.h"
#include "bpf/last_exit.bpf.h"
#include "schema/records.h"

struct exit_detail {
	__u32 kind, number;
	__u64 address; /* guest physical address of a memory access; VP_NO_ADDRESS: unknown */
};

enum { AMD_IOIO = 0x7b, AMD_MSR = 0x7c, AMD_NPF = 0x400 };
enum {
	VMX_EXCEPTION = 0,
	VMX_CR_ACCESS = 28,
	VMX_DR_ACCESS = 29,
	VMX_IO = 30,
	VMX_MSR_READ = 31,
	VMX_MSR_WRITE = 32,
	VMX_APIC_ACCESS = 44,
	VMX_EOI_INDUCED = 45,
	VMX_EPT_VIOLATION = 48,
	VMX_EPT_MISCONFIG = 49,
	VMX_APIC_WRITE = 56,
	VMX_MSR_READ_IMM = 84, /* the MSR number is in the qualification */
	VMX_MSR_WRITE_IMM = 85,
};

static __always_inline void detail_of_msr(struct kvm_vcpu *vcpu, bool written,
					  struct exit_detail *ret)
{
	__u64 rcx;

	if (!bpf_core_field_exists(vcpu->arch.regs) ||
	    bpf_core_read(&rcx, sizeof(rcx), &vcpu->arch.regs[1]))
		return;
	ret->kind = written ? VP_DETAIL_MSR_WRITE : VP_DETAIL_MSR_READ;
	ret->number = (__u32)rcx;
}

static __always_inline void detail_of_amd(struct kvm_vcpu *vcpu, const struct vmcb_view *vmcb,
					  __u32 reason, struct exit_detail *ret)
{
	struct vmcb_info info;

	*ret = (struct exit_detail){.address = VP_NO_ADDRESS};
	if ((reason != AMD_IOIO && reason != AMD_MSR && reason != AMD_NPF) ||
	    !read_vmcb_info(vmcb, &info))
		return;
	if (reason == AMD_IOIO) {
		ret->kind = info.first & 1 ? VP_DETAIL_PORT_IN : VP_DETAIL_PORT_OUT;
		ret->number = info.first >> 16 & 0xffff;
	} else if (reason == AMD_MSR) {
		detail_of_msr(vcpu, info.first & 1, ret);
	} else {
		ret->kind = info.first & 0x10  ? VP_DETAIL_MEMORY_FETCH
			    : info.first & 0x2 ? VP_DETAIL_MEMORY_WRITE
					       : VP_DETAIL_MEMORY_READ;
		ret->address = info.second;
	}
}

/* Control register, and direction (1: read). */
static __always_inline void detail_of_register(__u64 info, struct exit_detail *ret)
{
	ret->kind = (info >> 4 & 3) == 1 ? VP_DETAIL_CR_READ : VP_DETAIL_CR_WRITE;
	ret->number = info & 0xf;
}

static __always_inline void detail_of_apic(__u64 info, struct exit_detail *ret)
{
	ret->kind = (info >> 12 & 0xf) == 0 ? VP_DETAIL_APIC_READ : VP_DETAIL_APIC_WRITE;
	ret->number = info & 0xfff;
}

static __always_inline void detail_of_intel(struct kvm_vcpu *vcpu, const struct vp_last_exit *now,
					    struct exit_detail *ret)
{
	__u64 info = now->qualification;

	*ret = (struct exit_detail){.address = VP_NO_ADDRESS};
	switch (now->reason & 0xffff) {
	case VMX_EXCEPTION:
		ret->kind = VP_DETAIL_EXCEPTION;
		ret->number = now->interruption & 0xff;
		break;
	case VMX_CR_ACCESS:
		detail_of_register(info, ret);
		break;
	case VMX_DR_ACCESS:
		ret->kind = info & 0x10 ? VP_DETAIL_DR_READ : VP_DETAIL_DR_WRITE;
		ret->number = info & 7;
		break;
	case VMX_IO:
		ret->kind = info & 8 ? VP_DETAIL_PORT_IN : VP_DETAIL_PORT_OUT;
		ret->number = info >> 16 & 0xffff;
		break;
	case VMX_MSR_READ:
		detail_of_msr(vcpu, false, ret);
		break;
	case VMX_MSR_WRITE:
		detail_of_msr(vcpu, true, ret);
		break;
	case VMX_MSR_READ_IMM:
		ret->kind = VP_DETAIL_MSR_READ;
		ret->number = (__u32)info;
		break;
	case VMX_MSR_WRITE_IMM:
		ret->kind = VP_DETAIL_MSR_WRITE;
		ret->number = (__u32)info;
		break;
	case VMX_APIC_ACCESS:
		detail_of_apic(info, ret);
		break;
	case VMX_APIC_WRITE:
		ret->kind = VP_DETAIL_APIC_WRITE;
		ret->number = info & 0xfff;
		break;
	case VMX_EOI_INDUCED:
		ret->kind = VP_DETAIL_EOI;
		ret->number = info & 0xff;
		break;
	case VMX_EPT_VIOLATION:
		ret->kind = info & 4   ? VP_DETAIL_MEMORY_FETCH
			    : info & 2 ? VP_DETAIL_MEMORY_WRITE
				       : VP_DETAIL_MEMORY_READ;
	}
}

#endif
