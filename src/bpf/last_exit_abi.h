/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pCPU's last VM exit, from exit_event.bpf.c: shared with collect/programs/exit_event.c. */
#ifndef VP_BPF_LAST_EXIT_ABI_H
#define VP_BPF_LAST_EXIT_ABI_H

#include <linux/types.h>

/* A read of that many words of guest memory costs little more than one of a single word. */
enum { VP_NEAR_WORDS = 20 };

struct vp_last_exit {
	__u64 rip;
	__u64 qualification; /* Intel SDM, volume 3, section 28.2.1 */
	__u32 reason;
	__u32 interruption; /* information on it: the vector is in its low byte */
	__u32 known;        /* the event has all of these */
	__u32 padding;
	__u64 words[VP_NEAR_WORDS]; /* room for a read: see read_numbers() */
};

#endif
