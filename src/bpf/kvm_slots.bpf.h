/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A VM's memory slots in KVM, and detection of changes. */
#ifndef VP_BPF_KVM_SLOTS_BPF_H
#define VP_BPF_KVM_SLOTS_BPF_H

#include "bpf/kvm_compat.bpf.h"

struct kvm_memslots {
	__u64 generation;
} CORE;

struct kvm {
	struct kvm_memslots
	    *memslots[1]; /* of address space 0, which is not that of system management mode */
} CORE;

struct kvm_vcpu___vm {
	struct kvm *kvm;
} CORE;

/* Generation of the slots: KVM changes it before the memory of a slot can be replaced. 0:
 * unknown. */
static __always_inline __u64 slots_generation(struct kvm *kvm)
{
	struct kvm_memslots *slots;

	if (!bpf_core_type_exists(struct kvm) || !bpf_core_type_exists(struct kvm_memslots))
		return 0;
	slots = BPF_CORE_READ(kvm, memslots[0]);
	return slots ? BPF_CORE_READ(slots, generation) : 0;
}

#endif
