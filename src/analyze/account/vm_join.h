/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VMs of several recordings as one list. VMs have numbers in each recording, which are mostly
 * those of their processes: another recording of the host may have another VM of that number, or
 * after a restart the same VM with another one. A VM is the same if its process is, or if uuid and
 * name are.
 */
#ifndef VP_ANALYZE_ACCOUNT_VM_JOIN_H
#define VP_ANALYZE_ACCOUNT_VM_JOIN_H

#include <stdbool.h>

#include "base/map.h"
#include "schema/schema.h"
#include "schema/vm.h"

struct vp_vm_join {
	vp_vms *vms;         /* the caller's: all VMs */
	struct vp_map ids;   /* the numbers of the recording at hand, to those in `vms` … */
	struct vp_map taken; /* … and these */
};

void vp_vm_join_deinit(struct vp_vm_join *join);
/* The next recording begins: it has numbers of its own. */
void vp_vm_join_next(struct vp_vm_join *join);
/* Takes up the VMs of the recording at hand; again when it has others or knows more of them. */
void vp_vm_join_add(struct vp_vm_join *join, const vp_vms *of);
/* The record of the recording at hand with numbers of `vms`: `record` itself, or a copy in *ret. */
const struct vp_record_header *vp_vm_join_record(struct vp_vm_join *join,
						 const struct vp_record_header *record,
						 union vp_any_record *ret);

#endif
