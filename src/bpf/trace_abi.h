/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of each pCPU in trace.bpf.c: shared with collect/programs/tracer.c. */
#ifndef VP_BPF_TRACE_ABI_H
#define VP_BPF_TRACE_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/trace_records.h"

/* A thread whose name the pCPU's stream has had; of those with the same slot, the last. */
struct vp_trace_name {
	__u32 tid;
	__u32 digest; /* of the name: it may change */
};

/* A pCPU's ring is an array of pages in memory that user space maps. `head` and `tail` count
 * bytes, VP_TRACE_PAGE for each page. Only the pCPU's programs write, one at a time; only user
 * space reads. A record that starts in a page may end beyond its VP_TRACE_PAGE bytes: the next
 * one starts the next page, and `end` is the end of this one's. A page is reused when all of it
 * has been read. */
enum {
	VP_TRACE_PAGE = 64 << 10,
	VP_TRACE_SPARE = 128, /* at least what the largest record takes */
};
struct vp_trace_page {
	__u64 end; /* of its records, once it is full */
	char records[VP_TRACE_PAGE + VP_TRACE_SPARE];
};

struct vp_trace_cpu {
	__u64 lost; /* records that found no room */
	__u64 head; /* of what was written; the programs' */
	__u64 busy; /* programs that write, or found that one does */
	/* The vCPU that was here last. */
	__u64 kvm_vcpu;
	struct vp_vmcb_memo vmcb;
	__u32 tid, vcpu;
	__u32 guest_index; /* of it, among those whose guest's memory is read */
	__u32 number;      /* the pCPU's; set by user space */
	__u32 padding[4];
	__u64 tail; /* of what was read; user space's, on a cache line of its own */
	__u64 more_padding[7];
	struct vp_trace_name names[VP_TRACE_NAMES];
};

/* The last known task of a guest CPU, at the slot of its vp_identity_vcpu. Only the vCPU thread
 * uses it. */
struct vp_guest_run {
	__u64 count_hva;  /* of its run queue's nr_switches; 0: not known */
	__u64 chosen_hva; /* of its curr */
	/* As told last. */
	__u64 count, chosen, task;
	__u64 checked; /* when the count was read last, ns */
	__u32 known;   /* it was recorded */
	__u32 lost;    /* and then something was not */
	__u32 blind;   /* told that it cannot be read */
	__u32 padding;
};

#endif
