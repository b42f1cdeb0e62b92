/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of the VM's manager that carry out advice, with the pCPUs and vCPUs of the recording. */
#ifndef VP_ANALYZE_REPORT_DIAGNOSE_COMMANDS_H
#define VP_ANALYZE_REPORT_DIAGNOSE_COMMANDS_H

#include <stdint.h>

#include "analyze/report/diagnose_rules.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "schema/vm.h"

/* A VM's manager, from its cgroup and name. */
enum vp_manager {
	VP_MANAGER_UNKNOWN,
	VP_MANAGER_LIBVIRT,
	VP_MANAGER_NOVA,    /* libvirt under OpenStack: instance-0000002a */
	VP_MANAGER_PROXMOX, /* /qemu.slice/100.scope */
	VP_MANAGER_SYSTEMD, /* another systemd unit */
	VP_MANAGER_XEN,
	VP_MANAGER_KUBEVIRT,   /* /kubepods…, names NAMESPACE_NAME */
	VP_MANAGER_FIRECRACKER /* /firecracker/ID of its jailer */
};

enum vp_manager vp_manager_of(const struct vp_vm *vm);
/* "libvirt", "nova", "proxmox", "systemd", "xen", "kubevirt", "firecracker", or "". */
const char *vp_manager_name(enum vp_manager manager);

/* The VM's namespace (KubeVirt) or project's id (Nova), to be freed; "" if its manager has none, or
 * it is unknown. */
char *vp_vm_namespace(const struct vp_vm *vm) VP_MUST_CHECK;

/* Appends the commands for a finding about the VM, one per line; none if neither manager nor rule
 * has any. If no other pCPU is known, a larger weight where that helps. `pcpus`: number of the
 * host's pCPUs. */
void vp_diagnose_commands(const struct vp_rule *rule, const struct vp_vm *vm, uint32_t pcpus,
			  struct vp_buffer *ret);
/* Appends the pCPUs that the VM's vCPUs may use: "0-3,8"; "" if all, or unknown. */
void vp_diagnose_pcpus(const struct vp_vm *vm, uint32_t pcpus, struct vp_buffer *ret);

#endif
