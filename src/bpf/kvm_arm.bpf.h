/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of KVM's vCPU on 64-bit Arm. Registers are saved in memory at each exit, or when the vCPU
 * is put. */
#ifndef VP_BPF_KVM_ARM_BPF_H
#define VP_BPF_KVM_ARM_BPF_H

#include "bpf/kvm_compat.bpf.h"

/* Only the needed ones: numbers come from the kernel's BTF. CNTVOFF_EL2 since v5.10 (41ce82f63c06
 * "KVM: arm64: timers: Move timer registers to the sys_regs file"). */
enum vcpu_sysreg { CNTVOFF_EL2 = 1, TTBR1_EL1, TCR_EL1, VBAR_EL1, TPIDR_EL1 };

struct user_pt_regs___kvm {
	__u64 regs[31];
	__u64 sp; /* SP_EL0 */
	__u64 pc, pstate;
} CORE;
struct kvm_cpu_context {
	struct user_pt_regs___kvm regs;
	__u64 sys_regs[1];
} CORE;
struct kvm_vcpu_arch___arm {
	struct kvm_cpu_context ctxt;
} CORE;
struct kvm_vcpu___arm {
	struct kvm_vcpu_arch___arm arch;
} CORE;

/* Adjacent: x29, x30, SP_EL0, PC and PSTATE. Valid at an exit, in all versions since 5.10, with and
 * without VHE. */
struct arm_regs {
	__u64 frame, link, sp, pc, pstate;
};

static __always_inline bool read_arm_regs(struct kvm_vcpu *vcpu, struct arm_regs *ret)
{
	struct kvm_vcpu___arm *arm = (void *)vcpu;

	if (vendor != VP_VENDOR_ARM || !bpf_core_field_exists(arm->arch.ctxt.regs))
		return false;
	barrier();
	return !bpf_probe_read_kernel(ret, sizeof(*ret),
				      (void *)vcpu + bpf_core_field_offset(arm->arch.ctxt.regs.sp) -
					  2 * sizeof(__u64));
}

/* x0 to x30, SP_EL0, PC and PSTATE: as in struct user_pt_regs. */
enum { ARM_REGISTERS = 34 };

static __always_inline bool read_arm_registers(struct kvm_vcpu *vcpu, __u64 *ret)
{
	struct kvm_vcpu___arm *arm = (void *)vcpu;

	if (vendor != VP_VENDOR_ARM || !bpf_core_field_exists(arm->arch.ctxt.regs))
		return false;
	barrier();
	return !bpf_probe_read_kernel(ret, ARM_REGISTERS * sizeof(*ret),
				      (void *)vcpu + bpf_core_field_offset(arm->arch.ctxt.regs));
}

static __always_inline bool read_arm_frame_pointer(struct kvm_vcpu *vcpu, __u64 *ret)
{
	struct kvm_vcpu___arm *arm = (void *)vcpu;

	return vendor == VP_VENDOR_ARM && bpf_core_field_exists(arm->arch.ctxt.regs) &&
	       !bpf_core_read(ret, sizeof(*ret), &arm->arch.ctxt.regs.regs[29]);
}

/* PSTATE.M: exception level 0 is user space, also for 32-bit code. Converted to x86's privilege
 * levels, which records have. */
static __always_inline __u32 arm_cpl(__u64 pstate)
{
	return pstate & 0xf ? 0 : 3;
}

/* Reads a system register; 0: unknown. With VHE the value dates from when the vCPU was last put. */
#define READ_ARM_SYSREG(vcpu, name)                                                                \
	({                                                                                         \
		struct kvm_vcpu___arm *arm_ = (void *)(vcpu);                                      \
		__u64 value_ = 0;                                                                  \
		if (bpf_core_field_exists(arm_->arch.ctxt) &&                                      \
		    bpf_core_enum_value_exists(enum vcpu_sysreg, name)) {                          \
			barrier();                                                                 \
			__u32 at_ = bpf_core_field_offset(arm_->arch.ctxt.sys_regs) +              \
				    bpf_core_enum_value(enum vcpu_sysreg, name) * sizeof(value_);  \
			bpf_probe_read_kernel(&value_, sizeof(value_), (void *)(vcpu) + at_);      \
		}                                                                                  \
		value_;                                                                            \
	})

#endif
