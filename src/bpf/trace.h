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
	__u64 padding[2];
	struct vp_trace_name names[VP_TRACE_NAMES];
};

#endif
