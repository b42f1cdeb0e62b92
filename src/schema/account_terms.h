/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of vCPUs, interrupt sources and histogram buckets of the accounting records; shared by the
 * BPF programs and the readers of recordings. */
#ifndef VP_SCHEMA_ACCOUNT_TERMS_H
#define VP_SCHEMA_ACCOUNT_TERMS_H

#include <linux/types.h>

/* State of a vCPU: exactly one at every instant. The order is that of vcpu_account's fields. */
enum vp_state {
	VP_STATE_GUEST,
	VP_STATE_KERNEL, /* the host kernel handles an exit */
	VP_STATE_POLL,
	VP_STATE_VMM, /* user space of the VMM: from the return of KVM_RUN to the next VM entry */
	VP_STATE_HALTED,  /* the vCPU thread sleeps after HLT or MWAIT */
	VP_STATE_WAITING, /* the vCPU thread sleeps for another reason */
	VP_STATE_WAKING,  /* woken, not yet running */
	VP_STATE_PREEMPTED,
	VP_STATE_THROTTLED, /* runnable, but its cgroup's CPU quota is used up */
	VP_STATE_IRQ,       /* a host interrupt has the pCPU */
	VP_STATES,
	VP_STATE_UNKNOWN = VP_STATES, /* unknown until its first event */
	VP_STATE_GONE,
	VP_STATE_ROOM = 16
};

/* Interrupt sources with a counter per vCPU; from VP_IRQ_DEVICE on: VP_IRQ_DEVICE + IRQ number. */
enum vp_irq_source {
	VP_IRQ_SOFT = 0, /* and nine more, one per softirq */
	VP_IRQ_LOCAL_TIMER = 10,
	VP_IRQ_RESCHEDULE,
	VP_IRQ_CALL_FUNCTION,
	VP_IRQ_CALL_FUNCTION_SINGLE,
	VP_IRQ_WORK,
	VP_IRQ_SOURCES = 16,
	VP_IRQ_DEVICE = 0x10000
};

enum {
	/* Histogram buckets of times: four per power of two from 16 ns; 0 to 3 are 4 ns each. The
	 * last one has all times from 2^40 ns (18 minutes). */
	VP_BUCKET_FIRST = 4,
	VP_BUCKETS = 4 * (40 - VP_BUCKET_FIRST + 1) + 1
};

/* Modes of a vCPU's samples: in the guest, and in the host inside KVM_RUN. */
enum vp_sample_mode {
	VP_SAMPLE_GUEST_USER,
	VP_SAMPLE_GUEST_KERNEL,
	VP_SAMPLE_HOST,
	VP_SAMPLE_MODES
};

/* Histogram buckets of wakeup latencies; the last one has all longer ones. */
enum { VP_WAKE_BUCKETS = 10, VP_WAKE_ROOM = 16 };

/* The largest latency of a bucket but the last one, ns. */
static inline __attribute__((always_inline)) __u64 vp_wake_bound(__u32 bucket)
{
	static const __u64 bounds[VP_WAKE_BUCKETS - 1] = {
	    10000, 50000, 100000, 500000, 1000000, 5000000, 10000000, 50000000, 100000000};

	return bounds[bucket];
}

static inline __attribute__((always_inline)) __u32 vp_wake_bucket_of(__u64 ns)
{
	__u32 bucket = 0;

	for (__u32 i = 0; i < VP_WAKE_BUCKETS - 1; i++)
		bucket += ns > vp_wake_bound(i);
	return bucket;
}

static inline __attribute__((always_inline)) __u32 vp_bucket_of(__u64 ns)
{
	__u64 rest = ns;
	__u32 power = 0;

	if (ns < 1 << VP_BUCKET_FIRST)
		return (__u32)ns >> 2;
	if (ns >> 40)
		return VP_BUCKETS - 1;
	if (rest >> 32) {
		rest >>= 32;
		power += 32;
	}
	if (rest >> 16) {
		rest >>= 16;
		power += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		power += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		power += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		power += 2;
	}
	power += rest >> 1;
	return (power - VP_BUCKET_FIRST + 1) * 4 + ((__u32)(ns >> (power - 2)) & 3);
}

/* Lower bound of the bucket, ns. */
static inline __u64 vp_bucket_begin(__u32 bucket)
{
	__u32 power = bucket / 4 + VP_BUCKET_FIRST - 1;

	return bucket < 4 ? bucket * 4 : (4ULL + bucket % 4) << (power - 2);
}

#endif
