/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States of vCPUs, sources of interrupts and buckets of times, as the records of the account have
 * them: shared by the programs in the kernel, which count by them, and those that read a recording.
 */
#ifndef VP_SCHEMA_ACCOUNT_TERMS_H
#define VP_SCHEMA_ACCOUNT_TERMS_H

#include <linux/types.h>

/* State of a vCPU: exactly one at every instant. The order is that of vcpu_account's fields. */
enum vp_state {
	VP_STATE_GUEST,
	VP_STATE_KERNEL, /* the host kernel handles an exit */
	VP_STATE_POLL,
	VP_STATE_VMM,     /* in the VMM: from the end of KVM_RUN to the next entry */
	VP_STATE_HALTED,  /* its thread sleeps after HLT or MWAIT */
	VP_STATE_WAITING, /* its thread sleeps for another reason */
	VP_STATE_WAKING,  /* woken, and has no pCPU yet */
	VP_STATE_PREEMPTED,
	VP_STATE_THROTTLED, /* runnable, but its cgroup's CPU quota is used up */
	VP_STATE_IRQ,       /* an interrupt of the host has its pCPU */
	VP_STATES,
	VP_STATE_UNKNOWN = VP_STATES, /* unknown until its first event */
	VP_STATE_GONE,
	VP_STATE_ROOM = 16
};

/* Interrupt sources with a counter in each vCPU; above VP_IRQ_DEVICE: that and the number. */
enum vp_irq_source {
	VP_IRQ_SOFT = 0, /* and the nine after it */
	VP_IRQ_LOCAL_TIMER = 10,
	VP_IRQ_RESCHEDULE,
	VP_IRQ_CALL_FUNCTION,
	VP_IRQ_CALL_FUNCTION_SINGLE,
	VP_IRQ_WORK,
	VP_IRQ_SOURCES = 16,
	VP_IRQ_DEVICE = 0x10000
};

enum {
	/*
	 * Buckets of a time: four to each power of two from 16 ns on; 0 to 3 are 4 ns each. The
	 * last takes all from 2^40 ns (18 minutes) on.
	 */
	VP_BUCKET_FIRST = 4,
	VP_BUCKETS = 4 * (40 - VP_BUCKET_FIRST + 1) + 1
};

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

/* The least time that falls into the bucket. */
static inline __u64 vp_bucket_begin(__u32 bucket)
{
	__u32 power = bucket / 4 + VP_BUCKET_FIRST - 1;

	return bucket < 4 ? bucket * 4 : (4ULL + bucket % 4) << (power - 2);
}

#endif
