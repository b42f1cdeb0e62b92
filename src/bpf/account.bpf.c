/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where each vCPU's time goes, exactly: every change of what a vCPU does closes the state before.
 * Nothing is sent to user space: counters are in maps that it reads when it likes.
 *
 * kvm_entry and kvm_exit are the hot path: one look at the pCPU's vCPU, one clock, one addition. A
 * vCPU's entry in `vcpus` is written by its own pCPU or under the lock of its run queue; what can
 * interrupt a program (interrupts, and where tracepoints are preemptible the scheduler) leaves the
 * entry alone while it is busy.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/account.h"
#include "bpf/sched_compat.bpf.h"
#include "schema/records.h"

#define MMAPPED_ARRAY(name, value_type)                                                            \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, 1);                                                            \
		__type(key, __u32);                                                                \
		__type(value, value_type);                                                         \
	} name SEC(".maps")

/* Sized by the loader: a place for each vCPU, and a row of exits and of sites for each. */
MMAPPED_ARRAY(vcpus, struct vp_account_vcpu);
MMAPPED_ARRAY(exits, struct vp_account_exit);
MMAPPED_ARRAY(sites, struct vp_account_site);
MMAPPED_ARRAY(cpus, struct vp_account_cpu);

/* Places that no vCPU has; user space fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(value_size, sizeof(__u32));
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vp_thief_key);
	__type(value, struct vp_thief_cost);
} thieves SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct vp_account_task);
} tasks SEC(".maps");

/* Sites that lost their place in `sites` to another. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vp_site_key);
	__type(value, struct vp_site_cost);
} old_sites SEC(".maps");

/* From a thread's id to its vCPU's place + 1, at or just behind the id's low bits. */
__u16 place_of_tid[VP_TID_SLOTS];
struct vp_account_lost lost;
/* Nothing is counted before the loader sets it. */
volatile __u32 enabled;

enum { VMCB_CHECK = 15, AMD_VMRUN = 0x80, AMD_INTR = 0x60, AMD_SMI = 0x62 };

static __always_inline struct vp_account_vcpu *vcpu_at(__u32 place)
{
	__u32 index = place - 1;

	return bpf_map_lookup_elem(&vcpus, &index);
}

static __always_inline struct vp_account_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* Place + 1 of the thread's vCPU, or 0. */
static __always_inline __u32 find_place(__u32 tid)
{
#pragma unroll
	for (int i = 0; i < VP_TID_PROBES; i++) {
		__u32 place = place_of_tid[(tid + i) & (VP_TID_SLOTS - 1)];
		if (!place)
			return 0;
		struct vp_account_vcpu *vcpu = vcpu_at(place);
		if (vcpu && vcpu->tid == tid)
			return place;
	}
	return 0;
}

static __always_inline bool note_place(__u32 tid, __u32 place)
{
#pragma unroll
	for (int i = 0; i < VP_TID_PROBES; i++) {
		__u16 *slot = &place_of_tid[(tid + i) & (VP_TID_SLOTS - 1)];
		struct vp_account_vcpu *other = *slot ? vcpu_at(*slot) : 0;
		if (!other || other->state == VP_STATE_GONE) {
			*slot = place;
			return true;
		}
	}
	return false;
}

/* Gives a vCPU that is seen for the first time a place; returns it + 1, or 0 if there is none. */
static __noinline __u32 make_place(__u32 tid, __u32 pid, __u64 now)
{
	__u32 place = 0;
	struct vp_account_vcpu *vcpu;

	if (bpf_map_pop_elem(&places, &place) || !(vcpu = vcpu_at(place)) ||
	    !note_place(tid, place)) {
		__sync_fetch_and_add(&lost.vcpus, 1);
		return 0;
	}
	vcpu->tid = tid;
	vcpu->pid = pid;
	vcpu->begin = vcpu->since = now;
	vcpu->state = VP_STATE_UNKNOWN;
	vcpu->base = VP_STATE_KERNEL;
	vcpu->asleep = VP_STATE_WAITING;
	return place;
}

/* Closes the present state; returns how long it lasted since it was last closed. */
static __always_inline __u64 charge(struct vp_account_vcpu *vcpu, __u64 now)
{
	__u64 passed = now - vcpu->since;
	__u32 state = vcpu->state & (VP_STATE_ROOM - 1);

	if ((__s64)passed <= 0)
		return 0;
	vcpu->states[state] += passed;
	vcpu->since = now;
	if (vcpu->flags & VP_EXIT_OPEN && state != VP_STATE_KERNEL) {
		vcpu->parts[state] += passed;
		vcpu->flags |= VP_EXIT_SPLIT;
	}
	return passed;
}

/* The guest was left, and nothing said so yet: KVM lets interrupts in before it says kvm_exit. */
static __always_inline void leave_guest(struct vp_account_vcpu *vcpu, __u64 now)
{
	charge(vcpu, now);
	vcpu->exit_at = now;
	vcpu->flags |= VP_EXIT_OPEN;
	vcpu->state = VP_STATE_KERNEL;
}

static __always_inline bool reason_is_halt(const struct vp_account_vcpu *vcpu)
{
	__u32 reason = vcpu->reason;

	if (!(vcpu->flags & VP_REASON_KNOWN))
		return false;
	if (vendor == VP_VENDOR_AMD)
		return reason == 0x78 || reason == 0x8b || reason == 0x8c || reason == 0xa6;
	return (reason & 0xffff) == 12 || (reason & 0xffff) == 36;
}

static __always_inline void add_thief(__u32 place, __u32 kind, __u32 state, __u32 id, __u64 ns)
{
	struct vp_thief_key key = {.vcpu = place - 1, .kind = kind, .state = state, .id = id};
	struct vp_thief_cost *cost = bpf_map_lookup_elem(&thieves, &key);

	if (cost) {
		__sync_fetch_and_add(&cost->ns, ns);
		__sync_fetch_and_add(&cost->count, 1);
		return;
	}
	struct vp_thief_cost first = {ns, 1};
	if (bpf_map_update_elem(&thieves, &key, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&lost.thieves, 1);
}

/* Who had pCPU `cpu` from `from` to `to`, newest first, as far as its slices go back. */
static __noinline void settle_wait(struct vp_account_cpu *cpu, __u32 place, __u32 state, __u64 from,
				   __u64 to)
{
	__u64 upper = to;

	if (!cpu)
		return;
	for (__u32 i = 0; i < VP_SLICES - 1 && upper > from; i++) {
		struct vp_account_slice *slice =
		    &cpu->slices[(cpu->head - 1 - i) & (VP_SLICES - 1)];
		struct vp_account_slice *before =
		    &cpu->slices[(cpu->head - 2 - i) & (VP_SLICES - 1)];
		__u64 end = slice->end < upper ? slice->end : upper;
		__u64 begin = before->end > from ? before->end : from;
		if (end < upper && i == 0) {
			/* Migrated away from a slice that has not ended. */
			__u64 since = end > from ? end : from;
			add_thief(place,
				  cpu->vcpu  ? VP_BY_VCPU
				  : cpu->tid ? VP_BY_TASK
					     : VP_BY_NOBODY,
				  state, cpu->vcpu ? cpu->vcpu - 1 : cpu->tid, upper - since);
		}
		if (end <= from) {
			upper = from;
			break;
		}
		if (begin < end)
			add_thief(place,
				  slice->vcpu  ? VP_BY_VCPU
				  : slice->tid ? VP_BY_TASK
					       : VP_BY_NOBODY,
				  state, slice->vcpu ? slice->vcpu - 1 : slice->tid, end - begin);
		upper = begin;
	}
	if (upper > from)
		add_thief(place, VP_BY_UNKNOWN, state, 0, upper - from);
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

/* A stretch of the pCPU's time ends, and it was prev's: somebody waited for it. */
static __always_inline void end_slice(struct vp_account_cpu *cpu, struct task_struct *prev,
				      __u64 now)
{
	struct vp_account_slice *slice = &cpu->slices[cpu->head & (VP_SLICES - 1)];

	slice->end = now;
	slice->tid = prev->pid;
	slice->vcpu = cpu->vcpu;
	cpu->head++;
	if (!cpu->vcpu && slice->tid)
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

/* Its wait in that run queue is over: names those it waited for. */
static __always_inline void end_wait(struct vp_account_vcpu *vcpu, __u32 place, __u64 now)
{
	struct vp_account_cpu *there;
	__u64 from = vcpu->wait_at;

	cpu_of(vcpu, &there);
	if (!there)
		return;
	__sync_fetch_and_add(&there->waiting, -1);
	if (vcpu->state == VP_STATE_THROTTLED) {
		/* What followed the quota's renewal was competition. */
		if (there->unthrottled <= from || there->unthrottled > now) {
			charge(vcpu, now);
			return;
		}
		from = there->unthrottled;
		charge(vcpu, from);
		vcpu->state = VP_STATE_PREEMPTED;
	}
	charge(vcpu, now);
	settle_wait(there, place, vcpu->state, from, now);
}

static __always_inline void switch_out(struct vp_account_vcpu *vcpu, __u32 cpu,
				       struct task_struct *task, bool preempted, __u64 now)
{
	__u32 state = task_state(task);

	if (vcpu->busy) {
		vcpu->flags |= VP_SWITCH_IGNORED;
		return;
	}
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_KERNEL;
	if (vcpu->state == VP_STATE_GUEST)
		leave_guest(vcpu, now);
	else
		charge(vcpu, now);
	if (vcpu->state != VP_STATE_IRQ)
		vcpu->base = vcpu->state == VP_STATE_VMM ? VP_STATE_VMM : VP_STATE_KERNEL;
	vcpu->hard = vcpu->soft = 0;
	if (preempted || !state) {
		bool throttled = task_is_throttled(task);
		vcpu->preemptions++;
		begin_wait(vcpu, throttled ? VP_STATE_THROTTLED : VP_STATE_PREEMPTED, cpu, now);
	} else if (state & TASK_DEAD) {
		vcpu->state = VP_STATE_GONE;
		vcpu->end = now;
		vcpu->tid = 0;
	} else {
		vcpu->state = reason_is_halt(vcpu) ? VP_STATE_HALTED : VP_STATE_WAITING;
		if (!(vcpu->flags & VP_BLOCKED_ONCE))
			vcpu->block_at = now;
		vcpu->flags |= VP_BLOCKED_ONCE;
	}
}

static __always_inline void switch_in(struct vp_account_vcpu *vcpu, __u32 place, __u64 now)
{
	if (vcpu->flags & VP_SWITCH_IGNORED) {
		vcpu->flags &= ~VP_SWITCH_IGNORED;
		return;
	}
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_PREEMPTED, charge(vcpu, now);
	else if (waits(vcpu))
		end_wait(vcpu, place, now);
	else
		charge(vcpu, now);
	vcpu->state = vcpu->base;
}

/* The thread's vCPU; given a place now if the thread is inside KVM_RUN and has none. */
static __always_inline __u32 place_of(struct task_struct *task, __u64 now)
{
	__u32 place = find_place(task->pid);

	if (place || !task->preempt_notifiers.first)
		return place;
	place = make_place(task->pid, task->tgid, now);
	struct vp_account_vcpu *vcpu = place ? vcpu_at(place) : 0;
	struct kvm_vcpu *kvm = vcpu_of_notifier(task->preempt_notifiers.first);
	if (vcpu && kvm) {
		vcpu->number = BPF_CORE_READ(kvm, vcpu_id);
		vcpu->flags |= VP_NUMBER_KNOWN;
	}
	return place;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct vp_account_cpu *cpu = this_cpu();

	if (!enabled || !cpu)
		return 0;
	bool seen = cpu->vcpu || prev->preempt_notifiers.first || next->preempt_notifiers.first ||
		    cpu->waiting;
	if (!seen && !find_place(next->pid)) {
		cpu->tid = next->pid;
		return 0;
	}
	__u64 now = bpf_ktime_get_ns();
	__u32 out = cpu->vcpu ? cpu->vcpu : place_of(prev, now), in = place_of(next, now);
	struct vp_account_vcpu *vcpu;
	cpu->vcpu = out;
	if (cpu->waiting)
		end_slice(cpu, prev, now);
	if (out && (vcpu = vcpu_at(out)))
		switch_out(vcpu, bpf_get_smp_processor_id(), prev, preempted, now);
	cpu->vcpu = in;
	cpu->tid = next->pid;
	if (in && (vcpu = vcpu_at(in)))
		switch_in(vcpu, in, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(note_wakeup, struct task_struct *task)
{
	__u32 place = find_place(task->pid);
	struct vp_account_vcpu *vcpu = place ? vcpu_at(place) : 0;

	if (!vcpu || !enabled)
		return 0;
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = vcpu->asleep;
	if (vcpu->state != VP_STATE_HALTED && vcpu->state != VP_STATE_WAITING)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	charge(vcpu, now);
	vcpu->wakeups++;
	begin_wait(vcpu, VP_STATE_WAKING, task_cpu(task), now);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(note_migration, struct task_struct *task, int to)
{
	__u32 place = find_place(task->pid);
	struct vp_account_vcpu *vcpu = place ? vcpu_at(place) : 0;

	if (!vcpu || !enabled || !waits(vcpu))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	end_wait(vcpu, place, now);
	begin_wait(vcpu, vcpu->state, to, now);
	return 0;
}

/* Optional: when the quota of a throttled cgroup is renewed. */
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

/* Which of its 256 counters a reason has; what lies far out is moved into gaps of the numbering. */
static __always_inline __u32 code_of(__u32 reason)
{
	if (vendor == VP_VENDOR_INTEL)
		return reason & 0xff;
	if (reason < 0xd0)
		return reason;
	return (reason & ~0xfU) == 0x400 ? 0xd0 | (reason & 0xf) : 0xff;
}

static __noinline __u32 assign_reason(struct vp_account_vcpu *vcpu, __u32 code)
{
	__u32 slot;

	if (!vcpu)
		return 0;
	slot = vcpu->reasons < VP_EXIT_REASONS - 1 ? vcpu->reasons + 1 : VP_EXIT_REASONS;
	vcpu->reasons = slot;
	vcpu->reason_slots[code & (VP_EXIT_CODES - 1)] = slot;
	return slot;
}

static __always_inline void evict(const struct vp_account_site *site, __u32 pid)
{
	struct vp_site_key key = {
	    .ip = site->ip, .cr3 = site->cr3, .pid = pid, .reason = site->reason};
	struct vp_site_cost *cost = bpf_map_lookup_elem(&old_sites, &key);

	if (cost) {
		__sync_fetch_and_add(&cost->count, site->count);
		__sync_fetch_and_add(&cost->ns, site->ns);
		cost->last = site->last;
		return;
	}
	struct vp_site_cost first = {site->count, site->ns, site->last};
	if (bpf_map_update_elem(&old_sites, &key, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&lost.sites, site->count);
}

static __noinline int replace_site(struct vp_account_site *site, struct vp_account_vcpu *vcpu)
{
	if (!site || !vcpu)
		return 0;
	if (site->count)
		evict(site, vcpu->pid);
	site->ip = vcpu->ip;
	site->cr3 = vcpu->cr3;
	site->reason = vcpu->reason;
	site->count = site->ns = 0;
	return 0;
}

static __always_inline void count_site(struct vp_account_vcpu *vcpu, __u32 place, __u64 total)
{
	__u64 mixed =
	    (vcpu->ip ^ vcpu->cr3 >> 8 ^ (__u64)vcpu->reason << 40) * 0x9e3779b97f4a7c15ULL;
	__u32 index = (place - 1) * VP_EXIT_SITES + (__u32)(mixed >> 55);
	struct vp_account_site *site = bpf_map_lookup_elem(&sites, &index);

	if (!site)
		return;
	if (site->ip != vcpu->ip || site->cr3 != vcpu->cr3 || site->reason != vcpu->reason ||
	    !site->count)
		replace_site(site, vcpu);
	site->count++;
	site->ns += total;
	site->last = vcpu->since;
}

static __always_inline void take_parts(struct vp_account_vcpu *vcpu, struct vp_account_exit *exit)
{
	exit->poll += vcpu->parts[VP_STATE_POLL];
	exit->vmm += vcpu->parts[VP_STATE_VMM];
	exit->stolen += vcpu->parts[VP_STATE_PREEMPTED] + vcpu->parts[VP_STATE_THROTTLED] +
			vcpu->parts[VP_STATE_IRQ];
	exit->blocked += vcpu->parts[VP_STATE_HALTED] + vcpu->parts[VP_STATE_WAITING];
	exit->waking += vcpu->parts[VP_STATE_WAKING];
}

/* The exit that began at exit_at is over. */
static __always_inline void finish_exit(struct vp_account_vcpu *vcpu, __u32 place, __u64 now)
{
	__u64 total = now - vcpu->exit_at;
	__u32 code = code_of(vcpu->reason);
	__u32 slot = vcpu->reason_slots[code & (VP_EXIT_CODES - 1)];

	if (!slot)
		slot = assign_reason(vcpu, code);
	__u32 index = (place - 1) * VP_EXIT_REASONS + slot - 1;
	struct vp_account_exit *exit = bpf_map_lookup_elem(&exits, &index);
	if (!exit)
		return;
	if (!exit->count)
		exit->reason = vcpu->reason;
	exit->count++;
	exit->total += total;
	if (total > exit->max)
		exit->max = total;
	__u64 bucket = vp_bucket_of(total);
	barrier_var(bucket); /* or the compiler checks one copy of it and uses another */
	if (bucket < VP_BUCKETS)
		exit->buckets[bucket]++;
	if (vcpu->flags & VP_EXIT_SPLIT)
		take_parts(vcpu, exit);
	vcpu->exits++;
	if (vcpu->flags & VP_PLACE_KNOWN)
		count_site(vcpu, place, total);
}

static __always_inline void clear_exit(struct vp_account_vcpu *vcpu)
{
	if (vcpu->flags & VP_EXIT_SPLIT) {
#pragma unroll
		for (int i = 0; i < VP_STATES; i++)
			vcpu->parts[i] = 0;
	}
	vcpu->flags &=
	    ~(VP_EXIT_OPEN | VP_REASON_KNOWN | VP_EXIT_SPLIT | VP_BLOCKED_ONCE | VP_PLACE_KNOWN);
}

/* The vCPU that runs here, when the pCPU's note of it is wrong or missing. */
static __noinline __u32 look_again(struct kvm_vcpu *kvm)
{
	struct vp_account_cpu *cpu = this_cpu();
	__u64 id = bpf_get_current_pid_tgid();
	__u32 place = find_place((__u32)id);

	if (!place)
		place = make_place((__u32)id, id >> 32, bpf_ktime_get_ns());
	struct vp_account_vcpu *vcpu = place ? vcpu_at(place) : 0;
	if (!vcpu || !cpu)
		return 0;
	cpu->vcpu = place;
	cpu->tid = (__u32)id;
	if (kvm) {
		vcpu->kvm_vcpu = (__u64)kvm;
		vcpu->vmcb = 0;
		if (bpf_core_type_exists(struct kvm_vcpu)) {
			vcpu->number = BPF_CORE_READ(kvm, vcpu_id);
			vcpu->flags |= VP_NUMBER_KNOWN;
		}
	}
	return place;
}

static __always_inline struct vp_account_vcpu *running(struct kvm_vcpu *kvm, __u32 *place)
{
	struct vp_account_cpu *cpu = this_cpu();
	struct vp_account_vcpu *vcpu = cpu && cpu->vcpu ? vcpu_at(cpu->vcpu) : 0;

	if (vcpu && (vcpu->kvm_vcpu == (__u64)kvm || !kvm)) {
		*place = cpu->vcpu;
		return vcpu;
	}
	*place = look_again(kvm);
	return *place ? vcpu_at(*place) : 0;
}

static __always_inline void set_busy(struct vp_account_vcpu *vcpu, __u32 busy)
{
	barrier();
	*(volatile __u32 *)&vcpu->busy = busy;
	barrier();
}

/* Keeps the VMCB's address: reading it costs as much as all the rest. */
static __noinline int find_vmcb(struct vp_account_vcpu *vcpu)
{
	void *vmcb;

	if (!vcpu)
		return 0;
	vmcb = vmcb_of((struct kvm_vcpu *)vcpu->kvm_vcpu);
	if (vcpu->vmcb && (__u64)vmcb != vcpu->vmcb)
		vcpu->flags |= VP_VMCB_MOVES;
	vcpu->vmcb = (__u64)vmcb;
	return 0;
}

static __always_inline void note_amd(struct vp_account_vcpu *vcpu)
{
	struct vmcb_place place;
	__u64 code = 0;

	if (!vcpu->vmcb || vcpu->flags & VP_VMCB_MOVES || !(vcpu->exits & VMCB_CHECK))
		find_vmcb(vcpu);
	void *vmcb = (void *)vcpu->vmcb;
	if (!vmcb || bpf_probe_read_kernel(&code, sizeof(code), vmcb + VMCB_EXIT_CODE))
		return;
	vcpu->reason = (__u32)code;
	if (vcpu->reason == AMD_VMRUN)
		vcpu->flags |= VP_VMCB_MOVES;
	/* Where it hit the guest says nothing of why: no code of the guest's caused it. */
	if (vcpu->reason >= AMD_INTR && vcpu->reason <= AMD_SMI)
		return;
	if (bpf_probe_read_kernel(&place, sizeof(place), vmcb + VMCB_SAVE_CR3))
		return;
	vcpu->ip = place.rip;
	vcpu->cr3 = place.cr3;
	vcpu->flags |= VP_PLACE_KNOWN;
}

/* v5.17, 0a62a0319abb "KVM: x86: Get error code from get_exit_info" and its neighbours dropped the
 * reason before the vCPU; a kernel's pointer is negative, a reason is not. */
static __always_inline void note_reason(struct vp_account_vcpu *vcpu, __u64 first)
{
	vcpu->reason = 0xffffffff;
	if (vendor == VP_VENDOR_AMD)
		note_amd(vcpu);
	else
		read_vmx_exit_reason((struct kvm_vcpu *)vcpu->kvm_vcpu, &vcpu->reason);
	if ((__s64)first >= 0)
		vcpu->reason = (__u32)first;
	vcpu->flags |= VP_REASON_KNOWN;
}

/* Not out of the guest: an interrupt came first, or this is the first that is seen of it. */
static __noinline int note_late_exit(struct vp_account_vcpu *vcpu, __u32 place, __u64 now)
{
	if (!vcpu)
		return 0;
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_GUEST;
	if (vcpu->state == VP_STATE_GUEST) {
		leave_guest(vcpu, now);
		return 0;
	}
	charge(vcpu, now);
	if (vcpu->flags & VP_EXIT_OPEN && !(vcpu->flags & VP_REASON_KNOWN))
		return 0;
	/* An entry that was not told: the exit before is over. */
	if (vcpu->flags & VP_EXIT_OPEN)
		finish_exit(vcpu, place, now);
	clear_exit(vcpu);
	vcpu->exit_at = now;
	vcpu->flags |= VP_EXIT_OPEN;
	return 0;
}

SEC("raw_tp/kvm_exit")
int note_exit(struct bpf_raw_tracepoint_args *context)
{
	__u64 first = context->args[0], now;
	__u32 place;

	if (!enabled)
		return 0;
	now = bpf_ktime_get_ns();
	struct vp_account_vcpu *vcpu =
	    running((void *)((__s64)first < 0 ? first : context->args[1]), &place);
	if (!vcpu)
		return 0;
	set_busy(vcpu, 1);
	__u64 passed = now - vcpu->since;
	if (vcpu->state == VP_STATE_GUEST && (__s64)passed >= 0) {
		vcpu->states[VP_STATE_GUEST] += passed;
		vcpu->since = vcpu->exit_at = now;
		vcpu->state = VP_STATE_KERNEL;
		vcpu->flags |= VP_EXIT_OPEN;
	} else {
		note_late_exit(vcpu, place, now);
	}
	note_reason(vcpu, first);
	set_busy(vcpu, 0);
	return 0;
}

static __noinline int note_slow_entry(struct vp_account_vcpu *vcpu, __u32 place, __u64 now)
{
	if (!vcpu)
		return 0;
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_KERNEL;
	charge(vcpu, now);
	return 0;
}

SEC("raw_tp/kvm_entry")
int note_entry(struct bpf_raw_tracepoint_args *context)
{
	__u32 place;

	if (!enabled)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	struct vp_account_vcpu *vcpu = running((void *)context->args[0], &place);
	if (!vcpu)
		return 0;
	set_busy(vcpu, 1);
	__u64 passed = now - vcpu->since;
	if (vcpu->state == VP_STATE_KERNEL && (__s64)passed >= 0) {
		vcpu->states[VP_STATE_KERNEL] += passed;
		vcpu->since = now;
	} else {
		note_slow_entry(vcpu, place, now);
	}
	const __u32 whole = VP_EXIT_OPEN | VP_REASON_KNOWN;
	if ((vcpu->flags & whole) == whole)
		finish_exit(vcpu, place, vcpu->since);
	clear_exit(vcpu);
	vcpu->state = VP_STATE_GUEST;
	set_busy(vcpu, 0);
	return 0;
}

SEC("raw_tp/kvm_userspace_exit")
int note_vmm(struct bpf_raw_tracepoint_args *context)
{
	__u32 place;
	struct vp_account_vcpu *vcpu = enabled ? running(0, &place) : 0;

	if (!vcpu)
		return 0;
	set_busy(vcpu, 1);
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_KERNEL;
	charge(vcpu, bpf_ktime_get_ns());
	vcpu->state = VP_STATE_VMM;
	set_busy(vcpu, 0);
	return 0;
}

/* KVM says how long a halt took: what of it was no sleep was polling, until now held for work. */
SEC("raw_tp/kvm_vcpu_wakeup")
int note_poll(struct bpf_raw_tracepoint_args *context)
{
	__u64 ns = context->args[0], others = 0;
	bool slept = context->args[1] & 1;
	__u32 place;
	struct vp_account_vcpu *vcpu = enabled ? running(0, &place) : 0;

	if (!vcpu)
		return 0;
	set_busy(vcpu, 1);
	charge(vcpu, bpf_ktime_get_ns());
	if (vcpu->flags & VP_EXIT_OPEN && vcpu->state == VP_STATE_KERNEL) {
#pragma unroll
		for (int i = 0; i < VP_STATES; i++)
			others += vcpu->parts[i];
		__u64 kernel = vcpu->since - vcpu->exit_at - others;
		__u64 sleep =
		    slept && vcpu->flags & VP_BLOCKED_ONCE ? vcpu->since - vcpu->block_at : 0;
		ns = ns > sleep ? ns - sleep : 0;
		ns = ns > kernel ? kernel : ns;
		vcpu->states[VP_STATE_KERNEL] -= ns;
		vcpu->states[VP_STATE_POLL] += ns;
		vcpu->parts[VP_STATE_POLL] += ns;
		vcpu->flags |= VP_EXIT_SPLIT;
		vcpu->polls += ns > 0;
		vcpu->poll_wasted += slept ? ns : 0;
	}
	set_busy(vcpu, 0);
	return 0;
}

/* The vCPU that an interrupt takes the pCPU from, if there is one that may be changed now. */
static __always_inline struct vp_account_vcpu *interrupted(__u32 *place)
{
	struct vp_account_cpu *cpu = this_cpu();
	struct vp_account_vcpu *vcpu = cpu && cpu->vcpu && enabled ? vcpu_at(cpu->vcpu) : 0;

	if (!vcpu || vcpu->busy || vcpu->flags & VP_SWITCH_IGNORED)
		return 0;
	*place = cpu->vcpu;
	return vcpu;
}

static __always_inline void begin_irq(__u32 source, bool hard)
{
	__u32 place;
	struct vp_account_vcpu *vcpu = interrupted(&place);

	if (!vcpu || vcpu->hard || (!hard && vcpu->soft))
		return;
	set_busy(vcpu, 1); /* a hard interrupt may come while a soft one is noted */
	__u64 now = bpf_ktime_get_ns();
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_GUEST;
	if (vcpu->state == VP_STATE_IRQ) {
		__u32 soft = (vcpu->soft - 1) & (VP_IRQ_SOURCES - 1);
		vcpu->irq_ns[soft] += charge(vcpu, now);
	} else if (vcpu->state == VP_STATE_GUEST) {
		leave_guest(vcpu, now);
		vcpu->base = VP_STATE_KERNEL;
	} else {
		charge(vcpu, now);
		vcpu->base = vcpu->state;
	}
	if (hard)
		vcpu->hard = source + 1;
	else
		vcpu->soft = source + 1;
	vcpu->state = VP_STATE_IRQ;
	set_busy(vcpu, 0);
}

static __always_inline void end_irq(__u32 source, bool hard)
{
	__u32 place;
	struct vp_account_vcpu *vcpu = interrupted(&place);

	if (!vcpu || (hard ? vcpu->hard : vcpu->soft) != source + 1)
		return;
	set_busy(vcpu, 1);
	__u64 passed = charge(vcpu, bpf_ktime_get_ns());
	if (source < VP_IRQ_SOURCES) {
		vcpu->irq_ns[source & (VP_IRQ_SOURCES - 1)] += passed;
		vcpu->irq_count[source & (VP_IRQ_SOURCES - 1)]++;
	} else {
		add_thief(place, VP_BY_DEVICE, VP_STATE_IRQ, source - VP_IRQ_DEVICE, passed);
	}
	if (hard)
		vcpu->hard = 0;
	else
		vcpu->soft = 0;
	vcpu->state = vcpu->soft ? VP_STATE_IRQ : vcpu->base;
	set_busy(vcpu, 0);
}

#define VECTOR(name, source)                                                                       \
	SEC("raw_tp/" #name "_entry") int begin_##name(void *context)                              \
	{                                                                                          \
		begin_irq(source, true);                                                           \
		return 0;                                                                          \
	}                                                                                          \
	SEC("raw_tp/" #name "_exit") int end_##name(void *context)                                 \
	{                                                                                          \
		end_irq(source, true);                                                             \
		return 0;                                                                          \
	}

VECTOR(local_timer, VP_IRQ_LOCAL_TIMER)
VECTOR(reschedule, VP_IRQ_RESCHEDULE)
VECTOR(call_function, VP_IRQ_CALL_FUNCTION)
VECTOR(call_function_single, VP_IRQ_CALL_FUNCTION_SINGLE)
VECTOR(irq_work, VP_IRQ_WORK)

SEC("raw_tp/irq_handler_entry") int begin_device(struct bpf_raw_tracepoint_args *context)
{
	begin_irq(VP_IRQ_DEVICE + ((__u32)context->args[0] & 0xffff), true);
	return 0;
}

SEC("raw_tp/irq_handler_exit") int end_device(struct bpf_raw_tracepoint_args *context)
{
	end_irq(VP_IRQ_DEVICE + ((__u32)context->args[0] & 0xffff), true);
	return 0;
}

SEC("raw_tp/softirq_entry") int begin_softirq(struct bpf_raw_tracepoint_args *context)
{
	begin_irq((__u32)context->args[0] & (VP_IRQ_SOURCES - 1), false);
	return 0;
}

SEC("raw_tp/softirq_exit") int end_softirq(struct bpf_raw_tracepoint_args *context)
{
	end_irq((__u32)context->args[0] & (VP_IRQ_SOURCES - 1), false);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
