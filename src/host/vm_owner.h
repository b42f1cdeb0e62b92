/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads who owns a VM, and its name there, from files of its manager: no daemon is asked. */
#ifndef VP_HOST_VM_OWNER_H
#define VP_HOST_VM_OWNER_H

#include "schema/vm.h"

/*
 * Sets title, project and tenant of the VM, and its uuid if it has none or if the manager's id is
 * unique and the firmware's uuid is not (KubeVirt). `root` and `proc` are "" and "/proc" except in
 * tests. A confined process parses the file. A file of another uuid is ignored.
 */
void vp_vm_owner_read(const char *root, const char *proc, struct vp_vm *vm);

#endif
