/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a flight recorder took a snapshot: numbers in a recording, a sentence where it is read. */
#ifndef VP_SCHEMA_SNAPSHOT_CAUSE_H
#define VP_SCHEMA_SNAPSHOT_CAUSE_H

#include <stdint.h>

#include "base/macros.h"
#include "schema/condition.h"
#include "schema/vm.h"

/* The numbers are in recordings: new ones go to the end. */
enum vp_snapshot_cause_kind {
	VP_CAUSE_NONE, /* no snapshot, or of a recording with a sentence (before 0.3) */
	VP_CAUSE_TRIGGER,
	VP_CAUSE_MANUAL, /* 'vperf snapshot' */
	VP_CAUSE_SIGNAL, /* SIGUSR2 */
	VP_CAUSE_END,    /* the recorder ended */
	VP_CAUSE_KINDS
};

enum { VP_CAUSE_COMM = 16 };

struct vp_snapshot_cause {
	uint32_t kind; /* enum vp_snapshot_cause_kind */
	/* The rest is for triggers only. */
	uint32_t condition;     /* enum vp_condition … */
	uint64_t limit_ns;      /* … and its limit */
	uint32_t vm, vcpu, tid; /* vp_vm_id(), the vCPU or VP_VCPU_UNKNOWN, its thread */
	uint64_t ns;            /* duration of what fired it */
	uint32_t pcpu;          /* for which the vCPU waited, or on which it was */
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
