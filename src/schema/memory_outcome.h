/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outcome of reading a guest's memory: numbers in a recording, a sentence where it is read. */
#ifndef VP_SCHEMA_MEMORY_OUTCOME_H
#define VP_SCHEMA_MEMORY_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

/* The numbers of both are in recordings: new ones go to the end. */
enum vp_memory_status {
	VP_MEMORY_READ,
	VP_MEMORY_DERIVED,   /* the kernel has no BTF: only tasks are known */
	VP_MEMORY_VM_ENDED,  /* what was known before stays */
	VP_MEMORY_SEARCHING, /* the kernel was not found before the recording ended */
	VP_MEMORY_FAILED,    /* `problem` */
	VP_MEMORY_SHARED,    /* several VMs in one process */
	VP_MEMORY_STATUSES
};

/* Uses of guest memory. */
enum vp_memory_use {
	VP_MEMORY_SAMPLES,  /* named, not named */
	VP_MEMORY_EXITS,    /* named, not named */
	VP_MEMORY_SWITCHES, /* guest switches, those to unreadable tasks */
	VP_MEMORY_COUNTERS, /* counters of the guest kernel, vCPUs */
	VP_MEMORY_USES
};

struct vp_memory_outcome {
	uint32_t status;  /* enum vp_memory_status */
	uint32_t scanned; /* the kernel was found by a scan, not by registers */
	uint32_t cached;  /* its pack was cached */
	uint32_t uses;    /* bits of enum vp_memory_use */
	uint64_t counts[VP_MEMORY_USES][2];
	uint64_t searched, to_search; /* bytes of guest memory; 0: no search */
	uint64_t lost_ns;             /* without the kernel, after it was found */
	char *problem;                /* of VP_MEMORY_FAILED, or of lost_ns; or NULL */
};

void vp_memory_outcome_count(struct vp_memory_outcome *outcome, enum vp_memory_use use,
			     uint64_t first, uint64_t second);
/* The outcome as a sentence, "ok: ..." if memory was read; a new string. */
char *vp_memory_outcome_text(const struct vp_memory_outcome *outcome) VP_MUST_CHECK;

#endif
