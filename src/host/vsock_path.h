/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vsock devices that are a unix socket on the host instead of the kernel's vhost-vsock: Firecracker
 * (its docs/vsock.md) and Cloud Hypervisor, which uses the same protocol. A client sends
 * "CONNECT PORT\n", and receives "OK NUMBER\n" when the guest has accepted the connection.
 */
#ifndef VP_HOST_VSOCK_PATH_H
#define VP_HOST_VSOCK_PATH_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "host/vmm_command.h"

/*
 * Path of the VMM's vsock socket as reachable from here, to be freed; NULL: none, or several. From
 * the command line (Cloud Hypervisor), or from the process's listening sockets (Firecracker, which
 * is configured by an API). `proc`: "/proc".
 */
char *vp_vsock_path_find(const char *proc, uint32_t pid, const struct vp_vmm_command *command);
/* Connects to a port of the guest within the timeout; process `pid` must be the listener. *ret: a
 * blocking socket. */
struct vp_error *vp_vsock_path_connect(const char *path, uint32_t pid, unsigned port,
				       unsigned seconds, int *ret) VP_MUST_CHECK;

#endif
