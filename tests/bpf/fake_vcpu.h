/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of the kernel that looks to the programs like a vCPU of KVM, with AMD's VMCB. */
#ifndef VP_TESTS_BPF_FAKE_VCPU_H
#define VP_TESTS_BPF_FAKE_VCPU_H

#include <stdbool.h>
#include <stdint.h>

struct fake_vcpu {
	int map;
	char *bytes;      /* the same memory as at `address` of the kernel */
	uint64_t address; /* of struct kvm_vcpu */
	uint32_t *number; /* its member vcpu_id */
	char *vmcb;
	uint64_t
	    kvm_address; /* of its struct kvm, and what that and the vCPU have of protection: */
	char *vm_type, *sev_info, *is_protected; /* NULL: this kernel has no such member */
	uint64_t *generation;                    /* of its VM's memory slots */
	char *rip; /* as KVM keeps Intel's, with the word behind it that says whether it does */
};

/* False: this kernel does not describe KVM's structs. */
bool fake_vcpu_make(struct fake_vcpu *ret);
void fake_vcpu_free(struct fake_vcpu *fake);
/* What the VMCB says of the last exit. */
void fake_vcpu_leaves(const struct fake_vcpu *fake, uint64_t reason, uint64_t ip, uint64_t cr3);
/* Of Intel: what KVM knows of RIP, and whether it has read it since the last exit. */
void fake_vcpu_reads_rip(const struct fake_vcpu *fake, uint64_t ip, bool read);

#endif
