/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters that only grow, of each VM that runs: sums of the accounts of all intervals so far, in
 * bounded memory. For a monitoring system, which asks now and then and takes differences.
 */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_COUNTERS_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_COUNTERS_H

#include "analyze/account/account.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"

enum {
	VP_COUNTED_REASONS = 12, /* exit reasons with counters of their own, per VM … */
	VP_COUNTED_THIEVES = 8,  /* … and thieves; the rest counts for "other" */
	VP_COUNTED_ABSENT = 3,   /* intervals without records after which a VM is dropped */
	VP_COUNTED_NAME = 64
};

struct vp_counted_vcpu {
	uint32_t number;
	uint64_t ns[VP_STATES];
	uint64_t wakeups, preemptions, poll_wasted_ns;
};

struct vp_counted_reason {
	char name[VP_EXIT_NAME_SIZE]; /* as vp_exit_reason_name() has it */
	uint64_t count, ns;           /* ns that the hypervisor and the VMM worked */
};

struct vp_counted_thief {
	const char *kind;           /* "vm", "task", "interrupt"; of the last one "" */
	char name[VP_COUNTED_NAME]; /* of the VM, the task, the interrupt */
	uint64_t ns;
};

/*
 * The counters of a slot are one thing's for as long as the VM runs, so that differences are right:
 * a reason or a thief gets a free slot when it first takes VP_COUNTED_LEAST_NS in an interval. The
 * slot after the last is "other".
 */
#define VP_COUNTED_LEAST_NS 1000000ULL
struct vp_counted_vm {
	uint32_t id; /* vp_vm_id() */
	unsigned absent;
	VP_VEC(struct vp_counted_vcpu) vcpus;
	size_t n_reasons, n_thieves;
	struct vp_counted_reason reasons[VP_COUNTED_REASONS + 1];
	struct vp_counted_thief thieves[VP_COUNTED_THIEVES + 1];
};

struct vp_account_counters {
	VP_VEC(struct vp_counted_vm) vms;
	uint64_t intervals;
	uint64_t lost;      /* vCPUs, thieves and places that the account had no room for */
	uint64_t lost_then; /* … as the recorder had counted them last */
};

/* Adds the account of the interval that has just ended. */
void vp_account_counters_add(struct vp_account_counters *counters,
			     const struct vp_account *account);
void vp_account_counters_deinit(struct vp_account_counters *counters);

/* ns in which the vCPU wanted to run and did not: the kernel's run_delay, and interrupts. */
uint64_t vp_counted_vcpu_stolen(const struct vp_counted_vcpu *vcpu);

#endif
