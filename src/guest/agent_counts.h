/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by counts.bpf.c and agent_counts.c: counters in memory that the host reads. */
#ifndef VP_GUEST_AGENT_COUNTS_H
#define VP_GUEST_AGENT_COUNTS_H

#include "schema/interval.h"

enum { VP_COUNTS_MARKER_WORD = 7, VP_COUNTS_WORDS };

/* A line of the cache: line 0 is of all CPUs, N + 1 is CPU N's. */
struct vp_counts_cell {
	unsigned long long words[VP_COUNTS_WORDS]; /* by enum vp_guest_count */
};

_Static_assert((int)VP_GUEST_COUNT <= (int)VP_COUNTS_MARKER_WORD, "each event has its word");

#endif
