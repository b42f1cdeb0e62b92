/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vCPUs' numbers and threads, as KVM has them (kvm_vcpu.vcpu_id: on x86 the APIC id). A VMM's own
 * count of them (QEMU's cpu_index) is another one where ids have gaps: -smp 6,sockets=2,cores=3 has
 * 0, 1, 2, 4, 5, 6.
 */
#ifndef VP_HOST_VCPU_NUMBERS_H
#define VP_HOST_VCPU_NUMBERS_H

#include "schema/vm.h"

/*
 * Adds those vCPUs of the VM whose number and thread are known: by KVM's debugfs (in `debugfs`,
 * "/sys/kernel/debug/kvm"), and if that does not have the threads (before v6.1), by the names that
 * QEMU gives them, in order, if there are as many. `alone`: its process has no other VM.
 */
void vp_vcpu_numbers_read(const char *proc, const char *debugfs, bool alone, struct vp_vm *vm);

#endif
