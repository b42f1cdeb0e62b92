/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses the command line of a VMM. Parts of it may be under the control of a tenant (names, boot
 * arguments, serial numbers): only the values of known options are used, as the VMM would.
 * Supported: QEMU and VMMs with its options (StratoVirt), crosvm, kvmtool, Cloud Hypervisor,
 * Firecracker.
 */
#ifndef VP_HOST_VMM_COMMAND_H
#define VP_HOST_VMM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vp_vmm_command {
	char *name;          /* VM name; NULL: none given */
	char *uuid;          /* or NULL */
	char *smbios_uuid;   /* while parsing: UUID of QEMU's -smbios */
	uint32_t cid;        /* of its vhost-vsock device; 0: none */
	char *vsock;         /* the VMM's unix socket for vsock, or NULL */
	bool is_firecracker; /* the vsock device is configured by an API … */
	char *api;           /* … on this socket; or NULL */
};

/* Parses `text` in the format of /proc/PID/cmdline: NUL-terminated arguments. Free the result. */
struct vp_vmm_command vp_vmm_command_read(const char *text, size_t size);
void vp_vmm_command_deinit(struct vp_vmm_command *command);

#endif
