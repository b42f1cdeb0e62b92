/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps, at this kernel's context switches, what of the counts that the host publishes for each
 * vCPU was each client thread's. Loaded while a host lends counters; attached while there are
 * clients.
 */
#include <linux/bpf.h>

#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

#include "guest/lend_command.h"
#include "schema/lent.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	int pid;
	int tgid;
};

struct irq_data {
	void *chip_data;
};

struct irq_desc {
	struct irq_data irq_data;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2); /* the CPUs, and nobody's: sized by the loader */
	__type(key, __u32);
	__type(value, struct vp_lent_cell);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, VP_LENT_THREADS);
	__type(key, __u32);
	__type(value, struct vp_lent_thread);
} threads SEC(".maps");

/* Thread -> its place in the above. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_LENT_THREADS);
	__type(key, __u32);
	__type(value, __u32);
} places SEC(".maps");

/* The process whose end ends the lending, and the number of CPUs. */
unsigned int owner = 0;
unsigned int n_cpus = 0;
/* A register of a device that the hypervisor emulates: reading it makes the vCPU leave the guest.
 */
unsigned long long device = 0;

#ifdef __TARGET_ARCH_x86
enum fixed_addresses___own { FIX_IO_APIC_BASE_0 = 0 };

/* Where the kernel maps the IOAPIC (arch/x86/include/asm/fixmap.h: FIXADDR_TOP). */
static __always_inline unsigned long long device_address(void)
{
	const unsigned long long top = 0xffffffffff7ff000ULL;

	return top - (bpf_core_enum_value(enum fixed_addresses___own, FIX_IO_APIC_BASE_0) << 12);
}
#else
static __always_inline unsigned long long device_address(void)
{
	return device;
}

/*
 * The interrupt controller's distributor. Its driver keeps that address in the first words of what
 * it hangs on its interrupts; its register PIDR2 (of GICv3 at 0xffe8, of GICv2 at 0xfe8) tells the
 * architecture's version. Reading the first register changes nothing.
 */
static __always_inline bool is_distributor(__u64 address, __u64 register_at, __u32 least)
{
	const __u64 kernel = 0xffff800000000000ULL;
	__u32 identity = 0;

	if (address < kernel || address & 0xfff ||
	    bpf_probe_read_kernel(&identity, sizeof(identity), (void *)(address + register_at)))
		return false;
	return (identity >> 4 & 15) >= least && (identity >> 4 & 15) <= 4;
}

SEC("kprobe/handle_percpu_devid_irq")
int BPF_KPROBE(find_device, struct irq_desc *desc)
{
	__u64 words[4] = {0};

	if (device ||
	    bpf_probe_read_kernel(words, sizeof(words), BPF_CORE_READ(desc, irq_data.chip_data)))
		return 0;
	for (int i = 0; i < 4; i++)
		if (is_distributor(words[i], 0xffe8, 3) || is_distributor(words[i], 0xfe8, 2))
			device = words[i];
	return 0;
}
#endif

/* So that the host publishes, as it does at each entry. */
static __always_inline void force_exit(void)
{
	__u32 ignored;

	bpf_probe_read_kernel(&ignored, sizeof(ignored), (void *)device_address());
}

static __always_inline struct vp_lent_thread *thread_of(__u32 tid)
{
	__u32 *place = bpf_map_lookup_elem(&places, &tid);

	return place ? bpf_map_lookup_elem(&threads, place) : 0;
}

static __always_inline void take_out(struct vp_lent_thread *thread, const struct vp_lent_cell *cell)
{
	if (thread->state != VP_LENT_RUNNING)
		return;
	thread->sequence++;
	barrier();
	for (int i = 0; i < VP_LENT_EVENTS; i++)
		thread->base[i] += cell->counts[i];
	thread->stolen_base += cell->stolen;
	thread->state = VP_LENT_OUT;
	barrier();
	thread->sequence++;
}

static __always_inline void take_in(struct vp_lent_thread *thread, const struct vp_lent_cell *cell,
				    __u32 cpu)
{
	thread->sequence++;
	barrier();
	for (int i = 0; i < VP_LENT_EVENTS; i++)
		thread->base[i] -= cell->counts[i];
	thread->stolen_base -= cell->stolen;
	thread->cpu = thread->stale ? n_cpus : cpu;
	thread->state = VP_LENT_RUNNING;
	barrier();
	thread->sequence++;
}

/* Has the host publish; false: it has not. */
static __always_inline bool publish(volatile struct vp_lent_cell *cell)
{
	__u64 before = cell->sequence;

	force_exit();
	return cell->sequence != before;
}

SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *prev = (struct task_struct *)context->args[1];
	struct task_struct *next = (struct task_struct *)context->args[2];
	struct vp_lent_thread *leaves = thread_of(BPF_CORE_READ(prev, pid));
	struct vp_lent_thread *comes = thread_of(BPF_CORE_READ(next, pid));
	__u32 cpu = bpf_get_smp_processor_id();
	volatile struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);
	bool concerns = false;

	/* The verifier has no pointer joined to another one. */
	if (leaves)
		concerns = true;
	barrier_var(concerns);
	if (comes)
		concerns = true;
	barrier_var(concerns);
	if (!concerns || !cell)
		return 0;
	bool stale = !publish(cell);
	if (leaves) {
		leaves->stale += stale;
		take_out(leaves, (struct vp_lent_cell *)cell);
	}
	if (comes) {
		comes->stale += stale;
		take_in(comes, (struct vp_lent_cell *)cell, cpu);
	}
	return 0;
}

/* For a client whose processor has no instruction that makes it leave the guest. */
SEC("socket")
int on_packet(void *context)
{
	force_exit();
	return 0; /* of the packet, nothing is kept */
}

static __always_inline void set_markers(__u64 marker)
{
	for (__u32 i = 0; i < VP_LEND_MOST_CPUS && i < n_cpus; i++) {
		__u32 cpu = i;
		struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);
		if (cell)
			cell->marker = marker;
	}
}

/* The running thread with its counts up to now; NULL: it is no client's. */
static __always_inline struct vp_lent_thread *settle_current(void)
{
	struct vp_lent_thread *thread = thread_of((__u32)bpf_get_current_pid_tgid());
	__u32 cpu = bpf_get_smp_processor_id();
	volatile struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);

	if (!thread || !cell || thread->state != VP_LENT_RUNNING)
		return 0;
	thread->stale += !publish(cell);
	take_out(thread, (struct vp_lent_cell *)cell);
	return thread;
}

/* A client may count a program from its beginning on. */
SEC("raw_tp/sched_process_exec")
int on_exec(void *context)
{
	struct vp_lent_thread *thread = settle_current();
	__u32 cpu = bpf_get_smp_processor_id();
	struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);

	if (!thread || !cell)
		return 0;
	if (!thread->executed++)
		__builtin_memcpy(thread->at_exec, thread->base, sizeof(thread->at_exec));
	take_in(thread, cell, cpu);
	return 0;
}

/* What it makes is not counted with it, and a client may want to know that. */
SEC("raw_tp/sched_process_fork")
int on_fork(void *context)
{
	struct vp_lent_thread *thread = thread_of((__u32)bpf_get_current_pid_tgid());

	if (thread)
		thread->made++;
	return 0;
}

/* Whatever ends the owner: nobody takes cells that stand still for counts. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);

	settle_current();
	bpf_map_delete_elem(&places, &tid);
	if (tid == owner)
		set_markers(0);
	return 0;
}

/*
 * What the owner does to the arrays: they are frozen, so that nobody can write who has only their
 * descriptors.
 */
SEC("raw_tp")
int command(struct bpf_raw_tracepoint_args *context)
{
	const struct vp_lent_thread nobody = {0};
	__u32 place = (__u32)context->args[1];
	struct vp_lent_thread *thread;

	if (context->args[0] == VP_LEND_OWN) {
		/* Its number here is the kernel's, whatever container it lives in. */
		owner = (__u32)bpf_get_current_pid_tgid();
	} else if (context->args[0] == VP_LEND_MARK) {
		set_markers(context->args[1]);
	} else {
		thread = bpf_map_lookup_elem(&threads, &place);
		if (thread)
			*thread = nobody;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
