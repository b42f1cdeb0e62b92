/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start and end of address spaces: forks, execs and exits of this kernel, and an iterator over
 * existing tasks.
 *
 * Only fields that CO-RE relocates are used, so vmlinux.h is not needed: the structs below
 * declare them. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "guest/task_events.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct mm_struct {
	void *pgd;
};

struct signal_struct {
	atomic_t live; /* threads that have not exited */
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

enum { TASK_IS_KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD of linux/sched.h */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 * 1024 * 1024);
} task_events SEC(".maps");

/* Events lost in a full ring. */
unsigned long long lost = 0;
/* The agent sleeps until this much can be read. */
unsigned long long wakeup_bytes = 1024 * 1024;
/* Address for read_kernel to read, and the result. */
unsigned long long kernel_address = 0;
unsigned long long kernel_value = 0;
long kernel_error = 0;

static __always_inline void task_events_describe(struct vp_task_event *task_event,
						 struct task_struct *task,
						 enum vp_task_event_kind kind)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	task_event->time_ns = bpf_ktime_get_ns();
	task_event->kind = kind;
	task_event->tgid = (unsigned int)BPF_CORE_READ(task, tgid);
	BPF_CORE_READ_STR_INTO(&task_event->comm, task, comm);
	if (mm)
		task_event->pgd = (unsigned long long)BPF_CORE_READ(mm, pgd);
}

static __always_inline void task_events_send(struct vp_task_event *task_event)
{
	__u64 waiting = bpf_ringbuf_query(&task_events, BPF_RB_AVAIL_DATA);
	__u64 flags = waiting > wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;

	if (bpf_ringbuf_output(&task_events, task_event, sizeof(*task_event), flags))
		__sync_fetch_and_add(&lost, 1);
}

SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *parent = (struct task_struct *)context->args[0];
	struct task_struct *child = (struct task_struct *)context->args[1];
	struct mm_struct *mm = BPF_CORE_READ(child, mm);
	struct vp_task_event task_event = {0};

	task_event.parent = (unsigned int)BPF_CORE_READ(parent, tgid);
	/* Threads share the address space, kernel threads have none. */
	if (!mm || (unsigned int)BPF_CORE_READ(child, tgid) == task_event.parent)
		return 0;
	task_event.shared = mm == BPF_CORE_READ(parent, mm);
	task_events_describe(&task_event, child, VP_TASK_FORK);
	task_events_send(&task_event);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *context)
{
	struct vp_task_event task_event = {0};

	task_events_describe(&task_event, (struct task_struct *)context->args[0], VP_TASK_EXEC);
	task_events_send(&task_event);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	struct vp_task_event task_event = {0};

	/* The tracepoint fires for each thread; do_exit() has already decremented the count. */
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	if (BPF_CORE_READ(task, flags) & TASK_IS_KERNEL_THREAD)
		return 0;
	task_events_describe(&task_event, task, VP_TASK_EXIT);
	task_events_send(&task_event);
	return 0;
}

SEC("iter/task")
int each_task(struct bpf_iter__task *context)
{
	struct seq_file *seq = context->meta->seq;
	struct task_struct *task = context->task;
	struct vp_task_event task_event = {0};

	/* Kernel threads borrow address spaces. */
	if (!task || (BPF_CORE_READ(task, flags) & TASK_IS_KERNEL_THREAD))
		return 0;
	task_events_describe(&task_event, task, VP_TASK_EXISTING);
	if (task_event.pgd)
		bpf_seq_write(seq, &task_event, sizeof(task_event));
	return 0;
}

SEC("iter/task")
int read_kernel(struct bpf_iter__task *context)
{
	if (context->meta->seq_num)
		return 0;
	kernel_error =
	    bpf_probe_read_kernel(&kernel_value, sizeof(kernel_value), (void *)kernel_address);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
