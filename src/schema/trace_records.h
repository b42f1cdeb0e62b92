/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of `vperf record --trace`, once: the structs that the programs in the kernel write,
 * and the event classes that a recording defines (schema/trace_event.h). Ids follow the order here:
 * the first is VP_ID_DEFINED.
 *
 * A record is a struct vp_defined_record. Fields are ordered so that the C struct has no padding
 * before its end: the programs write its first VP_TRACE_SIZE_name bytes.
 */
#ifndef VP_SCHEMA_TRACE_RECORDS_H
#define VP_SCHEMA_TRACE_RECORDS_H

#include "schema/records.h"

/* Number of thread names that a pCPU's stream keeps; an evicted name is written again before the
 * thread's next event. */
enum { VP_TRACE_NAMES = 512 };

#define VP_TRACE_FIELDS_sched_switch(FIELD)                                                        \
	FIELD(u32, dec, prev_tid, "thread that left the pCPU; 0: the idle task")                   \
	FIELD(u32, dec, next_tid, "thread that got it")                                            \
	FIELD(u16, hex, prev_state, "bits of the kernel: why it left; 0: it is runnable")          \
	FIELD(u8, dec, preempted, "1: it was preempted, whatever `prev_state` is")

#define VP_TRACE_FIELDS_sched_wakeup(FIELD)                                                        \
	FIELD(u32, dec, tid, "thread that had the pCPU: the waker, or who was interrupted")        \
	FIELD(u32, dec, woken_tid, "thread that was woken")                                        \
	FIELD(u16, dec, target_cpu, "pCPU whose run queue it is in")
#define VP_TRACE_FIELDS_sched_wakeup_new(FIELD) VP_TRACE_FIELDS_sched_wakeup(FIELD)

#define VP_TRACE_FIELDS_kvm_entry(FIELD)                                                           \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")

#define VP_TRACE_FIELDS_kvm_exit(FIELD)                                                            \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u64, hex, guest_rip, "guest RIP; 0: unknown, or VM not selected")                    \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, hex, reason, "why, in the vendor's encoding")                                   \
	FIELD(u32, hex, detail, "number of the port, MSR or register; vector; offset; page + 1")   \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u16, dec, vendor,                                                                    \
	      "encoding of reason: 0 it is unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")                \
	FIELD(u16, dec, detail_kind, VP_DETAIL_KINDS_TEXT)

#define VP_TRACE_FIELDS_kvm_inj_virq(FIELD)                                                        \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u16, dec, vector, "vector of the interrupt that the guest gets")

#define VP_TRACE_FIELDS_irq_handler_entry(FIELD)                                                   \
	FIELD(u32, dec, tid, "thread that was interrupted")                                        \
	FIELD(u32, dec, irq, "number of the device's interrupt, as in /proc/interrupts")
#define VP_TRACE_FIELDS_irq_handler_exit(FIELD) VP_TRACE_FIELDS_irq_handler_entry(FIELD)

#define VP_TRACE_FIELDS_softirq_entry(FIELD)                                                       \
	FIELD(u32, dec, tid, "thread that was interrupted, or ksoftirqd")                          \
	FIELD(u32, dec, vec, "number of the soft interrupt, in the order of /proc/softirqs")
#define VP_TRACE_FIELDS_softirq_exit(FIELD) VP_TRACE_FIELDS_softirq_entry(FIELD)

#define VP_TRACE_FIELDS_local_timer_entry(FIELD)                                                   \
	FIELD(u32, dec, tid, "thread that was interrupted")                                        \
	FIELD(u32, dec, vector, "vector of the interrupt")
#define VP_TRACE_FIELDS_local_timer_exit(FIELD) VP_TRACE_FIELDS_local_timer_entry(FIELD)

#define VP_TRACE_FIELDS_guest_switch(FIELD)                                                        \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, guest_tid, "thread that the guest runs on the vCPU; 0: its idle task")     \
	FIELD(u32, dec, guest_pid, "its process")                                                  \
	FIELD(u32, dec, switches,                                                                  \
	      "switches that the guest has counted since this vCPU's event before")                \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u16, hex, switch_flags,                                                              \
	      "1 first sight, 2 in the middle of a switch, 4 events before it were lost, 8 the "   \
	      "count is not believed, 16 the thread is unknown")

/* VP_TRACE_EVENT(set, system, name, meaning). Append only. */
#define VP_TRACE_EVENTS(EVENT)                                                                     \
	EVENT(sched, sched, sched_switch, "a pCPU changed its thread")                             \
	EVENT(sched, sched, sched_wakeup, "a thread was woken")                                    \
	EVENT(sched, sched, sched_wakeup_new, "a new thread was started")                          \
	EVENT(kvm, kvm, kvm_entry, "a vCPU entered its guest")                                     \
	EVENT(kvm, kvm, kvm_exit, "a vCPU left its guest")                                         \
	EVENT(kvm, kvm, kvm_inj_virq, "KVM injected an interrupt into a guest")                    \
	EVENT(irq, irq, irq_handler_entry, "a device's interrupt handler began")                   \
	EVENT(irq, irq, irq_handler_exit, "it returned")                                           \
	EVENT(irq, irq, softirq_entry, "a soft interrupt began")                                   \
	EVENT(irq, irq, softirq_exit, "it ended")                                                  \
	EVENT(irq, irq_vectors, local_timer_entry, "the pCPU's timer interrupt began")             \
	EVENT(irq, irq_vectors, local_timer_exit, "it ended")                                      \
	EVENT(guest, vperf, guest_switch,                                                          \
	      "at a VM exit: the guest has switched threads since the one before")

#define VP_TRACE_KIND(set, system, name, meaning) VP_TRACE_KIND_##name,
enum vp_trace_kind { VP_TRACE_EVENTS(VP_TRACE_KIND) VP_TRACE_EVENTS_COUNT };

#define VP_TRACE_FIELD_SIZE(type, style, name, meaning) +sizeof(vp_type_##type)
#define VP_TRACE_STRUCT(set, system, name, meaning)                                                \
	struct vp_trace_##name {                                                                   \
		__u64 time;                                                                        \
		__u16 id;                                                                          \
		__u16 size;                                                                        \
		VP_TRACE_FIELDS_##name(VP_STRUCT_FIELD)                                            \
	} VP_RECORD_PACKED;                                                                        \
	enum {                                                                                     \
		VP_TRACE_ID_##name = 256 + VP_TRACE_KIND_##name,                                   \
		VP_TRACE_SIZE_##name = 12 VP_TRACE_FIELDS_##name(VP_TRACE_FIELD_SIZE)              \
	};
VP_TRACE_EVENTS(VP_TRACE_STRUCT)

/* Bits of guest_switch.switch_flags. */
enum vp_guest_switch_flag {
	VP_SWITCH_FIRST = 1,       /* the time before is unknown */
	VP_SWITCH_MIDDLE = 2,      /* the guest kernel is in the middle of a switch: the thread is
				      leaving or arriving */
	VP_SWITCH_LOST = 4,        /* earlier events were lost; their switches are counted here */
	VP_SWITCH_IMPLAUSIBLE = 8, /* the guest's counter decreased or advanced too far */
	VP_SWITCH_UNKNOWN = 16     /* the current task could not be read */
};

#endif
