/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restrictions of this host's kernel, and events that would harm its VMs: checked in advance, so
 * that errors name the reason. */
#ifndef VP_HOST_HOST_RULES_H
#define VP_HOST_HOST_RULES_H

#include <linux/perf_event.h>
#include <stdbool.h>

/* Lockdown mode of the kernel (kernel_lockdown(7)): "integrity", "confidentiality"; NULL: not
 * locked down. `sysfs`: "/sys". */
const char *vp_host_lockdown(const char *sysfs);
/*
 * Name of the kernel's clock source, to be freed, if it is not the TSC that guests and Xen read,
 * for example "kvm-clock" or "hpet". Then TSCs of two pCPUs may differ, and times converted from
 * them are wrong by the difference. NULL: it is the TSC (or Xen's clock, which is derived from the
 * TSC), or unknown.
 */
char *vp_host_other_clock(const char *sysfs);
/*
 * Whether KVM passes the whole PMU to guests (enable_mediated_pmu of kvm_intel and kvm_amd, Linux
 * 7.0, 860bcb1021f5; off by default). Then events that count guests exclude VMs: while one exists,
 * creating the first vCPU of a VM fails (EBUSY).
 */
bool vp_host_has_mediated_pmu(const char *sysfs);
/* Whether this event would keep VMs from starting on this host. */
bool vp_host_event_blocks_vms(const char *sysfs, const struct perf_event_attr *attr);

#endif
