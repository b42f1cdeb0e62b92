/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restrictions of this host's kernel, and events that would harm its VMs: checked before anything
 * is tried, so that errors name the reason. */
#ifndef VP_HOST_HOST_RULES_H
#define VP_HOST_HOST_RULES_H

#include <linux/perf_event.h>
#include <stdbool.h>

/* How the kernel is locked down (kernel_lockdown(7)): "integrity", "confidentiality"; NULL: it is
 * not. `sysfs` is "/sys". */
const char *vp_host_lockdown(const char *sysfs);
/* The name of the kernel's clock source if it is not the counter that guests and Xen read, such as
 * "kvm-clock" or "hpet": then the counters of two pCPUs may differ, and times that are converted
 * from them are off by that much. NULL: it is this counter, or not known. To be freed. Xen's clock
 * is derived from the counter by Xen. */
char *vp_host_other_clock(const char *sysfs);
/*
 * Whether KVM hands the whole PMU to guests (enable_mediated_pmu of kvm_intel and kvm_amd,
 * Linux 7.0, 860bcb1021f5; off by default). Then an event that counts guests, too, and VMs exclude
 * each other: while it exists, a VM's first vCPU cannot be made (EBUSY).
 */
bool vp_host_has_mediated_pmu(const char *sysfs);
/* Whether the event is such a one on this host. */
bool vp_host_event_blocks_vms(const char *sysfs, const struct perf_event_attr *attr);

#endif
