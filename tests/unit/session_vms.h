/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMs of a session that a test makes. */
#ifndef VP_TESTS_UNIT_SESSION_VMS_H
#define VP_TESTS_UNIT_SESSION_VMS_H

#include "base/alloc.h"
#include "base/vec.h"
#include "schema/vm.h"
#include "session/session_private.h"

/* Adds a VM without vCPUs. */
static inline struct vp_vm *session_add_vm(struct vp_session *session, const char *name,
					   uint32_t pid)
{
	struct vp_vm vm = {.pid = pid,
			   .name = vp_strdup(name),
			   .uuid = vp_strdup(""),
			   .agent = vp_strdup(""),
			   .memory = vp_strdup("")};

	vp_vec_push(&session->vms, vm);
	return &session->vms.at[session->vms.count - 1];
}

#endif
