/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps threads to vCPUs, and vCPUs to their last pCPU.
 *
 * The home of a vCPU is the pCPU on which it last ran; samples of the home are also the vCPU's
 * samples. It has no home before it first ran and after its VM ended.
 */
#ifndef VP_TIMELINE_GUESTS_H
#define VP_TIMELINE_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/recording.h"
#include "store/trace_reader.h"

struct vp_exit {
	uint32_t vendor;
	uint32_t reason;
	bool known;
};

struct vp_vcpu_state {
	uint32_t vm;     /* index in vms */
	uint32_t number; /* KVM's number */
	uint32_t tid;
	uint32_t home; /* index of a stream, or VP_NONE */
	struct vp_exit exit;
	bool blocked; /* its thread sleeps; only set by vcpu_out */
};

struct vp_guests {
	vp_vms *vms; /* owned by the caller; VMs known only from records are added */
	VP_VEC(struct vp_vcpu_state) vcpus;
	struct vp_map index_of_vm; /* key: number of the VM in the recording */
	struct vp_map vcpu_of_tid;
	struct vp_map vcpu_of_number;            /* key: vm << 32 | number */
	VP_VEC(struct vp_home_vcpus) home_vcpus; /* by stream */
	/* Counts additions, from 1: a cached look-up is valid within a generation. */
	uint32_t generation;
	uint32_t moves; /* migrations of vCPUs between pCPUs */
};

/* The vCPUs at home on one pCPU, by index. */
struct vp_home_vcpus {
	VP_VEC(uint32_t) vcpus;
};

/* `n_streams`: number of pCPU streams, each the home of some vCPUs. */
void vp_guests_init(struct vp_guests *guests, vp_vms *vms, size_t n_streams);
void vp_guests_deinit(struct vp_guests *guests);

/* The index in `vms` of the VM with recording number `vm_id` (vp_vm_id()), or VP_NONE. */
uint32_t vp_guests_vm(const struct vp_guests *guests, uint32_t vm_id);
/* The index in `vcpus` of the vCPU with thread `tid`, or VP_NONE. `owner`: number of its VM, or pid
 * of the VMM. */
uint32_t vp_guests_vcpu(const struct vp_guests *guests, uint32_t owner, uint32_t tid);
/* The same for a thread that a record names as vCPU `number` (as in KVM); added if unknown. */
uint32_t vp_guests_vcpu_add(struct vp_guests *guests, uint32_t vm_id, uint32_t tid,
			    uint32_t number);
/* Sets the home of a vCPU to `home`: index of a stream, or VP_NONE. */
void vp_guests_move_away(struct vp_guests *guests, uint32_t vcpu, uint32_t home);
static inline void vp_guests_move(struct vp_guests *guests, uint32_t vcpu, uint32_t home)
{
	if (guests->vcpus.at[vcpu].home != home)
		vp_guests_move_away(guests, vcpu, home);
}

/* Adds VMs known only from records in the trace directory, reading the whole trace: for a recording
 * that ended before its list of VMs was complete. */
struct vp_error *vp_guests_discover(const char *trace, vp_vms *vms) VP_MUST_CHECK;

/* Whether the vCPU is idle: its last exit was a halt or, if that is unknown, its thread sleeps. */
bool vp_vcpu_is_idle(const struct vp_vcpu_state *vcpu);

#endif
