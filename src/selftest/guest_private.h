/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the VMM of the guest and its architecture-specific part. */
#ifndef VP_SELFTEST_GUEST_PRIVATE_H
#define VP_SELFTEST_GUEST_PRIVATE_H

#include <linux/kvm.h>

#include "base/macros.h"
#include "selftest/guest.h"

enum {
	VP_GUEST_MEMORY_SIZE = 0x20000,
	VP_GUEST_LOOP = 6,          /* instructions per loop of both functions */
	VP_GUEST_LOOPS_OF_ROUND = 5 /* four loops of the hot function per loop of the cold one */
};

struct vp_guest {
	int kvm, vm, vcpu;
	char *memory;
	struct kvm_run *run;
	size_t run_size;
};

/* Request of the guest to its VMM at an exit. */
enum vp_guest_request { VP_GUEST_GOES_ON, VP_GUEST_WAS_BUSY, VP_GUEST_ENDS, VP_GUEST_IS_LOST };

/* Creates memory, vCPU and devices; on failure, the caller closes everything. */
struct vp_error *vp_guest_make(struct vp_guest *guest) VP_MUST_CHECK;
/* Before a run: sets registers, program and parameters. */
struct vp_error *vp_guest_prepare(struct vp_guest *guest, const struct vp_guest_work *work,
				  struct vp_guest_done *done) VP_MUST_CHECK;
/* Handles and counts an exit to the VMM. */
enum vp_guest_request vp_guest_take(struct vp_guest *guest, struct vp_guest_done *done);
/* Ends the busy time, on architectures whose guest has no clock. Async-signal-safe. */
void vp_guest_stop_busy(char *memory);
/* After the last exit: reads the guest's counts. */
void vp_guest_finish(const struct vp_guest *guest, const struct vp_guest_work *work,
		     struct vp_guest_done *done);

#endif
