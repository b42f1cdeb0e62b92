/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Context switches of guests' kernels, from the events that their agents sent, and the names of
 * their threads. Each guest's trace is read once, in time order, as far as the caller requires.
 */
#ifndef VP_ANALYZE_TRACE_GUEST_SWITCHES_H
#define VP_ANALYZE_TRACE_GUEST_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"

struct vp_guest_switch {
	uint64_t time;
	uint32_t vcpu, prev, next;
};

struct vp_guest_switches;

struct vp_error *vp_guest_switches_open(const char *directory, const vp_vms *vms,
					struct vp_guest_switches **ret) VP_MUST_CHECK;
void vp_guest_switches_close(struct vp_guest_switches *switches);
/* The VM's next context switch that is not later than `until`; false: none. */
bool vp_guest_switches_next(struct vp_guest_switches *switches, uint32_t vm, uint64_t until,
			    struct vp_guest_switch *ret);
/* Whether the VM has no event at or after `time`: its trace ended. Call after
 * vp_guest_switches_next() has returned false for a time that is not earlier. */
bool vp_guest_switches_ended(const struct vp_guest_switches *switches, uint32_t vm, uint64_t time);
/* A thread's name in the events read so far; NULL: unknown. Owned by `switches`. */
const char *vp_guest_switches_comm(const struct vp_guest_switches *switches, uint32_t vm,
				   uint32_t tid);
/* A thread's process; 0: unknown. */
uint32_t vp_guest_switches_pid(const struct vp_guest_switches *switches, uint32_t vm, uint32_t tid);

#endif
