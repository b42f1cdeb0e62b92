/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monotonic counters per running VM: sums of the accounts of all intervals so far, in bounded
 * memory. For monitoring systems, which poll them and compute differences. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_COUNTERS_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_COUNTERS_H

#include "analyze/account/account.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"

enum {
	VP_COUNTED_REASONS = 7, /* maximum of exit reasons with their own counters, per VM … */
	VP_COUNTED_THIEVES = 7, /* … and of thieves; the rest is counted as "other" */
	VP_COUNTED_ABSENT = 3,  /* a VM is dropped after that many intervals without records */
	VP_COUNTED_NAME = 64,
	VP_COUNTED_RECORDING = 32 /* names of recordings in a store */
};

/* The latest interval in which a counter of steal increased. */
struct vp_counted_moment {
	uint64_t ns, realtime;                /* increase; end of the interval */
	char recording[VP_COUNTED_RECORDING]; /* that has the interval; "": none */
};

struct vp_counted_vcpu {
	uint32_t number;
	uint64_t ns[VP_STATES];
	uint64_t wakeups, preemptions, poll_wasted_ns;
	struct vp_counted_moment stolen;
};

struct vp_counted_reason {
	char name[VP_EXIT_NAME_SIZE]; /* from vp_exit_reason_name() */
	uint64_t count, ns;           /* ns of work of the hypervisor and the VMM */
};

struct vp_counted_thief {
	const char *kind;           /* "vm", "task", "interrupt"; "" for "other" */
	char name[VP_COUNTED_NAME]; /* name of the VM, task or interrupt */
	uint64_t ns;
	struct vp_counted_moment stolen;
};

/*
 * A slot of counters belongs to one reason or thief as long as the VM runs, so that differences are
 * valid. A free slot is assigned when a reason or thief takes VP_COUNTED_LEAST_NS in an interval.
 * The extra slot at the end is "other".
 */
#define VP_COUNTED_LEAST_NS 1000000ULL
struct vp_counted_vm {
	uint32_t id; /* vp_vm_id() */
	unsigned absent;
	VP_VEC(struct vp_counted_vcpu) vcpus;
	uint64_t wakes[VP_WAKE_BUCKETS], wake_ns; /* wakeup latencies of its vCPUs */
	uint64_t samples[VP_SAMPLE_MODES];
	size_t n_reasons, n_thieves;
	struct vp_counted_reason reasons[VP_COUNTED_REASONS + 1];
	struct vp_counted_thief thieves[VP_COUNTED_THIEVES + 1];
};

struct vp_account_counters {
	VP_VEC(struct vp_counted_vm) vms;
	uint64_t intervals;
	bool has_samples; /* the recorder takes samples, and counts them */
	uint64_t lost;    /* vCPUs, thieves and exit sites for which the accounting had no space */
	uint64_t lost_then; /* … the recorder's previous count */
	/* The next interval, set by the caller: name of its recording, or NULL, and its end. */
	const char *recording;
	uint64_t realtime;
};

/* Adds the account of the interval that has just ended. */
void vp_account_counters_add(struct vp_account_counters *counters,
			     const struct vp_account *account);
/* The VM runs, with or without records: it is not dropped. */
void vp_account_counters_note(struct vp_account_counters *counters, uint32_t id);
void vp_account_counters_deinit(struct vp_account_counters *counters);

/* Steal in ns: the kernel's run_delay, plus interrupts. */
uint64_t vp_counted_vcpu_stolen(const struct vp_counted_vcpu *vcpu);

#endif
