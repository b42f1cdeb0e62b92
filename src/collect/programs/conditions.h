/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that detect a flight recorder's triggers (schema/condition.h). */
#ifndef VP_COLLECT_PROGRAMS_CONDITIONS_H
#define VP_COLLECT_PROGRAMS_CONDITIONS_H

#include "base/error.h"
#include "base/macros.h"
#include "bpf/conditions_abi.h"
#include "schema/condition.h"

struct vp_condition_watch;

/* `every_vm`: watch all VMs, otherwise only added ones. Starts disarmed. Errors: a trigger that
 * this kernel does not support, no permission. */
struct vp_error *vp_condition_watch_open(const struct vp_conditions *conditions, bool every_vm,
					 struct vp_condition_watch **ret) VP_MUST_CHECK;
/* Also watches the VM of VMM process `pid`. */
void vp_condition_watch_add(struct vp_condition_watch *watch, uint32_t pid);
/* Enables the next notification; further triggers are only counted. */
void vp_condition_watch_arm(struct vp_condition_watch *watch);
/* A descriptor that is readable when a notification is available. */
int vp_condition_watch_fd(const struct vp_condition_watch *watch);
/* False: no trigger since it was armed. */
bool vp_condition_watch_take(struct vp_condition_watch *watch, struct vp_fired *ret);
/* Number of triggers without a notification. */
uint64_t vp_condition_watch_dropped(const struct vp_condition_watch *watch);
/* Sets the thief in the notification from that pCPU's slices. */
void vp_condition_find_thief(const struct vp_condition_cpu *cpu, struct vp_fired *fired);
void vp_condition_watch_free(struct vp_condition_watch *watch);

#endif
