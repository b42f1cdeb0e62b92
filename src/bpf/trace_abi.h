/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of each pCPU in trace.bpf.c, shared with collect/programs/tracer.c. */
#ifndef VP_BPF_TRACE_ABI_H
#define VP_BPF_TRACE_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/trace_records.h"

/* A thread whose name was written to the pCPU's stream; per slot, the last one. */
struct vp_trace_name {
	__u32 tid;
	__u32 digest; /* hash of the name, which may change */
};

/*
 * A pCPU's ring is an array of pages in shared memory. `head` and `tail` count bytes, VP_TRACE_PAGE
 * per page. Only programs on the pCPU write, one at a time; only user space reads. A record that
 * starts in a page may end beyond its VP_TRACE_PAGE bytes: the next one starts the next page, and
 * `end` is the end of the record. A page is reused after it was read completely.
 */
enum {
	VP_TRACE_PAGE = 64 << 10,
	VP_TRACE_SPARE = 128, /* at least the size of the largest record */
};
struct vp_trace_page {
	__u64 end; /* end of its records, once it is full */
	char records[VP_TRACE_PAGE + VP_TRACE_SPARE];
};

struct vp_trace_cpu {
	__u64 lost; /* number of lost records */
	__u64 head; /* end of written data; written by the programs */
	__u64 busy; /* number of programs that are writing, or found one writing */
	/* Cached data of the last vCPU. */
	__u64 kvm_vcpu;
	struct vp_vmcb_memo vmcb;
	__u32 tid, vcpu;
	__u32 guest_index; /* its index among vCPUs whose guest memory is read */
	__u32 number;      /* number of the pCPU; set by user space */
	__u32 padding[4];
	__u64 tail; /* end of read data; written by user space, in a separate cache line */
	__u64 more_padding[7];
	struct vp_trace_name names[VP_TRACE_NAMES];
};

/* The last known task of a guest CPU, at the index of its vp_identity_vcpu. Used only by the vCPU
 * thread. */
struct vp_guest_run {
	__u64 count_hva;  /* address of nr_switches of its run queue; 0: unknown */
	__u64 chosen_hva; /* address of curr of its run queue */
	/* As last recorded. */
	__u64 count, chosen, task;
	__u64 checked; /* time of the last read of the count, ns */
	__u32 known;   /* it was recorded */
	__u32 lost;    /* a later record was lost */
	__u32 blind;   /* recorded as unreadable */
	__u32 padding;
};

#endif
