/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What bpf/xen_pmu.bpf.c tells user space, in its ring. */
#ifndef VP_BPF_XEN_PMU_ABI_H
#define VP_BPF_XEN_PMU_ABI_H

/* What Xen says of an interrupt of a counter (struct xen_pmu_data of its public/pmu.h). */
struct vp_xen_pmu_place {
	__u64 time; /* CLOCK_MONOTONIC, ns, when dom0 was told */
	__u64 ip;
	__u32 domain; /* or one of those that Xen reserves */
	__u32 vcpu, pcpu;
	__u32 reserved;
};

/* What stands in the program where the loader puts the kernel's variable xenpmu_shared: see
 * host/kernel_variable.h. */
#define VP_XENPMU_SHARED 0x787066786e706d75
#define VP_XENPMU_SHARED_TEXT "0x787066786e706d75"

#endif
