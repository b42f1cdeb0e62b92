/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trace.bpf.c keeps of each pCPU: shared with collect/tracer.c. */
#ifndef VP_BPF_TRACE_H
#define VP_BPF_TRACE_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"

/* A thread whose name the pCPU's stream has had; of those with the same place, the last. */
enum { VP_TRACE_NAMES = 512 };
struct vp_trace_name {
	__u32 tid;
	__u32 digest; /* of the name: it may change */
};

struct vp_trace_cpu {
	__u64 lost;    /* records that found no room */
	__u64 written; /* bytes of records so far */
	/* The vCPU that was here last. */
	__u64 kvm_vcpu;
	struct vp_vmcb_memo vmcb;
	__u32 tid, vcpu;
	__u32 guest_place; /* of it, among those whose guest's memory is read */
	__u32 padding[3];
	struct vp_trace_name names[VP_TRACE_NAMES];
};

/*
 * What a guest's CPU ran when it was looked at last, in the place of its vp_identity_vcpu. Only the
 * vCPU's thread has to do with it.
 */
struct vp_guest_run {
	__u64 count_hva;  /* of its run queue's nr_switches; 0: not known */
	__u64 chosen_hva; /* of its curr */
	/* As told last. */
	__u64 count, chosen, task;
	__u64 checked; /* when the count was read last, ns */
	__u32 known;   /* it was told */
	__u32 lost;    /* and then something was not */
	__u32 blind;   /* told that it cannot be read */
	__u32 padding;
};

#endif
