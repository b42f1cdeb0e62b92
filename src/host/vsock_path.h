/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMMs whose vsock device is a unix socket on the host instead of the kernel's vhost-vsock:
 * Firecracker (docs/vsock.md there) and Cloud Hypervisor, which has it from there. A client sends
"CONNECT PORT
", and receives "OK
 * NUMBER
" when the guest has accepted the connection.
 */
#ifndef VP_HOST_VSOCK_PATH_H
#define VP_HOST_VSOCK_PATH_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "host/vmm_command.h"

/* The path of that socket of a VMM's process, as reachable from here, to be freed. NULL: no such
 * socket, or several. It comes from the command line (Cloud Hypervisor), or from the sockets that
 * it listens at (Firecracker, which gets it by its API). `proc` is "/proc". */
char *vp_vsock_path_find(const char *proc, uint32_t pid, const struct vp_vmm_command *command);
/* Connects to the guest's port through it, within the time limit; process `pid` must be the
 * listener. *ret is a blocking socket. */
struct vp_error *vp_vsock_path_connect(const char *path, uint32_t pid, unsigned port,
				       unsigned seconds, int *ret) VP_MUST_CHECK;

#endif
