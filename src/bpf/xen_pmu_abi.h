/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of bpf/xen_pmu.bpf.c to user space. */
#ifndef VP_BPF_XEN_PMU_ABI_H
#define VP_BPF_XEN_PMU_ABI_H

/* Data of a counter interrupt from Xen (struct xen_pmu_data of its public/pmu.h). */
struct vp_xen_pmu_sample {
	__u64 time; /* CLOCK_MONOTONIC, ns, at the event in dom0 */
	__u64 ip;
	__u32 domain; /* or a reserved id of Xen */
	__u32 vcpu, pcpu;
	__u32 reserved;
};

/* Placeholder immediate that the loader patches with the address of xenpmu_shared: see
 * host/kernel_variable.h. */
#define VP_XENPMU_SHARED 0x787066786e706d75
#define VP_XENPMU_SHARED_TEXT "0x787066786e706d75"

#endif
