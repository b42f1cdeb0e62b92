/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMMs whose vsock device is a unix socket on the host instead of the kernel's vhost-vsock:
 * Firecracker (docs/vsock.md there) and Cloud Hypervisor, which has it from there. Whoever connects
 * says "CONNECT PORT\n", and hears "OK NUMBER\n" when the guest has taken the connection.
 */
#ifndef VP_HOST_VSOCK_PATH_H
#define VP_HOST_VSOCK_PATH_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "host/vmm_command.h"

/*
 * The path of that socket of a VMM's process, as it can be reached from here, to be freed; NULL:
 * it has none, or it is not known which it is. By its command line (Cloud Hypervisor), or by what
 * it listens at (Firecracker, which is told by its API). `proc` is
 * "/proc".
 */
char *vp_vsock_path_find(const char *proc, uint32_t pid, const struct vp_vmm_command *command);
/* Connects to the guest's port by it; process `pid` must be who listens there. It has so long. *ret
 * is a socket on which reading and writing wait. */
struct vp_error *vp_vsock_path_connect(const char *path, uint32_t pid, unsigned port,
				       unsigned seconds, int *ret) VP_MUST_CHECK;

#endif
