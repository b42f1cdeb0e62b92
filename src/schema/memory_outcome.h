/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outcome of reading a guest's memory: stored as numbers, rendered as a sentence. */
#ifndef VP_SCHEMA_MEMORY_OUTCOME_H
#define VP_SCHEMA_MEMORY_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

/* The numbers of both enums are in recordings: append only. */
enum vp_memory_status {
	VP_MEMORY_READ,
	VP_MEMORY_DERIVED,   /* the kernel has no BTF: only tasks were read */
	VP_MEMORY_VM_ENDED,  /* names read before that remain */
	VP_MEMORY_SEARCHING, /* the recording ended before the kernel was found */
	VP_MEMORY_FAILED,    /* reason in `problem` */
	VP_MEMORY_SHARED,    /* several VMs in one process */
	VP_MEMORY_STATUSES
};

/* Uses of guest memory. */
enum vp_memory_use {
	VP_MEMORY_SAMPLES,  /* samples with a name, without one */
	VP_MEMORY_EXITS,    /* exits with a name, without one */
	VP_MEMORY_SWITCHES, /* guest switches, those to unreadable tasks */
	VP_MEMORY_COUNTERS, /* guest kernel counters, vCPUs */
	VP_MEMORY_USES
};

struct vp_memory_outcome {
	uint32_t status;  /* enum vp_memory_status */
	uint32_t scanned; /* the kernel was found by a memory scan, not from registers */
	uint32_t cached;  /* its kernel pack was in the cache */
	uint32_t uses;    /* bits of enum vp_memory_use */
	uint64_t counts[VP_MEMORY_USES][2];
	uint64_t searched,
	    to_search;    /* bytes of guest memory searched, and in total; 0: no search */
	uint64_t lost_ns; /* time without the kernel after it had been found, ns */
	char *problem;    /* reason of VP_MEMORY_FAILED or of lost_ns; or NULL */
};

void vp_memory_outcome_count(struct vp_memory_outcome *outcome, enum vp_memory_use use,
			     uint64_t first, uint64_t second);
/* The outcome as a sentence, "ok: ..." if memory was read; a new string. */
char *vp_memory_outcome_text(const struct vp_memory_outcome *outcome) VP_MUST_CHECK;

#endif
