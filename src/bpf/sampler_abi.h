/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of the sampling program, shared by sampler.bpf.c and collect/programs/sampler.c. */
#ifndef VP_BPF_SAMPLER_ABI_H
#define VP_BPF_SAMPLER_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/busy.h"

/*
 * Detection of samples in guests. By perf works everywhere, even if the guest RIP can only be read
 * by the CPU (Intel, in an NMI), but output through perf costs as much as the rest of a sample. By
 * IRQ and by NMI use KVM's handling_intr_from_guest, which is set for the interrupt or NMI that
 * ended the guest's run.
 */
enum vp_seen_by { VP_SEEN_BY_PERF = 0, VP_SEEN_BY_IRQ = 1, VP_SEEN_BY_NMI = 2 };

/* Time, RIP and weight of a sample whose NMI interrupted a program that was writing to the ring:
 * that program writes the sample when it is done. */
struct vp_held_sample {
	__u64 time; /* 0: none */
	__u64 ip;
	__u64 weight; /* as in sample_period; 0: the default */
};

/*
 * By IRQ and by NMI, the programs write records of the schema to a ring per pCPU in shared memory:
 * this header, `ring_size` bytes (a power of two), and space for a record that starts in them and
 * ends beyond. Only programs on the pCPU write, one at a time: interrupts are off in each, and an
 * NMI that finds one of them writing holds its sample. Only user space reads.
 *
 * `head` and `tail` count bytes; modulo `ring_size` they are the offset of the next record. A
 * record at the end of the ring is not split: the next one starts the next lap, and `lap_end` is
 * the end of the previous lap in the ring.
 */
struct vp_ring {
	__u64 head; /* end of written data; written by the programs */
	__u64 lap_end;
	__u64 lost; /* number of lost records */
	/* Private to the programs: cached data of the last sample. */
	__u64 last_notifier;
	struct vp_vmcb_memo last_vmcb;
	__u32 last_tid, last_vcpu, last_renames;
	__u32 last_identity; /* index in identity_vcpus */
	__u64 hit_ip;        /* RIP at which KVM receives interrupts of the guest */
	__u64 reported;      /* time of the last wakeup of user space for a process */
	__u32 writing;       /* a program is writing a record */
	__u32 must_ring;     /* the reader must be woken */
	struct vp_held_sample held;
	struct vp_busy busy;
	__u64 tail;         /* end of read data; written by user space, in a separate cache line */
	__u64 hit_register; /* at hit_ip, the register with the exit's code (Arm before v5.17) */
	__u64 more_padding[6];
};
/* Maximum written at once: a sample, preceded by its host and guest thread. */
#define VP_SAMPLE_SPARE 192u
/* The same with stacks. */
#define VP_RING_SPARE 49152u

/* Maximum numbers of guest processes with an interpreter, and of Python threads. */
enum { VP_INTERPRETERS = 1024, VP_INTERPRETED_THREADS = 8192 };

/* How functions are found. Python: offsets of members, from a thread state on, as in struct
 * vp_python_layout. V8: the distances of the context and of the function below the frame pointer,
 * and the offset of the function's SharedFunctionInfo. */
struct vp_interpreted_layout {
	__u32 native_id, frame, frame_in, code, previous, owner;
	__u32 entry_value, entry_is_empty;
	__u32 context_below, function_below, shared;
	__u32 reserved;
};
/* Value of frame_in: the thread state refers to the frame itself. */
#define VP_INTERPRETED_DIRECT 0xffffu

enum vp_interpreter_kind { VP_INTERPRETER_JAVA, VP_INTERPRETER_PYTHON, VP_INTERPRETER_V8 };

/* Address ranges of an interpreter's code: samples there count as the function that it executes.
 * Python: with stacks it is the second range, as other functions have their callers. V8: both
 * ranges, of compiled code and of V8's own, which includes the interpreter. */
struct vp_interpreter {
	__u64 low, high;
	__u64 loop_low, loop_high;
	__u32 kind; /* enum vp_interpreter_kind */
	__u32 reserved;
	struct vp_interpreted_layout layout;
};

/* A thread of a Python process. The thread state's memory may have been freed: its native id shows
 * whether it is still the thread's. */
struct vp_interpreted_thread {
	__u64 state;
	__u32 tgid, native_id;
};

/*
 * By perf, one layout for all: the kernel's sample header, which precedes it, shows whether and
 * where the sample hit the guest. perf calls KVM, for all vendors. The program adds data that perf
 * lacks.
 */
enum vp_raw_kind { VP_RAW_SAMPLE = 1, VP_RAW_VCPU_IN = 2, VP_RAW_VCPU_OUT = 3, VP_RAW_CHAIN = 4 };

struct vp_raw_record {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 host_ip;
	__u64 as_root;
	__u32 kind;
	__u32 pid, tid;
	__u32 vcpu; /* or VP_VCPU_UNKNOWN */
	__u32 exit_reason;
	__u32 flags; /* enum vp_flag of schema/records.h, and VP_RAW_… */
	__u32 other_tid;
	__u32 cpl;
	char comm[16];
	/* The guest's current task, with VP_BY_MEMORY. */
	__u32 guest_pid, guest_tid;
	__u64 guest_task; /* guest address of its task_struct */
	__u64 events;     /* events since the previous sample: its period */
	char guest_comm[16];
	/* The method of the innermost frame, if the guest process has an interpreter; the program
	 * counter, which only perf has, shows whether the interpreter was running. 0: unknown. */
	__u64 method;
};

#define VP_RAW_ON_VCPU 0x100u  /* the thread is inside KVM's vCPU loop */
#define VP_RAW_NEW_TASK 0x200u /* emit the name of the guest task */
#define VP_RAW_IN_HOST 0x400u  /* perf attributes the sample to the guest, wrongly */

/* Starts like a vp_raw_record; followed by the stack records of the next sample. They are made
 * after the ring's header. */
struct vp_raw_chain {
	__u64 reserved[3];
	__u32 kind;
	__u32 used; /* bytes of records */
};

#endif
