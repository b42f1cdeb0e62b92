/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by lend.bpf.c and collect/programs/lender.c, in addition to protocol/lent.h. */
#ifndef VP_BPF_LEND_ABI_H
#define VP_BPF_LEND_ABI_H

enum { VP_LEND_MAX_VCPUS = 512 };

/* vCPUs are looked up at each VM entry. A thread's slot in the array is its number's remainder, or
 * if that is taken one of the next ones. */
enum { VP_LEND_SLOTS = 4096, VP_LEND_TRIES = 8 };

/* State of a vCPU thread: the address of its cell in the VMM's memory, and the last result. */
struct vp_lend_vcpu {
	unsigned int tid; /* 0: the entry is free */
	unsigned int unused;
	unsigned long long hva, marker;
	unsigned int first, n; /* of its events in the array of all */
	unsigned long long sequence;
	unsigned long long published, idle, unwritten,
	    unread;               /* entries: idle ones had no client */
	unsigned long long moved; /* entries at which the memory slots were not the known ones */
};

#endif
