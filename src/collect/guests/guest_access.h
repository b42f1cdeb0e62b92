/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations by which a hypervisor gives access to guest memory. A VM is identified by the number
 * that a recording has for its process (struct vp_vm's `pid`). */
#ifndef VP_COLLECT_GUESTS_GUEST_ACCESS_H
#define VP_COLLECT_GUESTS_GUEST_ACCESS_H

#include "collect/guests/guest_state.h"

enum { VP_GUEST_ACCESS_FDS = 2 };

struct vp_guest_access {
	struct vp_error *(*open)(void **lister);
	void (*close)(void *lister);
	/* Lists the VM's memory slots and its vCPUs' registers. Errors: it has ended, or the kernel
	 * does not show them. */
	struct vp_error *(*list)(void *lister, uint32_t pid, struct vp_guest_state *ret);
	/* Errors: the pid is another VM's now. */
	struct vp_error *(*expect_same)(const struct vp_guest_state *state);
	bool (*runs)(uint32_t pid);
	/* Opens descriptors for reading the memory; -1: not needed. The caller closes them. */
	struct vp_error *(*open_memory)(const struct vp_guest_state *state,
					int fds[VP_GUEST_ACCESS_FDS]);
	/* Runs in the future reader process before it drops its rights; the result is passed to
	 * read_by(). NULL: nothing to do. */
	struct vp_error *(*prepare)(const struct vp_guest_state *state, void **ret);
	unsigned long request; /* ioctl that reading needs in addition to read(); 0: none */
	/* Runs in the confined reader: sets up `memory` to be read through these descriptors. They
	 * and `state` outlive it. */
	void (*read_by)(const struct vp_guest_state *state, void *prepared,
			const int fds[VP_GUEST_ACCESS_FDS], struct vp_guest_memory *memory);
};

const struct vp_guest_access *vp_guest_access_kvm(void);

#endif
