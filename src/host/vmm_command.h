/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses the command line of a VMM: the properties of its VM. Much of it may be a tenant's text
 * (names, boot arguments, serial numbers): only the values of the options meant for it are read, as
 * the VMM reads them. QEMU and those with its options (StratoVirt), crosvm, kvmtool, Cloud
 * Hypervisor, Firecracker.
 */
#ifndef VP_HOST_VMM_COMMAND_H
#define VP_HOST_VMM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vp_vmm_command {
	char *name;          /* of the VM; NULL: none is given */
	char *uuid;          /* or NULL */
	char *smbios_uuid;   /* while it is parsed: of QEMU's -smbios */
	uint32_t cid;        /* of its vhost-vsock device, or 0 */
	char *vsock;         /* the VMM's own unix socket of its vsock device, or NULL */
	bool is_firecracker; /* its API gets the vsock … */
	char *api;           /* … whose socket this is, or NULL */
};

/* Parses `text`, in the form of /proc/PID/cmdline: arguments that end with zeros. The result is to
 * be freed. */
struct vp_vmm_command vp_vmm_command_read(const char *text, size_t size);
void vp_vmm_command_deinit(struct vp_vmm_command *command);

#endif
