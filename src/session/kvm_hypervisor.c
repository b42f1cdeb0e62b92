/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_access.h"
#include "collect/programs/account_source.h"
#include "collect/programs/conditions.h"
#include "collect/programs/hypervisor.h"

#include "host/host.h"
#include "host/vm_scan.h"
#include "session/probe.h"

static const struct vp_condition_ops *kvm_conditions(void)
{
	static const struct vp_condition_ops ops = {.open = vp_condition_watch_open,
						    .add = vp_condition_watch_add,
						    .arm = vp_condition_watch_arm,
						    .fd = vp_condition_watch_fd,
						    .take = vp_condition_watch_take,
						    .dropped = vp_condition_watch_dropped,
						    .free = vp_condition_watch_free};

	return &ops;
}

const struct vp_hypervisor *vp_hypervisor_kvm(void)
{
	static const struct vp_hypervisor kvm = {
	    .name = "KVM",
	    .vendor = vp_host_vendor,
	    .scan = vp_vm_scan,
	    .scan_one = vp_vm_scan_process,
	    .scan_new = vp_vm_scan_new,
	    .read_vcpus = vp_vm_read_vcpus,
	    .has_exited = vp_vm_has_exited,
	    .is_gone = vp_vm_is_gone,
	    .read_placements = vp_vms_read_pcpus,
	    .generation = vp_vm_generation,
	    .has_processes = true,
	    .guest_access = vp_guest_access_kvm,
	    .account = vp_account_source_ops,
	    .conditions = kvm_conditions,
	    .source = vp_source,
	};

	return &kvm;
}
