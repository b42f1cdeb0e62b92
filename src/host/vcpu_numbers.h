/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers and threads of vCPUs as in KVM (kvm_vcpu.vcpu_id: on x86 the APIC id). A VMM's own
 * numbers (QEMU's cpu_index) differ where ids have gaps: with -smp 6,sockets=2,cores=3 ids are 0,
 * 1, 2, 4, 5, 6.
 */
#ifndef VP_HOST_VCPU_NUMBERS_H
#define VP_HOST_VCPU_NUMBERS_H

#include "schema/vm.h"

/*
 * Adds the vCPUs of the VM whose number and thread are known: from KVM's debugfs (`debugfs`,
 * "/sys/kernel/debug/kvm"); if that lacks threads (before v6.1), from QEMU's thread names, in
 * order, if their number matches. `alone`: its process has no other VM.
 */
void vp_vcpu_numbers_read(const char *proc, const char *debugfs, bool alone, struct vp_vm *vm);

#endif
