/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reason of a flight recorder's snapshot: stored as numbers, rendered as a sentence. */
#ifndef VP_SCHEMA_SNAPSHOT_CAUSE_H
#define VP_SCHEMA_SNAPSHOT_CAUSE_H

#include <stdint.h>

#include "base/macros.h"
#include "schema/condition.h"
#include "schema/vm.h"

/* The numbers are in recordings: append only. */
enum vp_snapshot_cause_kind {
	VP_CAUSE_NONE, /* no snapshot, or a recording before 0.3, which has a sentence */
	VP_CAUSE_TRIGGER,
	VP_CAUSE_MANUAL, /* 'vperf snapshot' */
	VP_CAUSE_SIGNAL, /* SIGUSR2 */
	VP_CAUSE_END,    /* the recorder ended */
	VP_CAUSE_KINDS
};

enum { VP_CAUSE_COMM = 16 };

struct vp_snapshot_cause {
	uint32_t kind; /* enum vp_snapshot_cause_kind */
	/* The rest is set for triggers only. */
	uint32_t condition;     /* enum vp_condition … */
	uint64_t limit_ns;      /* … and its limit */
	uint32_t vm, vcpu, tid; /* vp_vm_id(); vCPU or VP_VCPU_UNKNOWN; its thread */
	uint64_t ns;            /* measured duration */
	uint32_t pcpu;          /* pCPU for which the vCPU waited, or on which it ran */
	uint32_t vendor, reason;
	uint32_t thief_tid; /* the thread that had that pCPU longest; 0: unknown */
	uint64_t thief_ns;
	char thief_comm[VP_CAUSE_COMM + 1];
};

/* "steal>20ms: vCPU 0 of VM 'g1' (thread 77) was runnable for …"; "": VP_CAUSE_NONE. A new
 * string. */
char *vp_snapshot_cause_text(const struct vp_snapshot_cause *cause,
			     const vp_vms *vms) VP_MUST_CHECK;

#endif
