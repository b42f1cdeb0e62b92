/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admission: the one stage that records of VMs pass between their source and the trace. Sources
 * know a VM by its VMM's process; a recording has numbers.
 */
#ifndef VP_SESSION_ADMIT_H
#define VP_SESSION_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"
#include "schema/schema.h"

struct vp_session;

/* Result for the record before: most records of a stream are of the same vCPU. Starts zeroed. */
struct vp_admission {
	bool known;
	uint64_t revision;  /* of the session's VMs at that time */
	uint32_t pid, tid;  /* VMM's process and vCPU thread, as in the record */
	uint32_t vm;        /* number of their VM in the recording */
	uint32_t noted;     /* the thread's vCPU, by the record before; VP_VCPU_UNKNOWN: none */
	bool is_unselected; /* --vm excludes the VM */
};

/*
 * Makes the record name its VM by number, notes the vCPU that it names, and blanks out what a guest
 * did if --vm excludes its VM: that the guest ran stays. `record` is of a type that has a VM, of
 * the schema or of the trace; others stay as they are. False: --vm excludes the whole record (the
 * name of a guest's thread).
 */
bool vp_admit(struct vp_session *session, struct vp_admission *last, void *record);

/* Does the same for a sample of the vCPU of the record before, at the session's present `revision`.
 * False: it is of another one, and is for vp_admit(). */
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
