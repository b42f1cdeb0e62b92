/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen dom0: the interrupted location of a vCPU of any domain at a counter's overflow. Xen writes
 * it to a page per dom0 vCPU and sends an interrupt to dom0's kernel (arch/x86/xen/pmu.c), where
 * it is a perf event. The program runs at that event's overflow, on the vCPU that owns the page. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/xen_pmu_abi.h"

struct xen_pmu_regs {
	__u64 ip;
} __attribute__((preserve_access_index));

struct xen_pmu_arch {
	union {
		struct xen_pmu_regs regs;
	} r;
} __attribute__((preserve_access_index));

struct xen_pmu_data {
	__u32 vcpu_id, pcpu_id;
	__u16 domain_id;
	struct xen_pmu_arch pmu;
} __attribute__((preserve_access_index));

struct xenpmu {
	struct xen_pmu_data *xenpmu_data;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} samples SEC(".maps");

__u64 lost = 0; /* lost in a full ring */

SEC("perf_event")
int take_pmu_sample(void *context)
{
	const struct xenpmu *shared;
	struct xen_pmu_data *page;
	struct vp_xen_pmu_sample *sample;

	asm volatile("%0 = " VP_XENPMU_SHARED_TEXT " ll" : "=r"(shared));
	shared = bpf_this_cpu_ptr(shared);
	page = BPF_CORE_READ(shared, xenpmu_data);
	if (!page)
		return 0;
	sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
	if (!sample) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	sample->time = bpf_ktime_get_ns();
	sample->ip = BPF_CORE_READ(page, pmu.r.regs.ip);
	sample->domain = BPF_CORE_READ(page, domain_id);
	sample->vcpu = BPF_CORE_READ(page, vcpu_id);
	sample->pcpu = BPF_CORE_READ(page, pcpu_id);
	sample->reserved = 0;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
