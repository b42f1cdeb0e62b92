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
	/* Where the VM has memory, and its vCPUs' registers. Errors: it has ended, or is not shown.
	 */
	struct vp_error *(*list)(void *lister, uint32_t pid, struct vp_guest_state *ret);
	/* An error if the number is another VM's by now. */
	struct vp_error *(*expect_same)(const struct vp_guest_state *state);
	bool (*runs)(uint32_t pid);
	/* Opens what the memory is read by; -1: not needed. All are closed by whoever asked. */
	struct vp_error *(*open_memory)(const struct vp_guest_state *state,
					int fds[VP_GUEST_ACCESS_FDS]);
	/* In the process that is going to read, while it still has its rights; what it returns goes
	 * to read_by(). NULL: there is nothing to do. */
	struct vp_error *(*prepare)(const struct vp_guest_state *state, void **ret);
	unsigned long request; /* the ioctl that reading needs in addition to read(); 0: none */
	/* In a process that has nothing but these descriptors: has `memory` read by them. They and
	 * `state` outlive it. */
	void (*read_by)(const struct vp_guest_state *state, void *prepared,
			const int fds[VP_GUEST_ACCESS_FDS], struct vp_guest_memory *memory);
};

const struct vp_guest_access *vp_guest_access_kvm(void);

#endif
