/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a guest's kernel counts what happens on each of its CPUs. */
#ifndef VP_GUESTMEM_COUNTS_H
#define VP_GUESTMEM_COUNTS_H

#include "base/macros.h"
#include "guestmem/tasks.h"
#include "schema/interval.h"

struct vp_guest_counter {
	uint64_t gpa; /* of 8 bytes in one page */
	bool narrow;  /* only the first 4 of them are it */
};

/* The counter of that CPU; false: its address is unknown. */
bool vp_guest_counter_find(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
			   enum vp_guest_count count, struct vp_guest_counter *ret) VP_MUST_CHECK;
/* Where that CPU's run queue has the task that the scheduler chose last (rq.curr): during a switch,
 * another one than the current task. */
bool vp_guest_chosen_find(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
			  uint64_t *gpa) VP_MUST_CHECK;

#endif
