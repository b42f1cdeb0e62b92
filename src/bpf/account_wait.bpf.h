/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of account.bpf.c: scheduler events: waits for a pCPU, and thieves. */
#ifndef VP_BPF_ACCOUNT_WAIT_H
#define VP_BPF_ACCOUNT_WAIT_H

#include "bpf/account_irq.bpf.h"

static __always_inline void add_thief(__u32 slot, __u32 kind, __u32 state, __u32 id, __u64 ns)
{
	struct vp_thief_key key = {.vcpu = slot - 1, .kind = kind, .state = state, .id = id};
	struct vp_thief_cost *cost = bpf_map_lookup_elem(&thieves, &key);

	if (cost) {
		__sync_fetch_and_add(&cost->ns, ns);
		__sync_fetch_and_add(&cost->count, 1);
		return;
	}
	struct vp_thief_cost first = {ns, 1};
	if (!bpf_map_update_elem(&thieves, &key, &first, BPF_NOEXIST))
		return;
	/* The table is full, or another pCPU was faster: the time counts, only the thief is
	 * lost. */
	__u32 row = (slot - 1) * VP_STEAL_STATES + VP_STEAL_STATE(state);
	cost = bpf_map_lookup_elem(&thieves, &key);
	if (!cost) {
		__sync_fetch_and_add(&lost.thieves, 1);
		cost = bpf_map_lookup_elem(&other_thieves, &row);
	}
	if (!cost)
		return;
	__sync_fetch_and_add(&cost->ns, ns);
	__sync_fetch_and_add(&cost->count, 1);
}

static __always_inline void set_holder(struct vp_account_slice *slice, __u32 vcpu, __u32 tid)
{
	slice->kind = vcpu ? VP_BY_VCPU : tid ? VP_BY_TASK : VP_BY_NOBODY;
	slice->id = vcpu ? vcpu - 1 : tid;
}

static __always_inline __u64 limit(__u64 time, __u64 least, __u64 most)
{
	time = time > least ? time : least;
	return time < most ? time : most;
}

/*
 * Charges the overlap of slice `index` of pCPU `number` with the time from `from` to `upper`;
 * returns its start. Global function with scalar arguments, so the verifier checks it once rather
 * than per slice and path (verification took seconds).
 */
__noinline __u64 settle_slice(__u32 number, __u32 index, __u64 waiter, __u64 from, __u64 upper)
{
	struct vp_account_cpu *cpu = bpf_map_lookup_elem(&cpus, &number);

	if (!cpu)
		return from;
	struct vp_account_slice *slice = &cpu->slices[index & (VP_SLICES - 1)];
	__u64 begin = limit(cpu->slices[(index - 1) & (VP_SLICES - 1)].end, from, upper);
	if (begin < upper)
		add_thief((__u32)waiter, slice->kind, waiter >> 32, slice->id, upper - begin);
	return begin;
}

enum { SLICES_AT_ONCE = 14 };

/* The same for several slices, newest first: the verifier then checks the loops one after the
 * other, instead of each combination of steps. */
__noinline __u64 settle_slices(__u32 number, __u32 newest, __u64 waiter, __u64 from, __u64 upper)
{
	for (__u32 i = 0; i < SLICES_AT_ONCE && upper > from; i++)
		upper = settle_slice(number, newest - i, waiter, from, upper);
	return upper;
}

/* Charges the threads on pCPU `number` from `from` to `to`, newest first, as far as its slices go
 * back. */
__noinline int settle_wait(__u32 number, __u32 slot, __u32 state, __u64 from, __u64 to)
{
	struct vp_account_cpu *cpu = bpf_map_lookup_elem(&cpus, &number);
	struct vp_account_slice open;

	if (!cpu)
		return 0;
	__u32 newest = (__u32)cpu->head - 1;
	__u64 upper = limit(cpu->slices[newest & (VP_SLICES - 1)].end, from, to);
	if (upper < to) {
		/* Migrated away during a slice that has not ended. */
		const struct vp_account_here *there = here_of(number);
		set_holder(&open, there->vcpu, there->tid);
		add_thief(slot, open.kind, state, open.id, to - upper);
	}
	for (__u32 i = 0; i + SLICES_AT_ONCE < VP_SLICES && upper > from; i += SLICES_AT_ONCE)
		upper = settle_slices(number, newest - i, slot | (__u64)state << 32, from, upper);
	if (upper > from)
		add_thief(slot, VP_BY_UNKNOWN, state, 0, upper - from);
	return 0;
}

static __always_inline void name_task(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct vp_account_task found = {}, *known = bpf_map_lookup_elem(&tasks, &tid);

	bpf_get_current_comm(found.comm, sizeof(found.comm));
	const __u64 *old = (void *)known, *new = (void *)&found;
	if (known && old[0] == new[0] && old[1] == new[1])
		return;
	found.pid = task->tgid;
	found.cgroup = bpf_get_current_cgroup_id();
	found.kernel_thread = !!(((struct task_struct___vp *)task)->flags & KERNEL_THREAD);
	bpf_map_update_elem(&tasks, &tid, &found, BPF_ANY);
}

/* Ends a slice of prev on a pCPU for which a vCPU waits. */
static __always_inline void end_slice(struct vp_account_cpu *cpu, __u32 vcpu,
				      struct task_struct *prev, __u64 now)
{
	struct vp_account_slice *slice = &cpu->slices[cpu->head & (VP_SLICES - 1)];

	slice->end = now;
	set_holder(slice, vcpu, prev->pid);
	cpu->head++;
	if (slice->kind == VP_BY_TASK)
		name_task(prev);
}

static __always_inline __u32 cpu_of(struct vp_account_vcpu *vcpu, struct vp_account_cpu **ret)
{
	__u32 number = vcpu->cpu;

	*ret = bpf_map_lookup_elem(&cpus, &number);
	return number;
}

static __always_inline bool waits(const struct vp_account_vcpu *vcpu)
{
	return vcpu->state == VP_STATE_WAKING || vcpu->state == VP_STATE_PREEMPTED ||
	       vcpu->state == VP_STATE_THROTTLED;
}

static __always_inline void begin_wait(struct vp_account_vcpu *vcpu, __u32 state, __u32 cpu,
				       __u64 now)
{
	struct vp_account_cpu *there;

	vcpu->state = state;
	vcpu->cpu = cpu;
	vcpu->wait_at = now;
	cpu_of(vcpu, &there);
	if (there)
		__sync_fetch_and_add(&there->waiting, 1);
}

/* Ends its wait in that run queue: charges the thieves. */
static __always_inline void end_wait(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	struct vp_account_cpu *there;
	__u64 from = vcpu->wait_at;

	__u32 number = cpu_of(vcpu, &there);
	if (!there)
		return;
	__sync_fetch_and_add(&there->waiting, -1);
	if (vcpu->state == VP_STATE_THROTTLED) {
		/* After the quota's renewal, the rest was competition. */
		if (there->unthrottled <= from || there->unthrottled > now) {
			charge(vcpu, now);
			return;
		}
		from = there->unthrottled;
		charge(vcpu, from);
		vcpu->state = VP_STATE_PREEMPTED;
	}
	charge(vcpu, now);
	settle_wait(number, slot, vcpu->state, from, now);
}

/* The thread runs although its wait has not ended: some kernels hide tasks of their own from
 * sched_switch. */
static __always_inline void end_missed_wait(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	if (!waits(vcpu))
		return;
	vp_account_count_wake(vcpu, now);
	end_wait(vcpu, slot, now);
	vcpu->state = vcpu->base;
}

/* Without programs at exits: a thread that sleeps within KVM_RUN has halted, unless its exit had
 * another reason. */
static __always_inline bool sleeps_in_halt(struct vp_account_vcpu *vcpu, struct task_struct *task)
{
	struct kvm_vcpu *kvm;
	struct vmcb_view vmcb;
	__u64 code = 0;

	if (!only_states)
		return reason_is_halt(vcpu);
	void *notifier = kvm_notifier_of_known_task(task);
	if (!notifier)
		return false;
	kvm = vcpu_of_notifier(notifier);
	vcpu->flags &= ~VP_REASON_KNOWN;
	if (vendor == VP_VENDOR_AMD && kvm && read_exit_reason(kvm, &vcpu->vmcb, &code, &vmcb)) {
		vcpu->reason = (__u32)code;
		vcpu->flags |= VP_REASON_KNOWN;
	} else if (vendor == VP_VENDOR_INTEL && kvm && read_vmx_exit_reason(kvm, &vcpu->reason)) {
		vcpu->flags |= VP_REASON_KNOWN;
	}
	return !(vcpu->flags & VP_REASON_KNOWN) || reason_is_halt(vcpu);
}

static __always_inline void switch_out(struct vp_account_vcpu *vcpu, __u32 slot, __u32 cpu,
				       struct task_struct *task, bool preempted, __u64 now)
{
	__u32 state = task_state(task);

	if (vcpu->busy) {
		vcpu->flags |= VP_SWITCH_IGNORED;
		return;
	}
	end_missed_wait(vcpu, slot, now);
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = only_states ? VP_STATE_GUEST : VP_STATE_KERNEL;
	if (vcpu->state == VP_STATE_GUEST)
		stop_guest(vcpu, now);
	else
		charge(vcpu, now);
	if (vcpu->state == VP_STATE_VMM || vcpu->state == VP_STATE_GUEST)
		vcpu->base = vcpu->state;
	else if (vcpu->state != VP_STATE_IRQ)
		vcpu->base = VP_STATE_KERNEL;
	vcpu->soft = 0;
	if (preempted || !state) {
		bool throttled = task_is_throttled(task);
		vcpu->preemptions++;
		begin_wait(vcpu, throttled ? VP_STATE_THROTTLED : VP_STATE_PREEMPTED, cpu, now);
	} else if (state & TASK_DEAD) {
		vcpu->state = VP_STATE_GONE;
		vcpu->end = now;
		vcpu->tid = 0;
		forget_slot(task->pid);
	} else {
		vcpu->state = sleeps_in_halt(vcpu, task) ? VP_STATE_HALTED : VP_STATE_WAITING;
		if (!(vcpu->flags & VP_BLOCKED_ONCE))
			vcpu->block_at = now;
		vcpu->flags |= VP_BLOCKED_ONCE;
	}
}

static __always_inline void switch_in(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	if (vcpu->flags & VP_SWITCH_IGNORED) {
		vcpu->flags &= ~VP_SWITCH_IGNORED;
		return;
	}
	if (vcpu->state == VP_STATE_UNKNOWN) {
		vcpu->state = VP_STATE_PREEMPTED;
		charge(vcpu, now);
	} else if (waits(vcpu)) {
		vp_account_count_wake(vcpu, now);
		end_wait(vcpu, slot, now);
	} else {
		charge(vcpu, now);
	}
	vcpu->state = vcpu->base;
}

/* The thread's vCPU slot; allocated if the thread is inside KVM_RUN and has none. */
static __always_inline __u32 slot_of(struct task_struct *task, __u64 now)
{
	__u32 slot = find_slot(task->pid);

	if (slot || !task->preempt_notifiers.first)
		return slot;
	slot = make_slot(task->pid, task->tgid, now);
	struct vp_account_vcpu *vcpu = slot ? vcpu_at(slot) : 0;
	struct kvm_vcpu *kvm = vcpu_of_notifier(task->preempt_notifiers.first);
	if (vcpu && kvm) {
		vcpu->number = BPF_CORE_READ(kvm, vcpu_id);
		vcpu->flags |= VP_NUMBER_KNOWN;
	}
	return slot;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	__u32 number = bpf_get_smp_processor_id();
	struct vp_account_cpu *cpu = bpf_map_lookup_elem(&cpus, &number);
	struct vp_account_here *here = here_of(number);

	if (!enabled || !cpu)
		return 0;
	bool seen = here->vcpu || prev->preempt_notifiers.first || next->preempt_notifiers.first ||
		    cpu->waiting;
	if (!seen && !find_slot(next->pid)) {
		here->tid = next->pid;
		return 0;
	}
	__u64 now = bpf_ktime_get_ns();
	__u32 out = here->vcpu ? here->vcpu : slot_of(prev, now), in = slot_of(next, now);
	struct vp_account_vcpu *vcpu;
	here->vcpu = out;
	changeable(here);
	here->irq_source = here->in_guest = here->hit = here->hit_reason = here->untimed = 0;
	if (cpu->waiting)
		end_slice(cpu, out, prev, now);
	if (out && (vcpu = vcpu_at(out)))
		switch_out(vcpu, out, number, prev, preempted, now);
	here->vcpu = in;
	here->tid = next->pid;
	if (in && (vcpu = vcpu_at(in)))
		switch_in(vcpu, in, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(note_wakeup, struct task_struct *task)
{
	__u32 slot = find_slot(task->pid);
	struct vp_account_vcpu *vcpu = slot ? vcpu_at(slot) : 0;

	if (!vcpu || !enabled)
		return 0;
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = vcpu->asleep;
	if (vcpu->state != VP_STATE_HALTED && vcpu->state != VP_STATE_WAITING)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	charge(vcpu, now);
	vcpu->wakeups++;
	vcpu->woken_at = now;
	begin_wait(vcpu, VP_STATE_WAKING, task_cpu(task), now);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(note_migration, struct task_struct *task, int to)
{
	__u32 slot = find_slot(task->pid);
	struct vp_account_vcpu *vcpu = slot ? vcpu_at(slot) : 0;

	if (!vcpu || !enabled || !waits(vcpu))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	end_wait(vcpu, slot, now);
	begin_wait(vcpu, vcpu->state, to, now);
	return 0;
}

/* Optional: renewal of a throttled cgroup's quota. */
SEC("kprobe/unthrottle_cfs_rq")
int note_unthrottle(struct pt_regs *context)
{
	struct cfs_rq___vp *queue = (void *)PT_REGS_PARM1(context);
	__u32 number = enabled ? BPF_CORE_READ(queue, rq, cpu) : 0;
	struct vp_account_cpu *cpu = bpf_map_lookup_elem(&cpus, &number);

	if (enabled && cpu)
		cpu->unthrottled = bpf_ktime_get_ns();
	return 0;
}

#endif
