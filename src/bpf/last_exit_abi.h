/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last VM exit of a pCPU, written by exit_event.bpf.c, on Arm by account.bpf.c; shared with
 * collect/programs/exit_event.c. */
#ifndef VP_BPF_LAST_EXIT_ABI_H
#define VP_BPF_LAST_EXIT_ABI_H

#include <linux/types.h>

/* Reading that many words of guest memory costs little more than reading one. */
enum { VP_NEAR_WORDS = 20 };

struct vp_last_exit {
	__u64 rip;
	__u64 qualification; /* Intel SDM, volume 3, section 28.2.1 */
	__u32 reason;
	__u32 interruption; /* interruption information: the vector is in its low byte */
	__u32 known;        /* all fields are valid */
	__u32 padding;
	/* Arm, by account.bpf.c: when the guest was last entered and left, ns; where it was
	 * entered; what accounting did at the entry after it read the clock, ns; what the switches
	 * to a guest and back take, ns, or 0: not known yet. */
	__u64 entered_at, left_at, entry_pc, late_ns, switches;
	__u64 words[VP_NEAR_WORDS]; /* scratch space of read_numbers() */
};

#endif
