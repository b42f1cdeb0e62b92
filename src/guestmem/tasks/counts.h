/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of the guest kernel's event counters of each CPU. */
#ifndef VP_GUESTMEM_TASKS_COUNTS_H
#define VP_GUESTMEM_TASKS_COUNTS_H

#include "base/macros.h"
#include "guestmem/tasks/tasks.h"
#include "schema/interval.h"

struct vp_guest_counter {
	uint64_t gpa; /* of the 8-byte counter, within one page */
	bool narrow;  /* only the first 4 bytes are the counter */
};

/* Finds the counter of that CPU; false: unknown address. */
bool vp_guest_counter_find(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
			   enum vp_guest_count count, struct vp_guest_counter *ret) VP_MUST_CHECK;
/* Finds the pointer in that CPU's run queue to the task last chosen by the scheduler (rq.curr),
 * which differs from the current task during a switch. */
bool vp_guest_chosen_find(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
			  uint64_t *gpa) VP_MUST_CHECK;

#endif
