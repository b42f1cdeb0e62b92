/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admission: the only stage between data sources and the trace for records of VMs. Sources identify
 * a VM by its VMM process, recordings by number. */
#ifndef VP_SESSION_ADMIT_H
#define VP_SESSION_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"
#include "schema/schema.h"

struct vp_session;

/* Cached result for the previous record: most records of a stream are of the same vCPU.
 * Zero-initialized. */
struct vp_admission {
	bool known;
	uint64_t revision;  /* of the session's VMs when it was cached */
	uint32_t pid, tid;  /* VMM process and vCPU thread, as in the record */
	uint32_t vm;        /* recording number of their VM */
	uint32_t noted;     /* the thread's vCPU in the previous record; VP_VCPU_UNKNOWN: none */
	bool is_unselected; /* the VM is excluded by --vm */
};

/*
 * Sets the VM's number in the record, notes the vCPU, and blanks guest details if --vm excludes the
 * VM; the fact that the guest ran stays. Records of types without a VM are not changed. False: --vm
 * excludes the whole record (the name of a guest thread).
 */
bool vp_admit(struct vp_session *session, struct vp_admission *last, void *record);

/* Fast path for a sample of the same vCPU as the previous record, at the same `revision`. False:
 * call vp_admit(). */
static inline bool vp_admit_again(const struct vp_admission *last, uint64_t revision,
				  struct vp_vcpu_sample *sample)
{
	bool same = last->known && last->revision == revision && last->pid == sample->vm &&
		    last->tid == sample->tid && last->noted == sample->vcpu &&
		    last->noted != VP_VCPU_UNKNOWN && !last->is_unselected;

	if (same)
		sample->vm = last->vm;
	return same;
}

#endif
