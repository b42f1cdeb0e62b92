/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMs of an import: maps threads to vCPUs. */
#ifndef VP_IMPORT_RECORDING_IMPORT_VMS_H
#define VP_IMPORT_RECORDING_IMPORT_VMS_H

#include "base/cursor.h"
#include "base/notices.h"
#include "base/vec.h"
#include "schema/vm.h"

struct vp_import_thread {
	uint32_t tid, process; /* 0: unknown */
	uint32_t vcpu;
};

struct vp_import_vms {
	vp_vms vms;
	VP_VEC(uint64_t) ids;                    /* per VM: id in its guest's file; or 0 */
	VP_VEC(bool) taken;                      /* per VM: a guest's file was assigned */
	VP_VEC(struct vp_import_thread) entered; /* threads that entered a guest */
};

void vp_import_vms_deinit(struct vp_import_vms *vms);
/* Adds a VM without vCPUs; returns its index. */
size_t vp_import_vms_add(struct vp_import_vms *vms, struct vp_slice name, uint64_t id);
/* Finds the VM of that process (or thread, if processes are unknown) and sets its name. SIZE_MAX:
 * none of its threads entered a guest. */
size_t vp_import_vms_claim(struct vp_import_vms *vms, uint32_t process, uint32_t tid,
			   struct vp_slice name);
/* Assigns all remaining threads to VMs by process. If processes are unknown, VMs are assumed by the
 * order of threads, with a line in `notes`. */
void vp_import_vms_add_unknown(struct vp_import_vms *vms, vp_notices *notes);
/* The only VM without a guest's file; SIZE_MAX: none, or several. */
size_t vp_import_vms_only(const struct vp_import_vms *vms);
void vp_import_vms_rename(struct vp_import_vms *vms, size_t index, struct vp_slice name);
/* Sets processes, if known, and start times of all VMs. */
void vp_import_vms_finish(struct vp_import_vms *vms, uint64_t start);

#endif
