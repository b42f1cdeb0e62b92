/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aligned intervals: at one event, closes the counts of perf's counters, of these programs and of
 * the guest kernel, for the subject on the pCPU (a vCPU, a task, or the pCPU itself). The interval
 * event is a counter overflow, N exits, or a time.
 *
 * perf's counters count everything on their pCPU. They are read when a subject gets the pCPU,
 * when it loses it, and at each close, and the difference is added to the subject. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/intervals_exit.bpf.h"

static __always_inline __u32 vcpu_here(void)
{
	void *notifier = kvm_notifier_of_task((void *)bpf_get_current_task());
	struct kvm_vcpu *vcpu = notifier ? vcpu_of_notifier(notifier) : 0;

	return vcpu ? BPF_CORE_READ(vcpu, vcpu_id) : VP_VCPU_UNKNOWN;
}

static __always_inline void intervals_note_pcpu(struct interval_cpu *cpu,
						struct vp_subject *subject)
{
	resume_turn(cpu, subject);
	subject->flags |= VP_SUBJECT_RAN;
	subject->cpu = bpf_get_smp_processor_id();
}

/* Makes it the subject of this pCPU. */
static __always_inline void install(struct interval_cpu *cpu, struct vp_subject *subject,
				    __u32 slot, __u64 now)
{
	cpu->slot = slot;
	read_counters(cpu, 0);
	charge(subject, now);
	subject->state = VP_SUBJECT_RUNNING;
	intervals_note_pcpu(cpu, subject);
}

/* Wakes user space for a new vCPU: its thread may need an interval event of its own. */
static __always_inline void emit_of_vcpu(__u32 pid, __u32 tid, __u64 now)
{
	__u32 here = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &here);
	struct vp_task record = {.time = now, .id = VP_ID_task, .pid = pid, .tid = tid};

	bpf_get_current_comm(record.comm, sizeof(record.comm));
	if (ring)
		bpf_ringbuf_output(ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

/* Finds the subject of the running thread if the pCPU has none noted. */
static __noinline int intervals_find_subject(struct interval_cpu *cpu, bool may_make)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u32 slot = find_slot((__u32)id), came = 0;

	if (!cpu)
		return 0;
	if (!slot && may_make) {
		slot = make_slot(id >> 32, (__u32)id, vcpu_here(), now);
		if (slot)
			emit_of_vcpu(id >> 32, (__u32)id, now);
		came = VP_SUBJECT_NEW;
	}
	struct vp_subject *subject = subject_at(slot);
	if (subject)
		subject->flags |= came;
	if (subject)
		install(cpu, subject, slot, now);
	return 0;
}

/* Starts a program's work; 0: nothing to do, or another program is active on this pCPU. */
static __always_inline struct interval_cpu *intervals_enter(void)
{
	struct interval_cpu *cpu = enabled ? this_cpu() : 0;

	if (!cpu || cpu->busy)
		return 0;
	set_busy(cpu, 1);
	return cpu;
}

/* The running vCPU: a thread that enters a guest is one. */
static __always_inline struct vp_subject *vcpu_subject(struct interval_cpu *cpu)
{
	if (!cpu->slot)
		intervals_find_subject(cpu, takes_new);
	return subject_at(cpu->slot);
}

SEC("perf_event")
int close_on_overflow(void *context)
{
	struct interval_cpu *cpu = enabled ? this_cpu() : 0;

	if (!cpu)
		return 0;
	if (cpu->busy) {
		cpu->due = 1;
		return 0;
	}
	set_busy(cpu, 1);
	if (!cpu->slot)
		intervals_find_subject(cpu, false);
	struct vp_subject *subject = subject_at(cpu->slot);
	if (subject && !(subject->flags & VP_SUBJECT_OVER))
		close_here(cpu, subject);
	leave(cpu);
	return 0;
}

static __always_inline void close_if_due(struct interval_cpu *cpu, struct vp_subject *subject,
					 __u64 now)
{
	if (unit == VP_UNIT_TIME && now >= subject->due_at)
		close_here(cpu, subject);
}

/* A clock of this pCPU; VM exits check the time, too. */
SEC("perf_event")
int close_on_tick(void *context)
{
	struct interval_cpu *cpu = intervals_enter();
	struct vp_subject *subject = cpu ? subject_at(cpu->slot) : 0;

	if (subject && !(subject->flags & VP_SUBJECT_OVER))
		close_if_due(cpu, subject, bpf_ktime_get_ns());
	if (cpu)
		leave(cpu);
	return 0;
}

/* An exit counts in the interval in which it ends, with all its time on a pCPU. */
static __always_inline void intervals_count_exit(struct vp_subject *subject, __u64 now)
{
	__s64 passed = now - subject->exited_at - subject->away;

	if (!(subject->flags & VP_SUBJECT_IN_EXIT))
		return;
	add(subject, VP_COUNT_exits, 1);
	add(subject, VP_COUNT_BY_CLASS + subject->class, 1);
	if (passed > 0) {
		add(subject, VP_COUNT_time_exits, passed);
		add(subject, VP_COUNT_TIME_BY_CLASS + subject->class, passed);
	}
	subject->flags &= ~VP_SUBJECT_IN_EXIT;
	subject->exits_left--;
}

/* Enables the next set before the entry that ends the sub-interval: an interrupt in the guest
 * would be another exit. */
static __always_inline void end_turn_at_exit(struct interval_cpu *cpu, struct vp_subject *subject,
					     __u64 now)
{
	if (unit == VP_UNIT_EXITS && subject->exits_left == 1) {
		read_counters(cpu, subject);
		end_turn(cpu, subject, now);
	}
	close_if_due(cpu, subject, now);
}

/* `now` may have been read before the interval started. */
static __always_inline __u64 time_in(const struct vp_subject *subject, __u64 now)
{
	return (__s64)(now - subject->begin) < 0 ? subject->begin : now;
}

static __always_inline void intervals_take_exit(__u64 first, __u64 second, __u32 reason, __u64 now)
{
	struct interval_cpu *cpu = intervals_enter();
	struct vp_subject *subject = cpu ? vcpu_subject(cpu) : 0;

	if (subject) {
		now = time_in(subject, now);
		charge_guest(subject, now);
		subject->exited_at = now;
		subject->away = 0;
		subject->class = class_of_exit(subject, first, second, reason);
		subject->flags = (subject->flags & ~VP_SUBJECT_IN_GUEST) | VP_SUBJECT_IN_EXIT;
		if (multiplexing && !(subject->flags & VP_SUBJECT_OVER))
			end_turn_at_exit(cpu, subject, now);
	}
	if (cpu)
		leave(cpu);
}

SEC("raw_tp/kvm_exit")
int note_exit(struct bpf_raw_tracepoint_args *context)
{
	if (enabled)
		intervals_take_exit(context->args[0], context->args[1], VP_REASON_MISSING,
				    bpf_ktime_get_ns());
	return 0;
}

/* The same, if the accounting program already runs at each exit. */
SEC("?freplace/exit_hook")
int exit_of_account(__u64 first, __u64 second, __u32 reason, __u64 now)
{
	intervals_take_exit(first, second, reason, now);
	return 0;
}

/* Excludes counts of the guest kernel from before the vCPU's first interval. */
static __always_inline void intervals_begin_guest(struct vp_subject *subject)
{
	subject->flags |= VP_SUBJECT_ENTERED;
	if (subject->number)
		return;
	read_guest(subject);
	__builtin_memcpy(subject->guest_before, subject->guest, sizeof(subject->guest));
	subject->guest_known_before = subject->guest_known;
}

static __always_inline void intervals_take_entry(__u64 now)
{
	struct interval_cpu *cpu = intervals_enter();
	struct vp_subject *subject = cpu ? vcpu_subject(cpu) : 0;

	if (subject && !(subject->flags & VP_SUBJECT_OVER)) {
		now = time_in(subject, now);
		if (!(subject->flags & VP_SUBJECT_ENTERED))
			intervals_begin_guest(subject);
		charge_guest(subject, now);
		intervals_count_exit(subject, now);
		add(subject, VP_COUNT_entries, 1);
		subject->entered_at = now;
		subject->flags |= VP_SUBJECT_IN_GUEST;
		if (unit == VP_UNIT_EXITS && !subject->exits_left)
			close_here(cpu, subject);
		if (!multiplexing)
			close_if_due(cpu, subject, now);
	}
	if (cpu)
		leave(cpu);
}

SEC("raw_tp/kvm_entry")
int note_entry(void *context)
{
	if (enabled)
		intervals_take_entry(bpf_ktime_get_ns());
	return 0;
}

SEC("?freplace/entry_hook")
int entry_of_account(__u64 now)
{
	intervals_take_entry(now);
	return 0;
}

SEC("raw_tp/kvm_mmio")
int note_mmio(void *context)
{
	struct interval_cpu *cpu = intervals_enter();
	struct vp_subject *subject = cpu ? subject_at(cpu->slot) : 0;

	/* It counted as a page fault so far. */
	if (subject && subject->flags & VP_SUBJECT_IN_EXIT)
		subject->class = VP_EXITS_mmio;
	if (cpu)
		leave(cpu);
	return 0;
}

static __always_inline void count_here(__u32 count, __u32 also)
{
	struct interval_cpu *cpu = intervals_enter();
	struct vp_subject *subject = cpu ? subject_at(cpu->slot) : 0;

	if (subject) {
		add(subject, count, 1);
		if (also)
			add(subject, also, 1);
	}
	if (cpu)
		leave(cpu);
}

SEC("raw_tp/kvm_inj_virq")
int note_inj_virq(void *context)
{
	count_here(VP_COUNT_inject_interrupt, 0);
	return 0;
}

SEC("raw_tp/kvm_inj_exception")
int note_inj_exception(struct bpf_raw_tracepoint_args *context)
{
	bool fault = (__u32)context->args[0] == X86_PAGE_FAULT;

	count_here(VP_COUNT_inject_exception, fault ? VP_COUNT_inject_page_fault : 0);
	return 0;
}

static __always_inline void count_out(struct vp_subject *subject, bool runnable)
{
	add(subject, VP_COUNT_sched_out, 1);
	if (runnable)
		add(subject, VP_COUNT_preempted, 1);
}

/* The switcher preempts the subject, which continues afterwards: not counted as a switch. */
static __always_inline void take_aside(struct interval_cpu *cpu, struct vp_subject *subject,
				       __u64 now)
{
	read_counters(cpu, subject);
	charge(subject, now);
	subject->state = VP_SUBJECT_WAITING;
	cpu->aside = cpu->slot;
}

/* The switcher is done; true: the preempted subject runs again. */
static __always_inline bool bring_back(struct interval_cpu *cpu, __u32 next)
{
	__u32 aside = cpu->aside;
	struct vp_subject *subject = aside && aside != next ? subject_at(aside) : 0;

	cpu->aside = 0;
	if (subject)
		count_out(subject, true);
	return aside && aside == next;
}

static __always_inline void intervals_take_out(struct interval_cpu *cpu, struct vp_subject *subject,
					       struct task_struct *prev, bool runnable, __u64 now)
{
	take_all(cpu, subject);
	charge(subject, now);
	close_if_overdue(cpu, subject, now);
	count_out(subject, runnable);
	subject->state = runnable ? VP_SUBJECT_WAITING : VP_SUBJECT_BLOCKED;
	if (task_state(prev) & TASK_DEAD && !runnable) {
		__u32 tid = prev->pid, slot = cpu->slot;
		close_interval(subject, now, VP_INTERVAL_PARTIAL | VP_INTERVAL_LAST);
		subject->flags |= VP_SUBJECT_OVER;
		bpf_map_delete_elem(&slots, &tid);
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	}
}

static __always_inline void intervals_take_in(struct interval_cpu *cpu, struct vp_subject *subject,
					      bool counters_read, bool is_back, __u64 now)
{
	if (!counters_read)
		read_counters(cpu, 0);
	charge(subject, now);
	subject->state = VP_SUBJECT_RUNNING;
	if (!is_back)
		add(subject, VP_COUNT_sched_in, 1);
	if (subject->flags & VP_SUBJECT_RAN && subject->cpu != bpf_get_smp_processor_id())
		add(subject, VP_COUNT_migrations, 1);
	intervals_note_pcpu(cpu, subject);
	if (unit == VP_UNIT_TIME && now >= subject->due_at)
		close_part(cpu, subject, now, 0);
}

/* A subject per pCPU counts vCPUs only, or without a hypervisor all tasks except the idle task. */
static __always_inline bool counts_on_pcpu(struct task_struct *task)
{
	return native ? task->pid != 0 : kvm_notifier_of_known_task(task) != 0;
}

/* For a subject per pCPU, an exit ends when its vCPU loses the pCPU. */
static __always_inline void note_switch_of_pcpu(struct interval_cpu *cpu, bool runnable,
						struct task_struct *prev, struct task_struct *next)
{
	struct vp_subject *subject = subject_at(cpu->slot);

	if (!subject)
		return;
	if (counts_on_pcpu(prev))
		count_out(subject, runnable);
	if (counts_on_pcpu(next))
		add(subject, VP_COUNT_sched_in, 1);
	__u64 now = bpf_ktime_get_ns();
	charge_guest(subject, now);
	intervals_count_exit(subject, now);
	subject->flags &= ~VP_SUBJECT_IN_GUEST;
	subject->vmcb.vmcb = 0; /* the next vCPU has its own */
	charge(subject, now);
	subject->state = next->pid ? VP_SUBJECT_RUNNING : VP_SUBJECT_BLOCKED;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct interval_cpu *cpu = intervals_enter();
	bool runnable = preempted || !task_state(prev);

	if (!cpu)
		return 0;
	bool switched = multiplexing && prev->pid == cpu->switcher;
	if (switched)
		cpu->on = cpu->set;
	if (per == VP_PER_PCPU) {
		note_switch_of_pcpu(cpu, runnable, prev, next);
		leave(cpu);
		return 0;
	}
	__u64 now = bpf_ktime_get_ns();
	__u32 out = cpu->slot, in = find_slot(next->pid);
	struct vp_subject *leaves = subject_at(out);
	bool is_back = switched && bring_back(cpu, in);
	if (leaves && !(leaves->flags & VP_SUBJECT_OVER)) {
		if (multiplexing && runnable && next->pid == cpu->switcher)
			take_aside(cpu, leaves, now);
		else
			intervals_take_out(cpu, leaves, prev, runnable, now);
	}
	struct vp_subject *comes = subject_at(in);
	cpu->slot = in;
	if (comes && !(comes->flags & VP_SUBJECT_OVER))
		intervals_take_in(cpu, comes, leaves != 0, is_back, now);
	leave(cpu);
	return 0;
}

static __always_inline int note_wakeup(struct task_struct *task)
{
	struct vp_subject *subject;

	if (!enabled)
		return 0;
	if (per == VP_PER_PCPU) {
		struct interval_cpu *cpu = this_cpu();
		subject = cpu && counts_on_pcpu(task) ? subject_at(cpu->slot) : 0;
	} else {
		subject = subject_at(find_slot(task->pid));
	}
	if (!subject)
		return 0;
	__sync_fetch_and_add(&subject->counts[VP_COUNT_wakeups], 1);
	/* A sleeping subject has no pCPU: no other program writes to it until it runs. */
	if (per != VP_PER_PCPU && subject->state == VP_SUBJECT_BLOCKED) {
		charge(subject, bpf_ktime_get_ns());
		subject->state = VP_SUBJECT_WAITING;
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(note_wakeup_old, struct task_struct *task)
{
	return note_wakeup(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(note_wakeup_new, struct task_struct *task)
{
	return note_wakeup(task);
}

/* Children of a counted task are counted, too. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(note_fork, struct task_struct *parent, struct task_struct *child)
{
	if (!enabled || per != VP_PER_TASK || !find_slot(parent->pid))
		return 0;
	make_slot(child->tgid, child->pid, VP_VCPU_UNKNOWN, bpf_ktime_get_ns());
	return 0;
}

static __always_inline void begin_here(struct interval_cpu *cpu)
{
	if (per == VP_PER_PCPU) {
		__u32 slot = bpf_get_smp_processor_id() + 1;
		struct vp_subject *subject = subject_at(slot);
		if (!subject)
			return;
		subject->vcpu = slot - 1;
		begin_subject(subject, bpf_ktime_get_ns());
		install(cpu, subject, slot, subject->begin);
		return;
	}
	intervals_find_subject(cpu, false);
}

/* Starts or ends a pCPU or a subject, on request of user space. */
SEC("raw_tp")
int do_here(struct bpf_raw_tracepoint_args *context)
{
	const __u32 last = VP_INTERVAL_PARTIAL | VP_INTERVAL_LAST;
	__u64 command = context->args[0];
	struct interval_cpu *cpu = this_cpu();

	/* Usually an interrupt during another program's work; a retry succeeds. */
	if (!cpu || cpu->busy)
		return 1;
	set_busy(cpu, 1);
	if (command == VP_SWITCHES_HERE) {
		cpu->switcher = (__u32)context->args[1];
	} else if (command == VP_BEGIN_HERE) {
		begin_here(cpu);
	} else if (command == VP_FORGET_HERE) {
		__builtin_memset(cpu->now, 0, sizeof(cpu->now));
	} else {
		struct vp_subject *subject =
		    subject_at(command == VP_END_HERE ? cpu->slot : (__u32)context->args[1]);
		if (subject && !(subject->flags & VP_SUBJECT_OVER)) {
			if (command == VP_END_HERE)
				take_all(cpu, subject);
			close_interval(subject, bpf_ktime_get_ns(), last);
			subject->flags |= VP_SUBJECT_OVER;
		}
	}
	set_busy(cpu, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
