/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds VMs: all processes with an open KVM VM, with any VMM. Names come from the command line
 * (vmm_command.h), otherwise "vm-PID". */
#ifndef VP_HOST_VM_SCAN_H
#define VP_HOST_VM_SCAN_H

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"

/* Adds all running VMs that are not in `vms`. Requires permission to read other processes'
 * descriptors. */
struct vp_error *vp_vm_scan(vp_vms *vms, bool at_start) VP_MUST_CHECK;
/* Adds the open VMs of process `pid`, except running ones in `vms`; returns the first one, or
 * NULL. */
struct vp_vm *vp_vm_scan_process(vp_vms *vms, uint32_t pid, bool at_start);
/* Adds VMs of processes without one in `vms`, found by KVM's debugfs, if available: the cost does
 * not depend on the number of processes. */
void vp_vm_scan_new(vp_vms *vms, bool at_start);
/* Reads the numbers and threads of the vCPUs again: a vCPU has no thread before it first runs. */
void vp_vm_read_vcpus(struct vp_vm *vm);
/* Whether the pid of the VM's process is unused: one system call. */
bool vp_vm_has_exited(const struct vp_vm *vm);
/* The same, or the pid is another process's now, or the process has closed the VM: about 80,000
 * instructions, mostly for the start time in /proc/PID/stat. */
bool vp_vm_is_gone(const struct vp_vm *vm);
/* Changes when a VM is opened or closed; 0: KVM's debugfs is missing. */
uint64_t vp_vm_generation(void);
/* Reads TSC offset and scaling of the vCPUs from KVM's debugfs, if available. */
void vp_vm_read_tsc(struct vp_vm *vm);
/* Reads the affinity of each vCPU of a running VM whose thread exists. */
void vp_vms_read_pcpus(vp_vms *vms);

#endif
