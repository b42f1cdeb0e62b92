/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects a flight recorder's triggers in Xen's trace records, as the accounting reads them.
 * Nothing here calls Xen. */
#ifndef VP_XEN_XEN_CONDITIONS_H
#define VP_XEN_XEN_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/conditions_abi.h"
#include "schema/condition.h"
#include "xen/states.h"
#include "xen/trace.h"

struct vp_condition_watch;

/* See struct vp_condition_ops. */
struct vp_condition_watch *vp_xen_conditions_new(const struct vp_conditions *conditions,
						 bool every_vm);
void vp_xen_conditions_add(struct vp_condition_watch *watch, uint32_t vm);
void vp_xen_conditions_arm(struct vp_condition_watch *watch);
bool vp_xen_conditions_fired(struct vp_condition_watch *watch, struct vp_fired *ret);
uint64_t vp_xen_conditions_dropped(const struct vp_condition_watch *watch);
void vp_xen_conditions_free(struct vp_condition_watch *watch);
/* The accounting passes its records on from now on, until _leave(); in between, the watch stays
 * allocated. _is_fed(): whether it does. */
void vp_xen_conditions_join(struct vp_condition_watch *watch);
void vp_xen_conditions_leave(struct vp_condition_watch *watch);
bool vp_xen_conditions_is_fed(const struct vp_condition_watch *watch);
/* Evaluates a record before it is added to the states. */
void vp_xen_conditions_take(struct vp_condition_watch *watch, const struct vp_xen_states *states,
			    const struct vp_xen_traced *traced);

#endif
