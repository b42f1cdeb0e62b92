/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filter of samples: by VM, vCPU and process. */
#ifndef VP_ANALYZE_COMMON_FILTER_H
#define VP_ANALYZE_COMMON_FILTER_H

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "store/recording.h"

struct vp_filter {
	const char *comm; /* NULL: any name */
	uint64_t pid;     /* 0: any pid */
	bool has_vcpu;
	uint64_t vcpu;
	bool all_vms;
	bool *chosen;    /* by number of the VM */
	size_t n_chosen; /* number of flags; later VMs are selected if all are */
};

/* Flags of the VMs with names or pids in `vm`, one per line, as a new array; NULL: all. Errors: not
 * found. */
struct vp_error *vp_filter_choose_vms(const vp_vms *vms, const char *vm, bool **ret) VP_MUST_CHECK;

/* `vm`: as above. The caller sets the other members. */
struct vp_error *vp_filter_init(struct vp_filter *filter, const vp_vms *vms,
				const char *vm) VP_MUST_CHECK;
void vp_filter_deinit(struct vp_filter *filter);
/* `vm`: number of a VM. */
bool vp_filter_has_vm(const struct vp_filter *filter, uint32_t vm);
/* `vcpu`: number of a vCPU, or VP_NONE: no vCPU. */
bool vp_filter_has_vcpu(const struct vp_filter *filter, uint32_t vcpu);
/* Whether only some processes are selected. */
bool vp_filter_is_of_process(const struct vp_filter *filter);
/* Whether anything is excluded. */
bool vp_filter_hides_any(const struct vp_filter *filter);

#endif
