/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of account.bpf.c: maps, slots of vCPUs, and state changes. */
#ifndef VP_BPF_ACCOUNT_STATE_H
#define VP_BPF_ACCOUNT_STATE_H

#include "bpf/account_abi.h"
#include "bpf/guest_visit.bpf.h"
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

/* Sized by the loader: one slot per vCPU, each with a row of exits and of sites. */
MMAPPED_ARRAY(vcpus, struct vp_account_vcpu);
MMAPPED_ARRAY(exits, struct vp_account_exit);
MMAPPED_ARRAY(sites, struct vp_account_site);
MMAPPED_ARRAY(cpus, struct vp_account_cpu);

/* Free slots; filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(value_size, sizeof(__u32));
} slots SEC(".maps");

/* From a thread's id to its vCPU's slot + 1. The size is sufficient: each slot has at most one
 * thread, and an id is removed when the thread has ended, before its slot is reused. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slot_of_tid SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vp_thief_key);
	__type(value, struct vp_thief_cost);
} thieves SEC(".maps");

/* Totals of thieves that do not fit into `thieves`: one row per slot. */
MMAPPED_ARRAY(other_thieves, struct vp_thief_cost);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct vp_account_task);
} tasks SEC(".maps");

/* Sites evicted from `sites`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vp_site_key);
	__type(value, struct vp_site_cost);
} old_sites SEC(".maps");

/* struct vp_vcpu_span at the end of each; sized by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} states SEC(".maps");

/* Set by the loader: emit every span of a vCPU's time, not only sums. */
const volatile __u32 emit_states = 0;

/* … not every exit is timed: see leave_untimed(). */
const volatile __u32 samples_exits = 0;
/* … only the scheduler's programs run: a running vCPU is always GUEST. */
const volatile __u32 only_states = 0;

/* Whether a vCPU thread may have an id with these low bits: a cheap test that excludes most
 * threads. */
__u8 may_be_vcpu[VP_TID_BITS];
/* Not a map: access costs a third of a lookup. */
struct vp_account_here heres[VP_MAX_PCPUS];
struct vp_account_lost lost;
__u64 lost_states;
__u64 old_blocks; /* number of memory blocks in `old_sites` */
/* Nothing is counted until the loader sets it. */
volatile __u32 enabled;

/* Intel SDM, volume 3, appendix C: exits for the host's own timers and devices. */
enum { VMX_EXTERNAL_INTERRUPT = 1, VMX_PREEMPTION_TIMER = 52 };

static __always_inline struct vp_account_vcpu *vcpu_at(__u32 slot)
{
	__u32 index = slot - 1;

	return bpf_map_lookup_elem(&vcpus, &index);
}

static __always_inline struct vp_account_here *here_of(__u32 cpu)
{
	struct vp_account_here *here = &heres[cpu & (VP_MAX_PCPUS - 1)];

	barrier_var(here); /* otherwise the compiler recomputes it again and again */
	return here;
}

static __always_inline struct vp_account_here *this_here(void)
{
	return here_of(bpf_get_smp_processor_id());
}

/* Slot + 1 of the thread's vCPU, or 0. */
static __always_inline __u32 find_slot(__u32 tid)
{
	if (!may_be_vcpu[tid & (VP_TID_BITS - 1)])
		return 0;
	__u32 *slot = bpf_map_lookup_elem(&slot_of_tid, &tid);
	struct vp_account_vcpu *vcpu = slot ? vcpu_at(*slot) : 0;
	return vcpu && vcpu->tid == tid ? *slot : 0;
}

static __always_inline bool note_slot(__u32 tid, __u32 slot)
{
	if (bpf_map_update_elem(&slot_of_tid, &tid, &slot, BPF_ANY))
		return false;
	may_be_vcpu[tid & (VP_TID_BITS - 1)] = 1;
	return true;
}

/* The thread has ended. User space frees its slot after reading it. */
static __always_inline void forget_slot(__u32 tid)
{
	bpf_map_delete_elem(&slot_of_tid, &tid);
}

/* Allocates a slot for a new vCPU; returns its index + 1, or 0: the table is full. */
__noinline __u32 make_slot(__u32 tid, __u32 pid, __u64 now)
{
	__u32 slot = 0;
	struct vp_account_vcpu *vcpu;

	if (bpf_map_pop_elem(&slots, &slot) || !(vcpu = vcpu_at(slot))) {
		__sync_fetch_and_add(&lost.vcpus, 1);
		return 0;
	}
	vcpu->tid = tid;
	if (!note_slot(tid, slot)) {
		vcpu->tid = 0;
		bpf_map_push_elem(&slots, &slot, BPF_ANY);
		__sync_fetch_and_add(&lost.vcpus, 1);
		return 0;
	}
	vcpu->pid = pid;
	vcpu->begin = vcpu->since = now;
	vcpu->state = VP_STATE_UNKNOWN;
	vcpu->base = only_states ? VP_STATE_GUEST : VP_STATE_KERNEL;
	vcpu->asleep = VP_STATE_WAITING;
	return slot;
}

/* Emits `ns` in a state that ended at `now`. User space polls often enough that no wakeup is
 * needed. */
static __always_inline void emit_state(const struct vp_account_vcpu *vcpu, __u32 state, __u32 flags,
				       __u64 ns, __u64 now)
{
	struct vp_vcpu_span *record;

	if (!emit_states)
		return;
	record = bpf_ringbuf_reserve(&states, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&lost_states, 1);
		return;
	}
	record->time = now;
	record->id = VP_ID_vcpu_span;
	record->flags = flags | (vcpu->flags & VP_REASON_KNOWN ? VP_HAS_EXIT_REASON : 0);
	record->vm = vcpu->pid;
	record->tid = vcpu->tid;
	record->vcpu = vcpu->flags & VP_NUMBER_KNOWN ? vcpu->number : VP_VCPU_UNKNOWN;
	record->state = state;
	record->vendor = vendor;
	record->reason = vcpu->reason;
	record->cpu = bpf_get_smp_processor_id();
	record->ns = ns;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Charges the time since the last change to the present state; returns it. */
static __always_inline __u64 charge(struct vp_account_vcpu *vcpu, __u64 now)
{
	__u64 passed = now - vcpu->since;
	__u32 state = vcpu->state & (VP_STATE_ROOM - 1);

	if ((__s64)passed <= 0)
		return 0;
	vcpu->states[state] += passed;
	vcpu->since = now;
	emit_state(vcpu, state, 0, passed, now);
	/* Guest time while an exit is open: the exit is not timed. */
	if (vcpu->flags & VP_EXIT_OPEN && state != VP_STATE_KERNEL && state != VP_STATE_GUEST) {
		vcpu->parts[state] += passed;
		vcpu->flags |= VP_EXIT_SPLIT;
	}
	return passed;
}

static __always_inline void end_guest(struct vp_account_vcpu *vcpu, __u64 at)
{
	__u64 passed = at - vcpu->since;

	if ((__s64)passed > 0) {
		vcpu->states[VP_STATE_GUEST] += passed;
		vcpu->since = at;
		emit_state(vcpu, VP_STATE_GUEST, 0, passed, at);
	}
	vcpu->exit_at = vcpu->since;
	vcpu->flags |= VP_EXIT_OPEN;
	vcpu->state = VP_STATE_KERNEL;
}

/* The guest was left, without an event so far: KVM handles interrupts before the tracepoint
 * kvm_exit. */
static __always_inline void leave_guest(struct vp_account_vcpu *vcpu, __u64 now)
{
	end_guest(vcpu, end_of_visit(vcpu->since, now));
	if (vendor == VP_VENDOR_ARM)
		charge(vcpu, now);
}

/* Interrupts the state GUEST of an exit that is not timed, until the present event has ended. */
static __always_inline void stop_guest(struct vp_account_vcpu *vcpu, __u64 now)
{
	if (only_states || (samples_exits && vcpu->flags & VP_EXIT_UNTIMED))
		charge(vcpu, now);
	else
		leave_guest(vcpu, now);
}

static __always_inline bool reason_is_halt(const struct vp_account_vcpu *vcpu)
{
	__u32 reason = vcpu->reason;

	if (!(vcpu->flags & VP_REASON_KNOWN))
		return false;
	if (vendor == VP_VENDOR_AMD)
		return reason == 0x78 || reason == 0x8b || reason == 0x8c || reason == 0xa6;
	if (vendor == VP_VENDOR_ARM)
		return reason == 0x01; /* WFI, WFE */
	return (reason & 0xffff) == 12 || (reason & 0xffff) == 36;
}

#endif
