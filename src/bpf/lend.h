/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lend.bpf.c and collect/lend.c share beside schema/lent.h. */
#ifndef VP_BPF_LEND_H
#define VP_BPF_LEND_H

enum { VP_LEND_MOST_VCPUS = 512 };

/* Of a vCPU's thread: where its cell is in the VMM's memory, and what became of it. */
struct vp_lend_vcpu {
	unsigned long long hva, marker;
	unsigned int first, n; /* of its events in the array of all */
	unsigned long long sequence;
	unsigned long long published, idle, unwritten,
	    unread; /* entries: idle ones had no client */
};

#endif
