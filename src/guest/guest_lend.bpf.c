/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At this kernel's context switches, attributes the counts that the host publishes per vCPU to
 * client threads. Loaded while a host lends counters, attached while there are clients. */
#include <linux/bpf.h>

#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

#include "guest/lend_command.h"
#include "protocol/lent.h"

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
	__uint(max_entries, 2); /* one per CPU and an extra one: sized by the loader */
	__type(key, __u32);
	__type(value, struct vp_lent_cell);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries,
	       VP_LENT_THREADS + 1); /* and one per CPU for parts of a run: sized by the loader */
	__type(key, __u32);
	__type(value, struct vp_lent_thread);
} threads SEC(".maps");

/* Thread id -> index in the above. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_LENT_THREADS);
	__type(key, __u32);
	__type(value, __u32);
} indices SEC(".maps");

/* The parent of a thread. */
struct parent_ref {
	__u32 index, born;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_LEND_MAX_ADOPTED);
	__type(key, __u32);
	__type(value, struct parent_ref);
} inherited_from SEC(".maps");

/* The agent's process, whose exit ends the lending, and the number of CPUs. */
unsigned int owner = 0;
unsigned int n_cpus = 0;
/* A register of an emulated device: reading it causes a VM exit. */
unsigned long long device = 0;

#ifdef __TARGET_ARCH_x86
enum fixed_addresses___own { FIX_IO_APIC_BASE_0 = 0 };

/* The kernel's mapping of the IOAPIC (arch/x86/include/asm/fixmap.h: FIXADDR_TOP). */
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

/* Whether it is the interrupt controller's distributor. Its driver stores the address at the
 * start of its private data; register PIDR2 (GICv3: at 0xffe8, GICv2: at 0xfe8) has the
 * architecture version. Reading the first register has no side effects. */
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

/* Causes a VM exit: the host publishes at the next entry. */
static __always_inline void guest_lend_force_exit(void)
{
	__u32 ignored;

	bpf_probe_read_kernel(&ignored, sizeof(ignored), (void *)device_address());
}

static __always_inline struct vp_lent_thread *guest_lend_thread_of(__u32 tid)
{
	__u32 *index = bpf_map_lookup_elem(&indices, &tid);

	return index ? bpf_map_lookup_elem(&threads, index) : 0;
}

static __always_inline void guest_lend_take_out(struct vp_lent_thread *thread,
						const struct vp_lent_cell *cell)
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

static __always_inline void guest_lend_take_in(struct vp_lent_thread *thread,
					       const struct vp_lent_cell *cell, __u32 cpu)
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

/* Makes the host publish; false: it did not. */
static __always_inline bool guest_lend_publish(volatile struct vp_lent_cell *cell)
{
	__u64 before = cell->sequence;

	guest_lend_force_exit();
	return cell->sequence != before;
}

/* The parent that a thread counts for; NULL: none, or no longer counted. */
static __always_inline struct vp_lent_thread *parent_of(const struct parent_ref *parent_ref)
{
	__u32 index = parent_ref->index;
	struct vp_lent_thread *parent = bpf_map_lookup_elem(&threads, &index);

	return parent && parent->inherits && parent->born == parent_ref->born ? parent : 0;
}

static __always_inline struct vp_lent_run *run_of(__u32 cpu)
{
	__u32 index = VP_LENT_THREADS + cpu;

	return bpf_map_lookup_elem(&threads, &index);
}

/* A child leaves the CPU, whose cell is up to date. */
static __always_inline void end_run(__u32 cpu, const struct vp_lent_cell *cell,
				    const struct parent_ref *parent_ref, bool stale)
{
	struct vp_lent_thread *parent = parent_of(parent_ref);
	struct vp_lent_run *run = run_of(cpu);

	if (!run || !run->runs)
		return;
	run->sequence++;
	barrier();
	if (parent)
		for (int i = 0; i < VP_LENT_EVENTS; i++)
			__sync_fetch_and_add(&parent->children[i], cell->counts[i] - run->start[i]);
	run->runs = false;
	barrier();
	run->sequence++;
	if (parent && stale)
		__sync_fetch_and_add(&parent->missed, 1);
}

static __always_inline void begin_run(__u32 cpu, const struct vp_lent_cell *cell,
				      const struct parent_ref *parent_ref, bool stale)
{
	struct vp_lent_thread *parent = parent_of(parent_ref);
	struct vp_lent_run *run = run_of(cpu);

	if (!parent || !run)
		return;
	run->sequence++;
	barrier();
	for (int i = 0; i < VP_LENT_EVENTS; i++)
		run->start[i] = cell->counts[i];
	run->index = parent_ref->index;
	run->born = parent_ref->born;
	run->runs = true;
	barrier();
	run->sequence++;
	if (stale)
		__sync_fetch_and_add(&parent->missed, 1);
}

SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *prev = (struct task_struct *)context->args[1];
	struct task_struct *next = (struct task_struct *)context->args[2];
	__u32 leaving = BPF_CORE_READ(prev, pid), coming = BPF_CORE_READ(next, pid);
	struct vp_lent_thread *leaves = guest_lend_thread_of(leaving);
	struct vp_lent_thread *comes = guest_lend_thread_of(coming);
	struct parent_ref *leaves_from = bpf_map_lookup_elem(&inherited_from, &leaving);
	struct parent_ref *comes_from = bpf_map_lookup_elem(&inherited_from, &coming);
	__u32 cpu = bpf_get_smp_processor_id();
	volatile struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);
	bool concerns = false;

	/* The verifier rejects a pointer merged from two branches. */
	if (leaves)
		concerns = true;
	barrier_var(concerns);
	if (comes)
		concerns = true;
	barrier_var(concerns);
	if (leaves_from)
		concerns = true;
	barrier_var(concerns);
	if (comes_from)
		concerns = true;
	barrier_var(concerns);
	if (!concerns || !cell)
		return 0;
	bool stale = !guest_lend_publish(cell);
	if (leaves) {
		leaves->stale += stale;
		guest_lend_take_out(leaves, (struct vp_lent_cell *)cell);
	}
	if (comes) {
		comes->stale += stale;
		guest_lend_take_in(comes, (struct vp_lent_cell *)cell, cpu);
	}
	if (leaves_from)
		end_run(cpu, (struct vp_lent_cell *)cell, leaves_from, stale);
	if (comes_from)
		begin_run(cpu, (struct vp_lent_cell *)cell, comes_from, stale);
	return 0;
}

/* For clients on processors without an unprivileged instruction that causes a VM exit. */
SEC("socket")
int on_packet(void *context)
{
	guest_lend_force_exit();
	return 0; /* drops the packet */
}

static __always_inline void set_markers(__u64 marker)
{
	for (__u32 i = 0; i < VP_LEND_MAX_CPUS && i < n_cpus; i++) {
		__u32 cpu = i;
		struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);
		if (cell)
			cell->marker = marker;
	}
}

/* Updates the running thread's counts; NULL: not a client's thread. */
static __always_inline struct vp_lent_thread *settle_current(void)
{
	struct vp_lent_thread *thread = guest_lend_thread_of((__u32)bpf_get_current_pid_tgid());
	__u32 cpu = bpf_get_smp_processor_id();
	volatile struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);

	if (!thread || !cell || thread->state != VP_LENT_RUNNING)
		return 0;
	thread->stale += !guest_lend_publish(cell);
	guest_lend_take_out(thread, (struct vp_lent_cell *)cell);
	return thread;
}

/* execve() in another thread of a process gives that thread the id of the first one. */
static __always_inline void rename_adopted(__u32 before)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct parent_ref *parent_ref =
	    before != tid ? bpf_map_lookup_elem(&inherited_from, &before) : 0;
	struct parent_ref copy;

	if (!parent_ref)
		return;
	copy = *parent_ref;
	bpf_map_update_elem(&inherited_from, &tid, &copy, BPF_ANY);
	bpf_map_delete_elem(&inherited_from, &before);
}

/* A client may count a program from its execve() on. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *context)
{
	rename_adopted((__u32)context->args[1]);
	struct vp_lent_thread *thread = settle_current();
	__u32 cpu = bpf_get_smp_processor_id();
	struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);

	if (!thread || !cell)
		return 0;
	if (!thread->executed++) {
		__builtin_memcpy(thread->at_exec, thread->base, sizeof(thread->at_exec));
		thread->children_at_exec = thread->n_children;
	}
	guest_lend_take_in(thread, cell, cpu);
	return 0;
}

static __always_inline void add_child(__u32 child, const struct parent_ref *parent_ref)
{
	struct vp_lent_thread *parent = parent_of(parent_ref);

	if (!parent)
		return;
	if (bpf_map_update_elem(&inherited_from, &child, parent_ref, BPF_ANY))
		__sync_fetch_and_add(&parent->missed, 1);
	else
		__sync_fetch_and_add(&parent->live, 1);
}

/* Children of a counted thread are counted for their parent if the client requested it, and so
 * are their children. The child does not run yet. */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *context)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u32 child = BPF_CORE_READ((struct task_struct *)context->args[1], pid);
	struct parent_ref *inherited = bpf_map_lookup_elem(&inherited_from, &tid);
	__u32 *index = bpf_map_lookup_elem(&indices, &tid);
	struct vp_lent_thread *thread = index ? bpf_map_lookup_elem(&threads, index) : 0;
	struct parent_ref own = {};

	if (thread) {
		thread->n_children++;
		own.index = *index;
		own.born = thread->born;
	}
	if (thread && thread->inherits) {
		struct vp_lent_thread *other = inherited ? parent_of(inherited) : 0;
		if (other) /* a thread has one parent at most */
			__sync_fetch_and_add(&other->missed, 1);
		add_child(child, &own);
	} else if (inherited) {
		own = *inherited;
		add_child(child, &own);
	}
	return 0;
}

static __always_inline void leave_children(__u32 tid)
{
	struct parent_ref *parent_ref = bpf_map_lookup_elem(&inherited_from, &tid);
	__u32 cpu = bpf_get_smp_processor_id();
	volatile struct vp_lent_cell *cell = bpf_map_lookup_elem(&cells, &cpu);

	if (!parent_ref || !cell)
		return;
	bool stale = !guest_lend_publish(cell);
	end_run(cpu, (struct vp_lent_cell *)cell, parent_ref, stale);
	struct vp_lent_thread *parent = parent_of(parent_ref);
	if (parent)
		__sync_fetch_and_add(&parent->live, -1);
	bpf_map_delete_elem(&inherited_from, &tid);
}

/* Whatever ends the owner, cells that no longer advance must not be used. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);

	settle_current();
	leave_children(tid);
	bpf_map_delete_elem(&indices, &tid);
	if (tid == owner)
		set_markers(0);
	return 0;
}

/* Its children no longer have a parent. */
static __always_inline void clear(struct vp_lent_thread *thread)
{
	__u32 born = thread->born + 1;

	__builtin_memset(thread, 0, sizeof(*thread));
	thread->born = born;
}

/* Commands of the owner that modify the maps: these are frozen, so that clients with their
 * descriptors cannot write. */
SEC("raw_tp")
int command(struct bpf_raw_tracepoint_args *context)
{
	__u32 index = (__u32)context->args[1];
	struct vp_lent_thread *thread;

	if (context->args[0] == VP_LEND_OWN) {
		/* its pid in the kernel's initial namespace */
		owner = (__u32)bpf_get_current_pid_tgid();
	} else if (context->args[0] == VP_LEND_MARK) {
		set_markers(context->args[1]);
	} else {
		thread = bpf_map_lookup_elem(&threads, &index);
		if (thread && context->args[0] == VP_LEND_CLEAR)
			clear(thread);
		else if (thread)
			thread->inherits = true;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
