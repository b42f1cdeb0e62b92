/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations of this host's hypervisor: everything that depends on the hypervisor. */
#ifndef VP_COLLECT_PROGRAMS_HYPERVISOR_H
#define VP_COLLECT_PROGRAMS_HYPERVISOR_H

#include "collect/guests/guest_access.h"
#include "collect/programs/account_source.h"
#include "collect/programs/conditions.h"
#include "collect/programs/guest_sampler.h"
#include "collect/programs/hypervisor_events.h"
#include "collect/programs/hypervisor_intervals.h"
#include "host/source.h"
#include "schema/records.h"
#include "schema/vm.h"

struct vp_hypervisor {
	const char *name;
	enum vp_vendor (*vendor)(void); /* of exit reasons */
	/* See host/vm_scan.h: finds running VMs; the VM that records call `id`; whether a VM is
	 * gone, by a cheap check, and by a reliable one. */
	struct vp_error *(*scan)(vp_vms *vms, bool at_start);
	struct vp_vm *(*scan_one)(vp_vms *vms, uint32_t id, bool at_start);
	/* Finds VMs of processes that had none; reads a VM's vCPUs again. NULL: not needed, because
	 * VMs do not depend on events to be found. */
	void (*scan_new)(vp_vms *vms, bool at_start);
	void (*read_vcpus)(struct vp_vm *vm);
	bool (*has_exited)(const struct vp_vm *vm);
	bool (*is_gone)(const struct vp_vm *vm);
	uint64_t (*generation)(void);         /* NULL: VMs must be checked one by one */
	void (*read_placements)(vp_vms *vms); /* pCPUs that the vCPUs of running VMs may use */
	uint32_t (*count_pcpus)(void); /* its online pCPUs; NULL: they are the host kernel's CPUs */
	bool has_counter_times; /* its records have TSC times, which are converted to host time */
	bool has_processes;     /* a VM's number is the pid of a host process */
	const struct vp_account_ops *(*account)(void);
	const struct vp_guest_access *(*guest_access)(void);
	/* Guest sampler, if the host's own samples do not hit guests; otherwise NULL. */
	const struct vp_guest_sampler_ops *(*guest_sampler)(void);
	/* Source of the hypervisor's own events; NULL: none. */
	const struct vp_hypervisor_events_ops *(*events)(void);
	/* Source of intervals of vCPUs, if BPF programs do not run at VM exits; otherwise NULL. */
	const struct vp_hypervisor_intervals_ops *(*intervals)(void);
	/* Triggers of a flight recorder. */
	const struct vp_condition_ops *(*conditions)(void);
	/* Data sources for `vperf check`, terminated by NULL. */
	const struct vp_source *(*source)(size_t number);
};

const struct vp_hypervisor *vp_hypervisor_kvm(void);

#endif
