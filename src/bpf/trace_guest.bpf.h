/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Part of trace.bpf.c: at a VM exit, records the guest CPU's current thread and its kernel's switch
 * count, if they have changed.
 *
 * A guest kernel counts a switch (rq.nr_switches), writes its choice (rq.curr), and then changes
 * the stack and the current task. An exit may happen in between. Outside guest mode none of this
 * changes: the state at an exit is that at the next entry.
 */
#ifndef VP_BPF_TRACE_GUEST_H
#define VP_BPF_TRACE_GUEST_H

#include "bpf/guest_current.bpf.h"
#include "bpf/trace_ring.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_IDENTITY_VCPUS);
	__type(key, __u32);
	__type(value, struct vp_guest_run);
} guest_runs SEC(".maps");

/* Set by the loader. */
const volatile __u32 sees_guests = 0;

/* Minimum time (ns) between two context switches of any kernel. */
enum { MIN_SWITCH_NS = 16 };

struct observed {
	__u64 count, chosen, task;
};

static __always_inline bool look(const struct vp_guest_run *run,
				 const struct vp_identity_vcpu *vcpu, struct observed *ret)
{
	return run->count_hva && run->chosen_hva &&
	       !bpf_probe_read_user(&ret->count, sizeof(ret->count), (void *)run->count_hva) &&
	       !bpf_probe_read_user(&ret->chosen, sizeof(ret->chosen), (void *)run->chosen_hva) &&
	       !bpf_probe_read_user(&ret->task, sizeof(ret->task), (void *)vcpu->current_hva);
}

/* Writes the name of a guest thread that was not named recently; false: the ring is full. */
static __always_inline bool name_guest(struct vp_trace_cpu *cpu, struct vp_identity_vcpu *vcpu,
				       __u32 pid, __u64 now, const struct guest_current *current)
{
	if (!is_new_name(vcpu, pid, current))
		return true;
	struct vp_guest_task record = {.time = now,
				       .id = VP_ID_guest_task,
				       .vm = pid,
				       .guest_pid = vcpu->tgid,
				       .guest_tid = vcpu->tid,
				       .task = vcpu->task};
	__builtin_memcpy(record.comm, current->comm, sizeof(record.comm));
	if (PUT_RECORD(cpu, record, sizeof(record)))
		return true;
	bpf_map_delete_elem(&identity_names, &vcpu->name);
	vcpu->name = 0;
	return false;
}

/* Number of switches since the last record, and its flags. */
static __always_inline __u32 compare(const struct vp_guest_run *run,
				     const struct observed *observed, __u64 now, __u32 *flags)
{
	__u64 made = observed->count - run->count;

	if (!run->known) {
		*flags =
		    VP_SWITCH_FIRST | (observed->chosen != observed->task ? VP_SWITCH_MIDDLE : 0);
		return 0;
	}
	*flags = run->lost ? VP_SWITCH_LOST : 0;
	/* The guest controls the value: a decrease appears as a large increase. */
	if (made >> 32 || made > (now - run->checked) / MIN_SWITCH_NS + 1) {
		*flags |= VP_SWITCH_IMPLAUSIBLE | VP_SWITCH_MIDDLE;
		return 0;
	}
	/* One switch, but the same task: it was counted just before the choice. */
	if (observed->chosen != observed->task || (made == 1 && observed->task == run->task))
		*flags |= VP_SWITCH_MIDDLE;
	return (__u32)made;
}

static __noinline int send_guest(struct vp_trace_cpu *cpu, struct vp_identity_vcpu *vcpu,
				 struct vp_guest_run *run, const struct observed *observed,
				 __u64 now)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct guest_current current = {};
	__u32 flags = 0;

	if (!cpu || !vcpu || !run || !observed)
		return true;
	__u32 switches = compare(run, observed, now, &flags);
	if (find_task(vcpu) && read_task(vcpu, &current)) {
		vcpu->good++;
		/* If the name does not fit, it is lost; the thread is recorded nevertheless. */
		name_guest(cpu, vcpu, id >> 32, now, &current);
	} else {
		vcpu->failed++;
		vcpu->tid = vcpu->tgid = 0;
		flags |= VP_SWITCH_UNKNOWN;
	}
	vcpu->checked = 0;
	if (!PUT_AT(cpu, guest_switch, now, .tid = (__u32)id, .vm = id >> 32,
		    .guest_tid = vcpu->tid, .guest_pid = vcpu->tgid, .switches = switches,
		    .vcpu = (__u16)vcpu->key, .switch_flags = (__u16)flags)) {
		run->lost = run->known;
		return false;
	}
	run->count = observed->count;
	run->chosen = observed->chosen;
	run->task = observed->task;
	run->checked = now;
	run->known = 1;
	run->lost = run->blind = 0;
	return true;
}

/* The previous task is now unknown; counting continues. */
static __noinline int report_blind(struct vp_trace_cpu *cpu, struct vp_guest_run *run, __u32 number,
				   __u64 now)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (!cpu || !run || !run->known || run->blind)
		return true;
	if (!PUT_AT(cpu, guest_switch, now, .tid = (__u32)id, .vm = id >> 32, .vcpu = (__u16)number,
		    .switch_flags = VP_SWITCH_UNKNOWN))
		return false;
	run->blind = 1;
	return true;
}

/* False: the ring had no space for its record. */
static __noinline int record_guest(struct vp_trace_cpu *cpu, __u64 id, __u32 number, __u64 now)
{
	struct observed observed = {};

	if (!cpu)
		return true;
	struct vp_identity_vcpu *vcpu = find_identity(id >> 32, number, &cpu->guest_index);
	__u32 index = cpu->guest_index;
	struct vp_guest_run *run = vcpu ? bpf_map_lookup_elem(&guest_runs, &index) : 0;
	if (!run)
		return true;
	if (!look(run, vcpu, &observed))
		return report_blind(cpu, run, number, now);
	if (run->known && !run->blind && observed.count == run->count &&
	    observed.chosen == run->chosen && observed.task == run->task) {
		run->checked = now;
		return true;
	}
	return send_guest(cpu, vcpu, run, &observed, now);
}

#endif
