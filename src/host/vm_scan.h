/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds VMs by themselves: any process that holds a KVM VM open, whatever VMM it is. Names come
 * from its command line (vmm_command.h), else "vm-PID".
 */
#ifndef VP_HOST_VM_SCAN_H
#define VP_HOST_VM_SCAN_H

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"

/* Adds every VM that runs now and is not in `vms` yet. Needs to read other processes' descriptors.
 */
struct vp_error *vp_vm_scan(vp_vms *vms, bool at_start) VP_MUST_CHECK;
/* Adds the VMs that process `pid` has open, but those that are there and have not ended; the first
 * of them, or NULL. */
struct vp_vm *vp_vm_look_at(vp_vms *vms, uint32_t pid, bool at_start);
/* Whether no process has the number of the VM's any more: one system call. */
bool vp_vm_has_exited(const struct vp_vm *vm);
/* The same, or another process has it by now, or the VM's has closed it: about 80,000 instructions,
 * nearly all for the process's start time in its `stat`. */
bool vp_vm_is_gone(const struct vp_vm *vm);
/* A number that changes when a VM is opened or closed; 0: KVM's debugfs is missing. */
uint64_t vp_vm_generation(void);
/* Reads the TSC offset and scaling of every vCPU from KVM's debugfs, as far as they are there. */
void vp_vm_read_tsc(struct vp_vm *vm);
/* Affinity of each vCPU, as far as its thread exists. */
void vp_vm_read_pcpus(struct vp_vm *vm);

#endif
