/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the state of every vCPU from trace records in order of time: the same accounts as
 * bpf/account.bpf.c, by the same rules. Nothing here calls Xen. */
#ifndef VP_XEN_STATES_H
#define VP_XEN_STATES_H

#include "base/map.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "schema/records.h"
#include "xen/buffers.h"
#include "xen/trace.h"
#include "xen/weights.h"

enum {
	VP_XEN_SLOTS = 1024, /* of vCPUs at a time */
	VP_XEN_SLICES = 512, /* of a pCPU, kept for those who wait for it: a power of two */
};

/* The current or last vCPU of a pCPU: an idle one has no slot. */
struct vp_xen_slice {
	uint64_t begin, end;
	uint32_t slot; /* + 1; 0: nobody */
};

struct vp_xen_pcpu {
	bool known;
	uint32_t slot; /* of the vCPU that has it, + 1; 0: nobody */
	uint64_t head; /* slices written */
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
	bool capped[VP_XEN_SLOTS]; /* offline because its domain has used up its cap */
	/* ns: its domain is gone, and was still there then; 0: it is there */
	uint64_t was_there[VP_XEN_SLOTS];
	struct vp_map slots; /* by domain and vCPU */
	uint32_t n_slots;    /* that have ever been used */
	VP_VEC(uint32_t) free_slots;
	VP_VEC(struct vp_xen_pcpu) pcpus;
	struct vp_map thief_numbers;
	VP_VEC(struct vp_xen_thief) thieves;
	struct vp_map old_numbers;
	VP_VEC(struct vp_xen_old_site) old_sites;
	struct vp_account_lost lost;
	uint64_t begin;        /* CLOCK_MONOTONIC, ns; what was before does not count */
	enum vp_vendor vendor; /* of exits' reasons */
	bool with_spans;       /* every stretch of time is kept in `spans` */
	VP_VEC(struct vp_vcpu_span) spans;
};

/* The number in a recording of the domain's VM: dom0 has one, too. */
static inline uint32_t vp_xen_vm_number(uint32_t domain)
{
	return domain + 1;
}
/* The same of a vCPU's thread, which it does not have. */
static inline uint32_t vp_xen_tid(uint32_t domain, uint32_t vcpu)
{
	return vp_xen_vm_number(domain) << 12 | (vcpu & 0xfff);
}

void vp_xen_states_init(struct vp_xen_states *states, enum vp_vendor vendor, bool with_spans);
void vp_xen_states_deinit(struct vp_xen_states *states);
/* The vCPU that has the pCPU, as far as is known; NULL: none. */
const struct vp_account_vcpu *vp_xen_states_running(const struct vp_xen_states *states,
						    uint32_t pcpu);
/* The vCPU's pCPU time up to then, which is not before the last taken record; false: it has no
 * account. */
bool vp_xen_states_ran(const struct vp_xen_states *states, uint32_t domain, uint32_t vcpu,
		       uint64_t time, struct vp_xen_ran *ret);
/* Whether the record is of a guest that is left for an interrupt. */
bool vp_xen_states_is_interrupt(const struct vp_xen_states *states,
				const struct vp_xen_record *record);
/* Its account begins; `runstate` is its last runstate in Xen's trace, and on that pCPU. */
void vp_xen_states_seed(struct vp_xen_states *states, uint32_t domain, uint32_t vcpu,
			enum vp_xen_runstate runstate, uint32_t pcpu, uint64_t now);
void vp_xen_states_take(struct vp_xen_states *states, const struct vp_xen_traced *traced);
/* Its domain is gone; it was still there at the time `there`, ns. Told again, the first time stays.
 */
void vp_xen_states_emit_gone(struct vp_xen_states *states, uint32_t slot, uint64_t there);
/* The accounts end of vCPUs whose domain is gone: with the last thing that they did, but not before
 * the time when it was still there. */
void vp_xen_states_end_gone(struct vp_xen_states *states);
/* Whether the domain has a cap: its vCPUs are offline when it is used up. */
void vp_xen_states_cap(struct vp_xen_states *states, uint32_t domain, bool capped);
/* The slot becomes free. */
void vp_xen_states_release(struct vp_xen_states *states, uint32_t slot);

#endif
