/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMs of an import: maps threads to vCPUs. */
#ifndef VP_IMPORT_IMPORT_VMS_H
#define VP_IMPORT_IMPORT_VMS_H

#include "base/cursor.h"
#include "base/notices.h"
#include "base/vec.h"
#include "schema/vm.h"

struct vp_import_thread {
	uint32_t tid, process; /* 0: not known */
	uint32_t vcpu;
};

struct vp_import_vms {
	vp_vms vms;
	VP_VEC(uint64_t) ids;                    /* of each, as its guest's file has it; or 0 */
	VP_VEC(bool) taken;                      /* a guest's trace was found for it */
	VP_VEC(struct vp_import_thread) entered; /* threads that entered a guest */
};

void vp_import_vms_deinit(struct vp_import_vms *vms);
/* A VM that has no vCPUs yet; its index. */
size_t vp_import_vms_add(struct vp_import_vms *vms, struct vp_slice name, uint64_t id);
/* The VM of that process, or of that thread where processes are not known: its index, and its name
 * is `name` from then on. SIZE_MAX: no thread of it entered a guest. */
size_t vp_import_vms_claim(struct vp_import_vms *vms, uint32_t process, uint32_t tid,
			   struct vp_slice name);
/* Assigns all threads that belong to no VM yet: by their processes. If these are unknown, VMs are
 * assumed by the order of threads, with a line in `notes`. */
void vp_import_vms_add_unknown(struct vp_import_vms *vms, vp_notices *notes);
/* The only VM that no guest's trace was found for; SIZE_MAX: there are several, or none. */
size_t vp_import_vms_only(const struct vp_import_vms *vms);
void vp_import_vms_rename(struct vp_import_vms *vms, size_t index, struct vp_slice name);
/* Their processes, as far as they are known, and when they were first seen. */
void vp_import_vms_finish(struct vp_import_vms *vms, uint64_t start);

#endif
