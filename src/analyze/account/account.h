/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exact account of the vCPUs' time (bpf/account.bpf.c), summed up over a recording or over any
 * row of its records: what each vCPU did, what its exits cost, who took its pCPU.
 */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/account/account_window.h"
#include "analyze/account/overcommit.h"
#include "analyze/common/key_set.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/account_grade.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"

struct vp_account_times {
	uint32_t vm; /* index in vms */
	uint32_t vcpu, tid;
	uint64_t wall; /* ns: the lengths of its intervals; the states sum to it */
	uint64_t states[VP_STATES];
	uint64_t exits, wakeups, preemptions, polls, poll_wasted;
	uint64_t guest_samples, user_samples; /* of the guest; of its user space */
	/* With VP_ACCOUNT_STATES also those of the thread inside and outside of KVM_RUN. */
	uint64_t kernel_samples, vmm_samples;
	uint64_t spans[VP_STATES]; /* in the window, by single states */
	uint32_t next;             /* of its VM, + 1; 0: the last */
};

/* A vCPU's exits of one reason. */
struct vp_account_cost {
	uint32_t vm, vcpu;
	uint32_t reason, vendor;
	uint64_t count, total, max; /* ns; the next six sum to total */
	uint64_t kernel, poll, vmm, stolen, blocked, waking;
	struct vp_exit_timing timing; /* of those that stand for others */
	uint64_t buckets[VP_BUCKETS];
	uint32_t next; /* of its VM */
};

/* Somebody who had a vCPU's pCPU while it wanted to run. */
struct vp_account_theft {
	uint32_t vm, vcpu;
	uint32_t kind; /* enum vp_thief_record */
	uint32_t id, owner, flags;
	uint64_t cgroup;
	char comm[VP_COMM_SIZE + 1];
	uint64_t preempted, waking, irq; /* ns, by how the vCPU lost its time */
	/* The part of `preempted` and `waking` that is overcommit
	 * (analyze/account/overcommit.h). */
	uint64_t overcommitted;
	uint64_t count;
	uint32_t next; /* of its VM */
};

/* An exit site, with its exits of one reason. */
struct vp_account_exit_site {
	uint32_t vm;
	uint32_t reason, vendor;
	uint32_t detail_kind, detail; /* enum vp_detail_kind: what it was to */
	uint64_t address;             /* as of an exit_site_address, or VP_NO_ADDRESS */
	bool known;                   /* the next two */
	uint64_t ip, as_root;
	uint64_t count, ns, last;
	uint64_t idle, stolen; /* of ns: asleep; runnable, but without the pCPU */
};

/* ns that the hypervisor and the VMM worked for exits, of all that passed. */
static inline uint64_t vp_account_cost_work(const struct vp_account_cost *cost)
{
	return cost->kernel + cost->poll + cost->vmm;
}

static inline bool vp_account_exit_site_is_device(const struct vp_account_exit_site *site)
{
	return site->detail_kind == VP_DETAIL_MMIO_READ ||
	       site->detail_kind == VP_DETAIL_MMIO_WRITE;
}

/* The VM's parts of each kind, in the order in which they came: the index of the first and of the
 * last one, plus 1; 0 if the VM has no such parts. */
struct vp_account_chain {
	uint32_t first, last;
};
struct vp_account_of_vm {
	struct vp_account_chain times, costs, thefts;
};

struct vp_account {
	vp_vms *vms; /* the caller's; VMs that only the records know are added */
	struct vp_key_set time_keys, cost_keys, theft_keys, site_keys;
	VP_VEC(struct vp_account_times) times;
	VP_VEC(struct vp_account_cost) costs;
	VP_VEC(struct vp_account_theft) thefts;
	VP_VEC(struct vp_account_exit_site) sites;
	VP_VEC(struct vp_account_of_vm) of_vms; /* by index of the VM; may be shorter */
	struct vp_map vm_of_id;                 /* all that were there at the last record */
	enum vp_account_grade grade;            /* the caller's to set before there are records */
	struct vp_map host_ticks;               /* samples of threads outside of KVM_RUN, by tid */
	/* Places' `idle` and `stolen` were recorded. */
	bool sites_have_waits;
	struct vp_account_loss lost;
	/* `window.window` is the caller's to set before there are records. */
	struct vp_account_window window;
	/* In a window the states are those of single states (vcpu_span), which are all there: the
	 * caller's, too. */
	bool by_spans;
	/* With `pcpus`, which is the caller's to set before there are records, it is worked out. */
	struct vp_overcommit overcommit;
};

/* `vms` stays the caller's and must outlive the account. */
void vp_account_init(struct vp_account *account, vp_vms *vms);
void vp_account_deinit(struct vp_account *account);
/* Takes a record of the account, or a guest_sample; others are nothing to it. */
void vp_account_take(struct vp_account *account, const struct vp_record_header *record);

/* Adds a settled account of another recording, whose VMs' numbers `ids` maps to those of `to`. Exit
 * sites are left out: their addresses have names in their own recording only. */
void vp_account_add(struct vp_account *to, const struct vp_account *from, const struct vp_map *ids);

/* After the last record: settles what concerns several of them. */
void vp_account_settle(struct vp_account *account);
/* After that, with VP_ACCOUNT_STATES: divides the time in which a vCPU ran, as its samples are. */
void vp_account_divide_running(struct vp_account *account);
/* ns that the vCPU's time in the guest may be off, as exits were sampled or as it was divided, with
 * three standard deviations; the time in the kernel, of interrupts, and of the VMM by no more. */
double vp_account_guest_error(const struct vp_account *account,
			      const struct vp_account_times *times);
/* The error that is shown of a number with that variance: three standard deviations. */
double vp_account_error(double variance);
/* After that, with a window: its exact values, or bounds. */
void vp_account_settle_window(struct vp_account *account);

/* The VM of that number, or NULL. */
const struct vp_vm *vp_account_vm(const struct vp_account *account, uint32_t id);
/* Goes through a VM's times, costs or thefts: `part` is its name in the account. */
#define vp_account_each_of(account, part, number, item)                                            \
	for (const __typeof__(*(account)->part.at) *item =                                         \
		 (number) < (account)->of_vms.count && (account)->of_vms.at[number].part.first     \
		     ? &(account)->part.at[(account)->of_vms.at[number].part.first - 1]            \
		     : NULL;                                                                       \
	     item; item = item->next ? &(account)->part.at[item->next - 1] : NULL)

/* ns below which `share` (0 to 1) of the exits were; between the bounds of a bucket a straight
 * line. */
uint64_t vp_account_quantile(const struct vp_account_cost *cost, double share);
/* Adds the exits of `from` to those of `to`. */
void vp_account_cost_add(struct vp_account_cost *to, const struct vp_account_cost *from);

/* Invariants that a correct account has. */
struct vp_account_checks {
	double worst_gap;    /* of the states' sum from wall time, percent; the worst vCPU's */
	bool sampled;        /* the next two mean something */
	double worst_sample; /* sampled share of guest time less the exact one, in points … */
	double sample_error; /* … and the bound of what chance and ticks that came late do to it */
	uint64_t exits, exits_by_reason;
	uint64_t exit_ns, part_ns; /* total of all exits, and of their parts */
	uint64_t lost_events;      /* of vCPUs without a slot: their time is missing */
	bool closes, samples_agree, exits_agree, parts_sum, all_counted;
};

/* `period_ns`: the samples' period, or 0 without samples; `missing`: the share (0 to 1) of ticks
 * that came late or never. */
void vp_account_check(const struct vp_account *account, uint64_t period_ns, double missing,
		      struct vp_account_checks *ret);

#endif
