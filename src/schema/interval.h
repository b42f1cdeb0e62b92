/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of intervals in addition to perf's; shared by the recipe parser, the BPF programs and the
 * report. */
#ifndef VP_SCHEMA_INTERVAL_H
#define VP_SCHEMA_INTERVAL_H

/* CLASS(identifier, name in recipes, meaning): classes of VM exits. An exit is counted at the
 * following VM entry. */
#define VP_EXIT_CLASSES(CLASS)                                                                     \
	CLASS(interrupt, "interrupt", "host interrupt or NMI")                                     \
	CLASS(page_fault, "page-fault", "nested page fault or page fault, without MMIO")           \
	CLASS(mmio, "mmio", "MMIO access")                                                         \
	CLASS(io, "io", "port I/O access")                                                         \
	CLASS(msr, "msr", "MSR or system register access")                                         \
	CLASS(halt, "halt", "HLT, MWAIT or WFI")                                                   \
	CLASS(hypercall, "hypercall", "VMCALL, VMMCALL, HVC or SMC")                               \
	CLASS(cpuid, "cpuid", "CPUID")                                                             \
	CLASS(pause, "pause", "PAUSE loop")                                                        \
	CLASS(window, "window", "interrupt window open")                                           \
	CLASS(other, "other", "any other exit")

/* COUNT(identifier, name in recipes, unit, meaning): events of the hypervisor and the scheduler. */
#define VP_INTERVAL_COUNTS(COUNT)                                                                  \
	COUNT(entries, "entries", "", "VM entries")                                                \
	COUNT(exits, "exits", "", "VM exits followed by an entry")                                 \
	COUNT(inject_interrupt, "inject:interrupt", "", "interrupts injected into the guest")      \
	COUNT(inject_exception, "inject:exception", "",                                            \
	      "exceptions injected, including page faults")                                        \
	COUNT(inject_page_fault, "inject:page-fault", "", "page faults injected")                  \
	COUNT(sched_in, "sched:in", "", "times scheduled in")                                      \
	COUNT(sched_out, "sched:out", "", "times scheduled out")                                   \
	COUNT(preempted, "sched:preempted", "", "times preempted while runnable")                  \
	COUNT(migrations, "sched:migrations", "", "migrations to another pCPU")                    \
	COUNT(wakeups, "wakeups", "", "wake-ups")                                                  \
	COUNT(time, "time", "ns", "wall time")                                                     \
	COUNT(time_running, "time:running", "ns", "time on a pCPU")                                \
	COUNT(time_waiting, "time:waiting", "ns", "time runnable, waiting for a pCPU")             \
	COUNT(time_blocked, "time:blocked", "ns", "time blocked")                                  \
	COUNT(time_guest, "time:guest", "ns", "time from VM entries to VM exits")                  \
	COUNT(time_exits, "time:exits", "ns", "time from VM exit to entry while on a pCPU")

/* GUEST(identifier, name in recipes, meaning): events of the guest kernel, counted on the vCPU's
 * own CPU. */
#define VP_GUEST_COUNTS(GUEST)                                                                     \
	GUEST(switches, "guest:context-switches", "context switches")                              \
	GUEST(faults, "guest:page-faults", "page faults")                                          \
	GUEST(major_faults, "guest:major-faults", "page faults that needed I/O")                   \
	GUEST(interrupts, "guest:interrupts", "device interrupts")                                 \
	GUEST(timer, "guest:timer-interrupts", "local timer interrupts")                           \
	GUEST(forks, "guest:forks", "new tasks, on all CPUs of the guest")                         \
	GUEST(system_calls, "guest:system-calls", "system calls (needs vperf-agent in the guest)")

#define VP_ENUM_CLASS(id, ...) VP_EXITS_##id,
enum vp_exit_class { VP_EXIT_CLASSES(VP_ENUM_CLASS) VP_EXIT_CLASS_COUNT };
#undef VP_ENUM_CLASS

/* Numbers of the counts: these, then exits by class, then exit time by class. */
#define VP_ENUM_COUNT(id, ...) VP_COUNT_##id,
enum vp_interval_count {
	VP_INTERVAL_COUNTS(VP_ENUM_COUNT) VP_COUNT_BY_CLASS,
	VP_COUNT_TIME_BY_CLASS = VP_COUNT_BY_CLASS + VP_EXIT_CLASS_COUNT,
	VP_COUNTS = VP_COUNT_TIME_BY_CLASS + VP_EXIT_CLASS_COUNT
};
#undef VP_ENUM_COUNT

#define VP_ENUM_GUEST(id, ...) VP_GUEST_##id,
enum vp_guest_count { VP_GUEST_COUNTS(VP_ENUM_GUEST) VP_GUEST_COUNT };
#undef VP_ENUM_GUEST

/* Bits of the events that guest kernels count by themselves. */
#define VP_GUEST_IN_MEMORY ((1U << VP_GUEST_COUNT) - 1 - (1U << VP_GUEST_system_calls))

/* The unit that closes an interval. */
enum vp_interval_unit { VP_UNIT_EVENT, VP_UNIT_EXITS, VP_UNIT_TIME };
/* Subjects of intervals. */
enum vp_interval_per { VP_PER_VCPU, VP_PER_TASK, VP_PER_PCPU };
/* Source of an event's count. */
enum vp_event_source { VP_FROM_COUNTER, VP_FROM_COUNT, VP_FROM_GUEST };

enum {
	VP_EVENTS_MAX = 64,   /* events of a recipe */
	VP_COUNTERS_MAX = 32, /* perf events among them */
	VP_SETS_MAX = 32,     /* counter sets of a recipe */
	VP_LIVE_ALL =
	    1000000000 /* interval_value's `live` for an event that was counted all the time */
};

#endif
