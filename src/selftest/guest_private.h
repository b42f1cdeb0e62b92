/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the guest's VMM and its architecture-specific part. */
#ifndef VP_SELFTEST_GUEST_PRIVATE_H
#define VP_SELFTEST_GUEST_PRIVATE_H

#include <linux/kvm.h>

#include "base/macros.h"
#include "selftest/guest.h"

enum {
	VP_GUEST_MEMORY_SIZE = 0x20000,
	VP_GUEST_LOOP = 6,          /* instructions of a loop of both functions */
	VP_GUEST_LOOPS_OF_ROUND = 5 /* the hot function's four for each of the cold one's */
};

struct vp_guest {
	int kvm, vm, vcpu;
	char *memory;
	struct kvm_run *run;
	size_t run_size;
};

/* Request of the guest to its VMM by an exit. */
enum vp_guest_request { VP_GUEST_GOES_ON, VP_GUEST_WAS_BUSY, VP_GUEST_ENDS, VP_GUEST_IS_LOST };

/* Memory at the guest's address, vCPU and devices; what is open already is closed by the caller. */
struct vp_error *vp_guest_make(struct vp_guest *guest) VP_MUST_CHECK;
/* Before a run: registers, the program and its parameters. */
struct vp_error *vp_guest_prepare(struct vp_guest *guest, const struct vp_guest_work *work,
				  struct vp_guest_done *done) VP_MUST_CHECK;
/* After an exit to the VMM: counts it. */
enum vp_guest_request vp_guest_take(struct vp_guest *guest, struct vp_guest_done *done);
/* The busy time is over (where the guest does not see that by itself). Safe in a signal handler. */
void vp_guest_stop_busy(char *memory);
/* After the last exit: what the guest counted. */
void vp_guest_finish(const struct vp_guest *guest, const struct vp_guest_work *work,
		     struct vp_guest_done *done);

#endif
