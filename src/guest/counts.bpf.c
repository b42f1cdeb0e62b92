/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts this kernel's events per CPU for a host that reads the counts from guest memory. Only
 * programs for requested events are loaded, and only while a host requests them.
 *
 * Each counts at the place where the kernel increments its own counter: runqueues.nr_switches,
 * kernel_stat.irqs_sum, apic_timer_irqs, PGFAULT, PGMAJFAULT. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "guest/agent_counts.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	int tgid;
};

struct irqaction {
	struct irqaction *next;
};

#pragma clang attribute pop

/* The running kernel's values: CO-RE relocates them by name. */
enum vm_fault_reason { VM_FAULT_MAJOR = 0x4, VM_FAULT_RETRY = 0x400 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* sized by the loader */
	__type(key, __u32);
	__type(value, struct vp_counts_cell);
} cells SEC(".maps");

/* The agent's process; its exit ends the counting. */
unsigned int owner = 0;

/* No program here is interrupted by itself, so a plain addition loses nothing. */
static __always_inline void count(enum vp_guest_count event)
{
	__u32 index = bpf_get_smp_processor_id() + 1;
	struct vp_counts_cell *cell = bpf_map_lookup_elem(&cells, &index);

	if (cell)
		cell->words[event]++;
}

SEC("raw_tp/sched_switch")
int on_switch(void *context)
{
	count(VP_GUEST_switches);
	return 0;
}

/* Kernels differ in which retried faults they count twice; none is counted twice here. */
SEC("fexit/handle_mm_fault")
int BPF_PROG(on_fault, void *vma, unsigned long address, unsigned int flags, void *regs,
	     unsigned int result)
{
	if (!(result & bpf_core_enum_value(enum vm_fault_reason, VM_FAULT_RETRY)))
		count(VP_GUEST_faults);
	if (result & bpf_core_enum_value(enum vm_fault_reason, VM_FAULT_MAJOR))
		count(VP_GUEST_major_faults);
	return 0;
}

/* For kernels without fexit programs: retried faults count twice. */
SEC("kprobe/handle_mm_fault")
int on_fault_begin(void *context)
{
	count(VP_GUEST_faults);
	return 0;
}

/* Handlers that share an interrupt are called one after the other: the last one counts. */
SEC("raw_tp/irq_handler_entry")
int on_interrupt(struct bpf_raw_tracepoint_args *context)
{
	struct irqaction *action = (struct irqaction *)context->args[1];

	if (!BPF_CORE_READ(action, next))
		count(VP_GUEST_interrupts);
	return 0;
}

SEC("raw_tp/local_timer_entry")
int on_timer(void *context)
{
	count(VP_GUEST_timer);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int on_fork(void *context)
{
	__u32 index = 0;
	struct vp_counts_cell *cell = bpf_map_lookup_elem(&cells, &index);

	if (cell)
		__sync_fetch_and_add(&cell->words[VP_GUEST_forks], 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int on_system_call(void *context)
{
	count(VP_GUEST_system_calls);
	return 0;
}

/* Exiting of the owner, for any reason, ends these programs slightly later. The marker is
 * invalidated while they still count, so that the host does not use counts that no longer
 * advance. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u32 index = 0;
	struct vp_counts_cell *cell = bpf_map_lookup_elem(&cells, &index);

	if (cell && (unsigned int)BPF_CORE_READ(task, tgid) == owner)
		cell->words[VP_COUNTS_MARKER_WORD] = 0;
	return 0;
}

/* Run once by the owner: stores its pid in the kernel's initial namespace. */
SEC("raw_tp")
int own(void *context)
{
	owner = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
