/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps each CPU of this guest to its vCPU number on the host. */
#ifndef VP_GUEST_CPUS_H
#define VP_GUEST_CPUS_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* Calls `take` with each CPU that is online, until it returns an error. */
struct vp_error *vp_guest_cpus(struct vp_error *(*take)(void *context, uint32_t cpu, uint32_t vcpu),
			       void *context) VP_MUST_CHECK;

#endif
