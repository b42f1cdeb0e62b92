/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPU accounting (bpf/account.bpf.c), summed over a recording or over any sequence of its records:
 * time per state, cost of exits, thieves. */
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
	uint64_t wall; /* ns: sum of interval lengths, and of all states */
	uint64_t states[VP_STATES];
	uint64_t exits, wakeups, preemptions, polls, poll_wasted;
	/* Wakeups by latency, and the sum of their latencies, ns; of a window, those of the steps
	 * that end in it. */
	uint64_t wakes[VP_WAKE_BUCKETS], wake_ns;
	uint64_t guest_samples, user_samples; /* of the guest; of its user space */
	/* With VP_ACCOUNT_STATES also samples of the thread inside and outside of KVM_RUN. */
	uint64_t kernel_samples, vmm_samples;
	uint64_t spans[VP_STATES]; /* time per state in the window, from vcpu_span records */
	uint32_t next;             /* next one of its VM, + 1; 0: the last */
};

/* A vCPU's exits for one reason. */
struct vp_account_cost {
	uint32_t vm, vcpu;
	uint32_t reason, vendor;
	uint64_t count, total, max; /* ns; the six fields after these sum to total */
	uint64_t kernel, poll, vmm, stolen, blocked, waking;
	struct vp_exit_timing timing; /* timing of exits that represent others */
	uint64_t buckets[VP_BUCKETS];
	uint32_t next; /* next one of its VM */
};

/* A thief of a vCPU. */
struct vp_account_theft {
	uint32_t vm, vcpu;
	uint32_t kind; /* enum vp_thief_record */
	uint32_t id, owner, flags;
	uint64_t cgroup;
	char comm[VP_COMM_SIZE + 1];
	uint64_t preempted, waking, irq; /* ns, by state of the vCPU */
	/* Part of `preempted` and `waking` that is overcommit (analyze/account/overcommit.h). */
	uint64_t overcommitted;
	uint64_t count;
	uint32_t next; /* next one of its VM */
};

/* An exit site, with its exits for one reason. */
struct vp_account_exit_site {
	uint32_t vm;
	uint32_t reason, vendor;
	uint32_t detail_kind, detail; /* enum vp_detail_kind and its number */
	uint64_t address;             /* as in exit_site_address, or VP_NO_ADDRESS */
	bool known;                   /* the next two are valid */
	uint64_t ip, as_root;
	uint64_t count, ns, last;
	uint64_t idle, stolen; /* part of ns: asleep; runnable without the pCPU */
};

/* Total work of the hypervisor and the VMM for exits, ns. */
static inline uint64_t vp_account_cost_work(const struct vp_account_cost *cost)
{
	return cost->kernel + cost->poll + cost->vmm;
}

static inline bool vp_account_exit_site_is_device(const struct vp_account_exit_site *site)
{
	return site->detail_kind == VP_DETAIL_MMIO_READ ||
	       site->detail_kind == VP_DETAIL_MMIO_WRITE;
}

/* A VM's items of one kind, in order of insertion: index of the first and of the last one, + 1; 0:
 * none. */
struct vp_account_chain {
	uint32_t first, last;
};
struct vp_account_of_vm {
	struct vp_account_chain times, costs, thefts;
	/* Samples by mode, from vm_samples records; of a window, those of the steps that end in
	 * it. */
	uint64_t counted[VP_SAMPLE_MODES];
};

struct vp_account {
	vp_vms *vms; /* owned by the caller; VMs known only from records are added */
	struct vp_key_set time_keys, cost_keys, theft_keys, site_keys;
	VP_VEC(struct vp_account_times) times;
	VP_VEC(struct vp_account_cost) costs;
	VP_VEC(struct vp_account_theft) thefts;
	VP_VEC(struct vp_account_exit_site) sites;
	VP_VEC(struct vp_account_of_vm) of_vms; /* by VM index; may be shorter */
	struct vp_map vm_of_id;                 /* complete up to the last record */
	enum vp_account_grade grade;            /* set by the caller before the first record */
	struct vp_map host_ticks;               /* samples of threads outside of KVM_RUN, by tid */
	/* Exit sites have `idle` and `stolen`. */
	bool sites_have_waits;
	bool has_counted_samples;
	struct vp_account_loss lost;
	/* `window.window`: set by the caller before the first record. */
	struct vp_account_window window;
	/* In a window, states come from vcpu_span records, which are complete; set by the caller,
	 * too. */
	bool by_spans;
	/* Computed if `pcpus` is set by the caller before the first record. */
	struct vp_overcommit overcommit;
};

/* `vms` stays the caller's and must outlive the account. */
void vp_account_init(struct vp_account *account, vp_vms *vms);
void vp_account_deinit(struct vp_account *account);
/* Processes a record of the accounting, or a guest_sample; ignores others. */
void vp_account_take(struct vp_account *account, const struct vp_record_header *record);

/* Adds a settled account of another recording; `ids` maps its VM numbers to those of `to`. Exit
 * sites are skipped: their addresses have names only in their own recording. */
void vp_account_add(struct vp_account *to, const struct vp_account *from, const struct vp_map *ids);

/* Call after the last record: computes results that depend on several records. */
void vp_account_settle(struct vp_account *account);
/* Then, with VP_ACCOUNT_STATES: divides the running time of a vCPU in proportion to its samples. */
void vp_account_divide_running(struct vp_account *account);
/* Error of the vCPU's guest time in ns, from sampled exits or from dividing: three standard
 * deviations. It also bounds the errors of kernel, interrupted and vmm time. */
double vp_account_guest_error(const struct vp_account *account,
			      const struct vp_account_times *times);
/* The displayed error for that variance: three standard deviations. */
double vp_account_error(double variance);
/* Then, with a window: exact values, or bounds of the error. */
void vp_account_settle_window(struct vp_account *account);

/* The VM with that number, or NULL. */
const struct vp_vm *vp_account_vm(const struct vp_account *account, uint32_t id);
/* Iterates over a VM's times, costs or thefts; `part`: its name in the account. */
#define vp_account_each_of(account, part, number, item)                                            \
	for (const __typeof__(*(account)->part.at) *item =                                         \
		 (number) < (account)->of_vms.count && (account)->of_vms.at[number].part.first     \
		     ? &(account)->part.at[(account)->of_vms.at[number].part.first - 1]            \
		     : NULL;                                                                       \
	     item; item = item->next ? &(account)->part.at[item->next - 1] : NULL)

/* Quantile `share` (0 to 1) of exit times in ns, interpolated linearly within a bucket. */
uint64_t vp_account_quantile(const struct vp_account_cost *cost, double share);
/* Adds the exits of `from` to `to`. */
void vp_account_cost_add(struct vp_account_cost *to, const struct vp_account_cost *from);

/* Consistency checks. */
struct vp_account_checks {
	double worst_gap;    /* difference between the sum of states and wall time, percent, of the
				worst vCPU */
	bool sampled;        /* the next two are valid */
	double worst_sample; /* sampled share of guest time minus the accounted one, percentage
				points … */
	double sample_error; /* … and its expected maximum from sampling and late ticks */
	uint64_t exits, exits_by_reason;
	uint64_t exit_ns, part_ns; /* total of all exits, and sum of their parts */
	uint64_t lost_events;      /* events of vCPUs without a slot, whose time is missing */
	bool closes, samples_agree, exits_agree, parts_sum, all_counted;
};

/* `period_ns`: sampling period, or 0 without samples; `missing`: share (0 to 1) of late or missed
 * ticks. */
void vp_account_check(const struct vp_account *account, uint64_t period_ns, double missing,
		      struct vp_account_checks *ret);

#endif
