/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the state of every vCPU from trace records sorted by time: the same accounting as
 * bpf/account.bpf.c, by the same rules. Nothing here calls Xen. */
#ifndef VP_XEN_STATES_H
#define VP_XEN_STATES_H

#include "base/map.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "bpf/conditions_abi.h"
#include "schema/records.h"
#include "xen/buffers.h"
#include "xen/trace.h"
#include "xen/weights.h"

enum {
	VP_XEN_SLOTS = 1024, /* maximum number of vCPUs */
	VP_XEN_SLICES = 512, /* kept slices of a pCPU, for finding thieves: a power of two */
};

/* The current or last vCPU of a pCPU; an idle pCPU has no slot. */
struct vp_xen_slice {
	uint64_t begin, end;
	uint32_t slot; /* slot + 1; 0: idle */
};

struct vp_xen_pcpu {
	bool known;
	uint32_t slot; /* slot + 1 of the running vCPU; 0: idle */
	uint64_t head; /* number of slices written */
	struct vp_xen_slice slices[VP_XEN_SLICES];
};

struct vp_xen_thief {
	struct vp_thief_key key;
	struct vp_thief_cost cost;
};

struct vp_xen_old_site {
	struct vp_site_key key;
	struct vp_site_cost cost;
};

struct vp_xen_states {
	struct vp_account_vcpu *vcpus;               /* by slot */
	struct vp_account_exit *exits[VP_XEN_SLOTS]; /* VP_EXIT_REASONS, or NULL */
	struct vp_account_site *sites[VP_XEN_SLOTS]; /* VP_EXIT_SITES, or NULL */
	bool capped[VP_XEN_SLOTS]; /* offline because its domain's cap is used up */
	/* ns: the domain is gone, and last seen at that time; 0: it exists */
	uint64_t was_there[VP_XEN_SLOTS];
	struct vp_map slots; /* by domain and vCPU */
	uint32_t n_slots;    /* highest number of slots used */
	VP_VEC(uint32_t) free_slots;
	VP_VEC(struct vp_xen_pcpu) pcpus;
	struct vp_map thief_numbers;
	VP_VEC(struct vp_xen_thief) thieves;
	struct vp_map old_numbers;
	VP_VEC(struct vp_xen_old_site) old_sites;
	struct vp_account_lost lost;
	uint64_t begin;        /* CLOCK_MONOTONIC, ns; earlier records do not count */
	enum vp_vendor vendor; /* for exit reasons */
	bool with_spans;       /* keep every span in `spans` */
	VP_VEC(struct vp_vcpu_span) spans;
};

/* The number in a recording of a domain's VM; also for dom0. */
static inline uint32_t vp_xen_vm_number(uint32_t domain)
{
	return domain + 1;
}
/* A substitute for the vCPU thread's tid. */
static inline uint32_t vp_xen_tid(uint32_t domain, uint32_t vcpu)
{
	return vp_xen_vm_number(domain) << 12 | (vcpu & 0xfff);
}

void vp_xen_states_init(struct vp_xen_states *states, enum vp_vendor vendor, bool with_spans);
void vp_xen_states_deinit(struct vp_xen_states *states);
/* The vCPU running on the pCPU, as far as known; NULL: none. */
const struct vp_account_vcpu *vp_xen_states_running(const struct vp_xen_states *states,
						    uint32_t pcpu);
/* The vCPU; NULL: no accounting for it. */
const struct vp_account_vcpu *vp_xen_states_vcpu(const struct vp_xen_states *states,
						 uint32_t domain, uint32_t vcpu);
/* Its slot; VP_XEN_SLOTS: no accounting for it. */
uint32_t vp_xen_states_slot(const struct vp_xen_states *states, uint32_t domain, uint32_t vcpu);
/* The slot of the vCPU running on the pCPU; VP_XEN_SLOTS: none, or unknown. */
uint32_t vp_xen_states_running_slot(const struct vp_xen_states *states, uint32_t pcpu);
/* The pCPU's latest slices, with the vCPUs' VMs and substitutes for tids. */
void vp_xen_states_slices(const struct vp_xen_states *states, uint32_t pcpu,
			  struct vp_condition_cpu *ret);
/* The vCPU's run time up to that time, which must not be before the last record; false: no
 * accounting for it. */
bool vp_xen_states_ran(const struct vp_xen_states *states, uint32_t domain, uint32_t vcpu,
		       uint64_t time, struct vp_xen_ran *ret);
/* Whether the record is a VM exit for an interrupt. */
bool vp_xen_states_is_interrupt(const struct vp_xen_states *states,
				const struct vp_xen_record *record);
/* Starts a vCPU's accounting; `runstate`: its last runstate in Xen's trace, on that pCPU. */
void vp_xen_states_seed(struct vp_xen_states *states, uint32_t domain, uint32_t vcpu,
			enum vp_xen_runstate runstate, uint32_t pcpu, uint64_t now);
void vp_xen_states_take(struct vp_xen_states *states, const struct vp_xen_traced *traced);
/* Notes that the vCPU's domain is gone and was last seen at time `there`, ns. Later calls keep the
 * first time. */
void vp_xen_states_emit_gone(struct vp_xen_states *states, uint32_t slot, uint64_t there);
/* Ends the accounting of vCPUs of destroyed domains: at their last event, but not before the domain
 * was last seen. */
void vp_xen_states_end_gone(struct vp_xen_states *states);
/* Sets whether the domain has a cap: its vCPUs are then offline when it is used up. */
void vp_xen_states_cap(struct vp_xen_states *states, uint32_t domain, bool capped);
/* Charges the present state of the vCPU in the slot up to now. */
void vp_xen_states_charge(struct vp_xen_states *states, uint32_t slot, uint64_t now);
/* Frees the slot. */
void vp_xen_states_release(struct vp_xen_states *states, uint32_t slot);

#endif
