/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters in memory that the host reads; shared by counts.bpf.c and agent_counts.c. */
#ifndef VP_GUEST_AGENT_COUNTS_H
#define VP_GUEST_AGENT_COUNTS_H

#include "schema/interval.h"

enum { VP_COUNTS_MARKER_WORD = 7, VP_COUNTS_WORDS };

/* A cache line of counters: line 0 is for all CPUs, line N + 1 for CPU N. */
struct vp_counts_cell {
	unsigned long long words[VP_COUNTS_WORDS]; /* indexed by enum vp_guest_count */
};

_Static_assert((int)VP_GUEST_COUNT <= (int)VP_COUNTS_MARKER_WORD, "each event has its word");

#endif
