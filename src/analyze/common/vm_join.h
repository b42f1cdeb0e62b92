/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Joins the VMs of several recordings to one list. VM numbers are mostly pids, so another recording
 * of the host may have another VM with the same number, or after a restart the same VM with a
 * different number. VMs are the same if their process is the same, or uuid and name.
 */
#ifndef VP_ANALYZE_COMMON_VM_JOIN_H
#define VP_ANALYZE_COMMON_VM_JOIN_H

#include <stdbool.h>

#include "base/map.h"
#include "schema/schema.h"
#include "schema/vm.h"

struct vp_vm_join {
	vp_vms *vms;         /* all VMs; owned by the caller */
	struct vp_map ids;   /* from numbers of the present recording to those in `vms` … */
	struct vp_map taken; /* … and these numbers are in use */
};

void vp_vm_join_deinit(struct vp_vm_join *join);
/* Starts the next recording, which has its own numbers. */
void vp_vm_join_next(struct vp_vm_join *join);
/* Adds the VMs of the present recording; call it again when more is known about them. */
void vp_vm_join_add(struct vp_vm_join *join, const vp_vms *of);
/* The record with VM numbers of `vms`: `record` itself, or a copy in *ret. */
const struct vp_record_header *vp_vm_join_record(struct vp_vm_join *join,
						 const struct vp_record_header *record,
						 union vp_any_record *ret);

#endif
