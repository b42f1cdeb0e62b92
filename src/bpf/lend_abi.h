/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data of host-provided counters, shared by lend.bpf.c and collect/programs/lender.c, in addition
 * to protocol/lent.h. */
#ifndef VP_BPF_LEND_ABI_H
#define VP_BPF_LEND_ABI_H

enum { VP_LEND_MAX_VCPUS = 512 };

/* vCPUs are looked up at each VM entry by open addressing: slot tid modulo size, or one of the
 * next. */
enum { VP_LEND_SLOTS = 4096, VP_LEND_TRIES = 8 };

/* State of a vCPU thread: address of its cell in the VMM's memory, and counts of results. */
struct vp_lend_vcpu {
	unsigned int tid; /* 0: the entry is free */
	unsigned int unused;
	unsigned long long hva, marker;
	unsigned int first, n; /* its events in the array of all events */
	unsigned long long sequence;
	unsigned long long published, idle, unwritten,
	    unread;               /* VM entries by result; idle: no client */
	unsigned long long moved; /* entries at which the memory slots had changed */
};

#endif
