/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that see a flight recorder's conditions (schema/condition.h). */
#ifndef VP_COLLECT_PROGRAMS_CONDITIONS_H
#define VP_COLLECT_PROGRAMS_CONDITIONS_H

#include "base/error.h"
#include "base/macros.h"
#include "bpf/conditions_abi.h"
#include "schema/condition.h"

struct vp_condition_watch;

/* `every_vm`: conditions of all VMs; else of those that are added. Nothing is seen yet. Errors:
 * this kernel does not know one of them, no permission. */
struct vp_error *vp_condition_watch_open(const struct vp_conditions *conditions, bool every_vm,
					 struct vp_condition_watch **ret) VP_MUST_CHECK;
/* The VM of VMM process `pid`, too. */
void vp_condition_watch_add(struct vp_condition_watch *watch, uint32_t pid);
/* Enables the next notification; triggers after it are only counted. */
void vp_condition_watch_arm(struct vp_condition_watch *watch);
/* A descriptor that can be read when there is one. */
int vp_condition_watch_fd(const struct vp_condition_watch *watch);
/* False: no trigger fired since it was armed. */
bool vp_condition_watch_take(struct vp_condition_watch *watch, struct vp_fired *ret);
/* Number of triggers without a notification. */
uint64_t vp_condition_watch_dropped(const struct vp_condition_watch *watch);
/* Names the thief in the notice, by that pCPU's slices. */
void vp_condition_find_thief(const struct vp_condition_cpu *cpu, struct vp_fired *fired);
void vp_condition_watch_free(struct vp_condition_watch *watch);

#endif
