/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps CPUs of this guest to vCPU numbers of the host. */
#ifndef VP_GUEST_CPUS_H
#define VP_GUEST_CPUS_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* Calls `take` for each online CPU until it returns an error. */
struct vp_error *vp_guest_cpus(struct vp_error *(*take)(void *context, uint32_t cpu, uint32_t vcpu),
			       void *context) VP_MUST_CHECK;

#endif
