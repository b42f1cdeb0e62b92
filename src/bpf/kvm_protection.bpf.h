/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects whether a VM's memory is protected from the host, in all versions of KVM. */
#ifndef VP_BPF_KVM_PROTECTION_BPF_H
#define VP_BPF_KVM_PROTECTION_BPF_H

#include "bpf/guest_state_abi.h"
#include "bpf/kvm_slots.bpf.h"

/* x86: KVM_X86_*_VM of the kernel's Documentation/virt/kvm/api.rst; SEV by it since v6.11. */
struct kvm_arch___type {
	unsigned long vm_type;
} CORE;
struct kvm___type {
	struct kvm_arch___type arch;
} CORE;
enum { TYPE_SW_PROTECTED = 1, TYPE_SEV, TYPE_SEV_ES, TYPE_SNP, TYPE_TDX };

/* AMD: guests created as protected by the older interface. */
struct kvm_sev_info {
	bool active, es_active;
} CORE;
struct kvm_svm {
	struct kvm_sev_info sev_info;
} CORE;

/* Since v5.11: registers are encrypted, too. */
struct kvm_vcpu_arch___protected {
	bool guest_state_protected;
} CORE;
struct kvm_vcpu___protected {
	struct kvm_vcpu_arch___protected arch;
} CORE;

/* 64-bit Arm, pKVM; `enabled` until further types of its VMs were added. */
struct kvm_protected_vm {
	bool enabled;
	bool is_protected;
} CORE;
struct kvm_arch___pkvm {
	struct kvm_protected_vm pkvm;
} CORE;
struct kvm___pkvm {
	struct kvm_arch___pkvm arch;
} CORE;

static __always_inline __u32 protection_by_type(struct kvm *kvm)
{
	struct kvm___type *typed = (void *)kvm;
	__u64 type = 0;

	if (!bpf_core_field_exists(typed->arch.vm_type))
		return VP_NOT_PROTECTED;
	/* Reads one byte or eight, little endian. */
	bpf_probe_read_kernel(&type, bpf_core_field_size(typed->arch.vm_type) & 15,
			      (void *)typed + bpf_core_field_offset(typed->arch.vm_type));
	switch (type) {
	case TYPE_SW_PROTECTED:
		return VP_PROTECTED_BY_KVM;
	case TYPE_SEV:
		return VP_PROTECTED_SEV;
	case TYPE_SEV_ES:
		return VP_PROTECTED_SEV_ES;
	case TYPE_SNP:
		return VP_PROTECTED_SNP;
	case TYPE_TDX:
		return VP_PROTECTED_TDX;
	}
	return VP_NOT_PROTECTED;
}

static __always_inline __u32 protection_by_svm(struct kvm *kvm)
{
	struct kvm_svm *svm = (void *)kvm;

	if (vendor != VP_VENDOR_AMD || !bpf_core_field_exists(svm->sev_info.active) ||
	    !BPF_CORE_READ(svm, sev_info.active))
		return VP_NOT_PROTECTED;
	return BPF_CORE_READ(svm, sev_info.es_active) ? VP_PROTECTED_SEV_ES : VP_PROTECTED_SEV;
}

static __always_inline __u32 protection_by_pkvm(struct kvm *kvm)
{
	struct kvm___pkvm *arm = (void *)kvm;
	bool is_protected = false;

	if (bpf_core_field_exists(arm->arch.pkvm.is_protected))
		is_protected = BPF_CORE_READ(arm, arch.pkvm.is_protected);
	else if (bpf_core_field_exists(arm->arch.pkvm.enabled))
		is_protected = BPF_CORE_READ(arm, arch.pkvm.enabled);
	return is_protected ? VP_PROTECTED_PKVM : VP_NOT_PROTECTED;
}

/* enum vp_guest_protection */
static __always_inline __u32 protection_of(struct kvm *kvm)
{
	__u32 protection = protection_by_type(kvm);

	if (!protection)
		protection = protection_by_svm(kvm);
	return protection ? protection : protection_by_pkvm(kvm);
}

static __always_inline __u32 protection_of_vcpu(struct kvm_vcpu *vcpu)
{
	struct kvm_vcpu___protected *x86 = (void *)vcpu;

	return bpf_core_field_exists(x86->arch.guest_state_protected) &&
		       BPF_CORE_READ(x86, arch.guest_state_protected)
		   ? VP_PROTECTED_REGISTERS
		   : VP_NOT_PROTECTED;
}

#endif
