/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every record type, once. This table drives the C structs, the writer, the reader, the CTF
 * metadata (schema/ctf.c) and docs/format.md (tools/format-doc).
 *
 * A record on disk is a CTF event: the header {u64 time, u16 id} and the record's fields, little
 * endian, without padding. Fields are ordered so that the C struct has no padding either, and each
 * record is a whole number of 8 bytes: the programs in the kernel write them as they are.
 *
 * VP_FIELD(type, style, name, meaning) with type u8 u16 u32 u64 comm words8 words16, style dec hex
 * text. `comm` is 16 bytes of text, zero-terminated if shorter; `words8` is 8 times u64.
 */
#ifndef VP_SCHEMA_RECORDS_H
#define VP_SCHEMA_RECORDS_H

#include <linux/types.h>

#define VP_FIELDS_host_sample(FIELD)                                                               \
	FIELD(u16, hex, flags, "16 a late tick")                                                   \
	FIELD(u32, dec, pid, "process on the pCPU; 0: the idle task")                              \
	FIELD(u32, dec, tid, "thread on the pCPU")                                                 \
	FIELD(u8, dec, mode, "what the sample hit: 1 host kernel, 2 host user space")              \
	FIELD(u8, dec, reserved, "0")                                                              \
	FIELD(u16, dec, reserved_2, "0")                                                           \
	FIELD(u64, hex, ip, "program counter")

#define VP_FIELDS_vcpu_sample(FIELD)                                                               \
	FIELD(u16, hex, flags, "1 exit_reason is known, 16 a late tick")                           \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u8, dec, mode, "what the sample hit: 1 host kernel, 2 host user space")              \
	FIELD(u8, dec, vendor,                                                                     \
	      "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")                 \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u64, hex, ip, "host program counter")                                                \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, reserved, "0")

#define VP_FIELDS_guest_sample(FIELD)                                                              \
	FIELD(u16, hex, flags,                                                                     \
	      "1 exit_reason is known, 2 as_root is known, 4 cpl is known, 16 a late tick, "       \
	      "32 VM not selected by --vm: ip and as_root are 0, "                                 \
	      "128 guest_pid and guest_tid are known, by the guest's memory, "                     \
	      "512 at a VM exit for an interrupt, by the hypervisor's trace, "                     \
	      "1024 ip is the address of a Java method, or of a Python or JavaScript function")    \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u8, dec, mode, "what the sample hit: 4 guest kernel, 5 guest user space")            \
	FIELD(u8, dec, vendor,                                                                     \
	      "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")                 \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u64, hex, ip, "guest RIP")                                                           \
	FIELD(u64, hex, as_root,                                                                   \
	      "guest CR3 (x86; page-table root) as the vCPU holds it; on Intel that of the "       \
	      "current task, by the guest's memory")                                               \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, cpl,                                                                       \
	      "guest privilege level, 0 to 3; on Intel, and with flag 512, 0 or 3, by the "        \
	      "address")                                                                           \
	FIELD(u32, dec, guest_pid, "guest pid (tgid); see flags")                                  \
	FIELD(u32, dec, guest_tid, "its thread")

#define VP_FIELDS_guest_task(FIELD)                                                                \
	FIELD(u16, hex, flags, "1 in user space")                                                  \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, guest_pid, "process of the guest's thread")                                \
	FIELD(u32, dec, guest_tid, "thread of the guest, as in later guest_samples")               \
	FIELD(u64, hex, task, "the guest's address of its task_struct")                            \
	FIELD(comm, text, comm, "its name")

#define VP_FIELDS_guest_regs(FIELD)                                                                \
	FIELD(u16, hex, flags,                                                                     \
	      "2 as_root is known, 4 mode is known, 32 VM not selected by --vm, "                  \
	      "128 guest_pid and guest_tid are known, 256 sp and bp are known, "                   \
	      "2048 also user space of the first and last instructions of system calls")           \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u8, dec, mode, "4 guest kernel, 5 guest user space")                                 \
	FIELD(u8, dec, reserved, "0")                                                              \
	FIELD(u16, dec, reserved_2, "0")                                                           \
	FIELD(u32, dec, guest_pid, "guest pid (tgid); see flags")                                  \
	FIELD(u32, dec, guest_tid, "its thread")                                                   \
	FIELD(u64, hex, ip, "guest RIP")                                                           \
	FIELD(u64, hex, sp, "guest stack pointer")                                                 \
	FIELD(u64, hex, bp, "guest frame pointer (RBP on x86)")                                    \
	FIELD(u64, hex, as_root, "guest CR3 (page-table root)")

#define VP_FIELDS_chain_frames(FIELD)                                                              \
	FIELD(u16, dec, mode,                                                                      \
	      "of which code: 1 host kernel, 2 host user space, 4 guest kernel (64-bit Arm), 5 "   \
	      "guest user space")                                                                  \
	FIELD(u32, dec, tid, "thread of the sample")                                               \
	FIELD(u16, dec, count, "number of valid `ips`")                                            \
	FIELD(u16, dec, end,                                                                       \
	      "why the chain ends: 0 at the outermost frame, 1 too many frames, 2 the page "       \
	      "cannot be read, 3 code without frame pointers, 4 the walk failed, 5 code with "     \
	      "neither unwind table nor frame pointer, 6 an unwind table that leads nowhere, "     \
	      "7 a register that is not known there, 9 the process had no memory any more, 255 "   \
	      "the next record has more")                                                          \
	FIELD(u32, hex, flags,                                                                     \
	      "1 by unwind tables, 2 some of the stack was read after the sample, 4 the second "   \
	      "address is the link register, which may be an older return address, 8 callers of "  \
	      "code without unwind table were guessed: their addresses have bit 63")               \
	FIELD(words8, hex, ips, "program counter, then return addresses, innermost first")

#define VP_FIELDS_chain_stack(FIELD)                                                               \
	FIELD(u16, dec, reserved, "0")                                                             \
	FIELD(u32, dec, tid, "thread of the sample")                                               \
	FIELD(u64, hex, address, "the guest's address of the first of `words`")                    \
	FIELD(words16, hex, words, "part of the guest kernel's stack")

#define VP_FIELDS_sample_period(FIELD)                                                             \
	FIELD(u16, dec, reserved, "0")                                                             \
	FIELD(u32, dec, reserved_2, "0")                                                           \
	FIELD(u64, dec, events,                                                                    \
	      "events of the trigger that the next sample of this stream "                         \
	      "stands for; with `weigh time`, nanoseconds before it in which its pCPU was busy "   \
	      "though it was not sampled")

#define VP_FIELDS_task(FIELD)                                                                      \
	FIELD(u16, dec, reserved, "0")                                                             \
	FIELD(u32, dec, pid, "process of the thread")                                              \
	FIELD(u32, dec, tid, "thread that the following samples of this stream belong to")         \
	FIELD(u32, dec, reserved_2, "0")                                                           \
	FIELD(comm, text, comm, "its name")

#define VP_FIELDS_vcpu_in(FIELD)                                                                   \
	FIELD(u16, hex, flags, "1 exit_reason is known")                                           \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU that got the pCPU")                               \
	FIELD(u8, dec, reserved, "0")                                                              \
	FIELD(u8, dec, vendor,                                                                     \
	      "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")                 \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, other_tid, "thread that had the pCPU before")

#define VP_FIELDS_vcpu_out(FIELD)                                                                  \
	FIELD(u16, hex, flags, "1 exit_reason is known, 8 blocked (else still runnable)")          \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU that left the pCPU")                              \
	FIELD(u8, dec, reserved, "0")                                                              \
	FIELD(u8, dec, vendor,                                                                     \
	      "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")                 \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, other_tid, "thread that has the pCPU now")

#define VP_FIELDS_clock_sync(FIELD)                                                                \
	FIELD(u16, dec, reserved, "0")                                                             \
	FIELD(u32, dec, error_ns, "the two clocks were read within this many nanoseconds")         \
	FIELD(u64, dec, tsc, "time-stamp counter at `time`")                                       \
	FIELD(u64, dec, realtime, "CLOCK_REALTIME at `time`, nanoseconds")

#define VP_FIELDS_vcpu_account(FIELD)                                                              \
	FIELD(u16, hex, flags, "64 the thread ended: this is its last account")                    \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u32, dec, vcpu, "vCPU number, as in KVM")                                            \
	FIELD(u64, dec, begin, "the interval's begin, host CLOCK_MONOTONIC, ns")                   \
	FIELD(u64, dec, end, "its end")                                                            \
	FIELD(u64, dec, guest, "ns in the guest")                                                  \
	FIELD(u64, dec, kernel, "ns in the host kernel, for exits")                                \
	FIELD(u64, dec, poll, "ns of polling before sleep")                                        \
	FIELD(u64, dec, vmm, "ns in the VMM")                                                      \
	FIELD(u64, dec, halted, "ns blocked after HLT or MWAIT")                                   \
	FIELD(u64, dec, waiting, "ns blocked for another reason")                                  \
	FIELD(u64, dec, waking, "ns runnable after a wake-up, waiting for a pCPU")                 \
	FIELD(u64, dec, preempted, "ns runnable, but another thread had the pCPU")                 \
	FIELD(u64, dec, throttled, "ns runnable, but the cgroup's CPU quota was used up")          \
	FIELD(u64, dec, irq, "ns in host interrupts")                                              \
	FIELD(u64, dec, exits, "exits that were followed by an entry")                             \
	FIELD(u64, dec, wakeups, "times the thread was woken")                                     \
	FIELD(u64, dec, preemptions, "preemptions while runnable")                                 \
	FIELD(u64, dec, polls, "halts that polled")                                                \
	FIELD(u64, dec, poll_wasted, "ns of `poll` after which it slept anyway")

#define VP_FIELDS_exit_account(FIELD)                                                              \
	FIELD(u16, dec, vendor, "encoding of reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")    \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, vcpu, "vCPU number, as in KVM")                                            \
	FIELD(u32, hex, reason, "reason of the VM exits, in the vendor's encoding")                \
	FIELD(u64, dec, count, "exits that ended in the interval")                                 \
	FIELD(u64, dec, total, "ns from these exits to the next entries: the sum of all below")    \
	FIELD(u64, dec, max, "the longest so far, ns")                                             \
	FIELD(u64, dec, kernel, "ns in the host kernel")                                           \
	FIELD(u64, dec, poll, "ns of polling before sleep")                                        \
	FIELD(u64, dec, vmm, "ns in the VMM")                                                      \
	FIELD(u64, dec, stolen, "ns preempted, throttled or interrupted")                          \
	FIELD(u64, dec, blocked, "ns asleep")                                                      \
	FIELD(u64, dec, waking, "ns runnable after a wake-up, waiting for a pCPU")

#define VP_FIELDS_exit_bucket(FIELD)                                                               \
	FIELD(u16, dec, vendor, "encoding of reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")    \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, vcpu, "vCPU number, as in KVM")                                            \
	FIELD(u32, hex, reason, "reason of the VM exits, in the vendor's encoding")                \
	FIELD(u32, dec, bucket, "0 to 3: 4 ns each; then four per power of two from 16 ns on")     \
	FIELD(u32, dec, count, "exits of that duration")

#define VP_FIELDS_exit_sampling(FIELD)                                                             \
	FIELD(u16, dec, vendor, "encoding of reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")    \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, vcpu, "vCPU number, as in KVM")                                            \
	FIELD(u32, hex, reason, "reason of the VM exits, in the vendor's encoding")                \
	FIELD(u64, dec, timed, "exits that were timed")                                            \
	FIELD(u64, dec, sum, "their times in the host kernel, of interrupts also these, in 16 ns") \
	FIELD(u64, dec, squares, "sum of the squares of these times, in 256 ns^2")                 \
	FIELD(u64, dec, weights,                                                                   \
	      "sum of w * (w - 1), if an exit that was timed stands for w; for u exits after the " \
	      "last timed one u + (u / W)^2 * sum of w^2, where W is the sum of w")

#define VP_FIELDS_wake_bucket(FIELD)                                                               \
	FIELD(u16, dec, bucket, "at most 10, 50, 100, 500 us, 1, 5, 10, 50, 100 ms; 9 longer")     \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, vcpu, "vCPU number, as in KVM")                                            \
	FIELD(u32, dec, count, "wakeups after which it waited that long for a pCPU")               \
	FIELD(u64, dec, ns, "sum of these times, ns")

#define VP_FIELDS_vm_samples(FIELD)                                                                \
	FIELD(u16, dec, reserved, "0")                                                             \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u64, dec, guest_user, "samples in guest user space")                                 \
	FIELD(u64, dec, guest_kernel, "samples in the guest kernel")                               \
	FIELD(u64, dec, host, "samples of vCPU threads inside KVM_RUN in the host")

#define VP_FIELDS_thief(FIELD)                                                                     \
	FIELD(u16, hex, flags, "1 a kernel thread")                                                \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, vcpu, "vCPU whose time it was")                                            \
	FIELD(u16, dec, state,                                                                     \
	      "how: 6 the vCPU was woken and waited, 7 it was preempted, 9 it was interrupted")    \
	FIELD(u16, dec, kind,                                                                      \
	      "1 a vCPU, 2 a task, 3 nobody, 4 a device interrupt, 5 a softirq, 6 unknown, "       \
	      "7 a local interrupt such as the timer's, 8 all for which the table had no room")    \
	FIELD(u32, dec, number, "vCPU number, tid or number of the interrupt")                     \
	FIELD(u32, dec, thief_pid, "VM number of a vCPU, pid of a task; 0 for others")             \
	FIELD(u64, dec, cgroup, "id of the task's cgroup, or 0")                                   \
	FIELD(u64, dec, ns, "time taken, ns")                                                      \
	FIELD(u64, dec, count, "number of times")                                                  \
	FIELD(comm, text, comm, "name of the task or interrupt")

#define VP_DETAIL_KINDS_TEXT                                                                       \
	"0 none, port 1 in, 2 out, MSR 3 read, 4 written, CR 5 read, 6 written, DR 7 read, 8 "     \
	"written, memory 9 read, 10 written, 11 executed, 12 exception, APIC 13 read, 14 "         \
	"written, 15 EOI, device's memory 16 read, 17 written"

#define VP_FIELDS_exit_site(FIELD)                                                                 \
	FIELD(u16, hex, flags, "1 ip and as_root are known; else the VM is not selected by --vm")  \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, hex, reason, "reason of the VM exits, in the vendor's encoding")                \
	FIELD(u32, dec, vendor, "encoding of reason: 0 unknown, 1 Intel VMX, 2 AMD SVM, 3 Arm")    \
	FIELD(u64, hex, ip, "guest RIP at the exit")                                               \
	FIELD(u64, hex, as_root, "guest CR3 (page-table root) at the exit")                        \
	FIELD(u64, dec, count, "exits there")                                                      \
	FIELD(u64, dec, ns, "ns from these exits to the next entries")                             \
	FIELD(u64, dec, last, "when the last of them ended, CLOCK_MONOTONIC, ns")

#define VP_FIELDS_exit_site_detail(FIELD)                                                          \
	VP_FIELDS_exit_site(FIELD) FIELD(u32, dec, detail_kind, VP_DETAIL_KINDS_TEXT)              \
	    FIELD(u32, hex, detail, "number of the port, MSR or register; vector; offset")

#define VP_FIELDS_exit_site_address(FIELD)                                                         \
	VP_FIELDS_exit_site_detail(FIELD)                                                          \
	    FIELD(u64, hex, address,                                                               \
		  "guest physical address: of the device's memory, else of the 2 MiB it is in")

#define VP_FIELDS_exit_site_waits(FIELD)                                                           \
	VP_FIELDS_exit_site_address(FIELD) FIELD(u64, dec, idle, "ns of `ns` asleep")              \
	    FIELD(u64, dec, stolen, "ns of `ns` preempted, throttled, interrupted or waking")

#define VP_FIELDS_account_loss(FIELD)                                                              \
	FIELD(u16, dec, reserved, "0")                                                             \
	FIELD(u32, dec, vm, "0")                                                                   \
	FIELD(u64, dec, vcpus, "events of vCPUs without an account: table full")                   \
	FIELD(u64, dec, thieves, "intervals of stolen time without a thief: table full")           \
	FIELD(u64, dec, sites, "exits without guest address: table full")

/* Only in files of state streams; readers expand them to vcpu_spans (store/packet_states.h). */
#define VP_FIELDS_vcpu_next(FIELD)                                                                 \
	FIELD(u8, dec, which,                                                                      \
	      "its vCPU: 0 that of the packet's first vcpu_span, 1 of the first vcpu_span of "     \
	      "another one, ...; what this record does not tell of it is as there")                \
	FIELD(u8, dec, state, "as in vcpu_span; it began when the vCPU's record before ended")     \
	FIELD(u8, hex, flags, "as in vcpu_span")                                                   \
	FIELD(u8, dec, cpu, "as in vcpu_span")                                                     \
	FIELD(u16, hex, reason, "as in vcpu_span")

#define VP_FIELDS_vcpu_span(FIELD)                                                                 \
	FIELD(u16, hex, flags,                                                                     \
	      "1 reason is known, 2 the time is also in preceding kernel states, "                 \
	      "4 it waited, and then got the pCPU `cpu`, 8 which nobody had before")               \
	FIELD(u32, dec, vm, "number of the VM in the recording")                                   \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u16, dec, vcpu, "vCPU number, as in KVM; 65535: unknown")                            \
	FIELD(u8, dec, state,                                                                      \
	      "0 guest, 1 kernel, 2 poll, 3 vmm, 4 halted, 5 waiting, 6 waking, 7 preempted, "     \
	      "8 throttled, 9 interrupted")                                                        \
	FIELD(u8, dec, vendor, "encoding of reason: 0 unknown, 1 Intel VMX, 2 AMD SVM")            \
	FIELD(u32, hex, reason, "reason of the last VM exit, in the vendor's encoding")            \
	FIELD(u32, dec, cpu, "pCPU on which the state's end was seen")                             \
	FIELD(u64, dec, ns, "duration of the state, in ns; it ended at `time`")

#define VP_FIELDS_interval(FIELD)                                                                  \
	FIELD(u16, hex, flags, "1 ended early, 2 its vCPU, task or pCPU ended with it")            \
	FIELD(u32, dec, owner, "number of the vCPU's VM, process of the task, 0 of a pCPU")        \
	FIELD(u32, dec, tid, "the thread; 0 of a pCPU")                                            \
	FIELD(u32, dec, vcpu, "vCPU number, as in KVM; pCPU number; 65535: unknown")               \
	FIELD(u32, dec, number, "sequence number from 0; a gap is a lost interval")                \
	FIELD(u32, dec, values, "interval_value records that follow it")                           \
	FIELD(u64, dec, begin, "host CLOCK_MONOTONIC, ns; its end is `time`")                      \
	FIELD(comm, text, comm, "name of the thread")

#define VP_FIELDS_interval_value(FIELD)                                                            \
	FIELD(u16, dec, place, "which event: its place in the file `recipe`, from 0")              \
	FIELD(u32, dec, live, "share of the time on a pCPU in which it counted, in 1e-9")          \
	FIELD(u64, dec, value, "unscaled count")

/* VP_RECORD(id, name, meaning). Ids are permanent: a retired record's id is not reused. */
#define VP_RECORDS(RECORD)                                                                         \
	RECORD(1, host_sample, "host sample outside KVM_RUN")                                      \
	RECORD(2, vcpu_sample, "host sample inside KVM_RUN")                                       \
	RECORD(3, guest_sample, "guest sample")                                                    \
	RECORD(4, task, "name of the thread that the following samples belong to")                 \
	RECORD(5, vcpu_in, "a vCPU's thread was scheduled in")                                     \
	RECORD(6, vcpu_out, "a vCPU's thread was scheduled out")                                   \
	RECORD(7, clock_sync, "the host's clocks, read together")                                  \
	RECORD(8, guest_task, "name of a guest thread")                                            \
	RECORD(9, guest_regs, "guest registers at the next sample of this vCPU")                   \
	RECORD(10, chain_frames, "call chain of the next sample of this thread in the stream")     \
	RECORD(11, chain_stack, "stack of the guest at the next sample of this thread")            \
	RECORD(12, sample_period, "weight of the next sample of this stream")                      \
	RECORD(20, vcpu_account,                                                                   \
	       "times of a vCPU by state in an interval; they sum to its length")                  \
	RECORD(21, exit_account, "a vCPU's exits of one reason in an interval")                    \
	RECORD(22, exit_bucket, "histogram of a vCPU's exit times of one reason, in an interval")  \
	RECORD(23, thief, "who had a vCPU's pCPU in an interval while the vCPU was runnable")      \
	RECORD(24, exit_site, "exits by guest address, over the life of a vCPU")                   \
	RECORD(25, account_loss, "what the account missed, since the start of the recording")      \
	RECORD(26, vcpu_span, "a period of a vCPU in one state")                                   \
	RECORD(27, exit_site_detail, "the same as exit_site, where the exit says what it was to")  \
	RECORD(28, exit_site_address, "the same as exit_site_detail, where it was to memory")      \
	RECORD(29, vcpu_next, "the vCPU's next period in one state, in short")                     \
	RECORD(30, interval, "end of an interval of a vCPU, task or pCPU")                         \
	RECORD(31, interval_value, "count of one event in the preceding interval")                 \
	RECORD(32, exit_site_waits, "the same as exit_site_address, where the exits waited")       \
	RECORD(33, exit_sampling, "a vCPU's exits of one reason of which some were timed")         \
	RECORD(34, wake_bucket, "histogram of a vCPU's wakeup latencies in an interval")           \
	RECORD(35, vm_samples, "a VM's samples in an interval, by mode")

#define VP_COMM_SIZE 16

typedef __u8 vp_type_u8;
typedef __u16 vp_type_u16;
typedef __u32 vp_type_u32;
typedef __u64 vp_type_u64;
typedef char vp_type_comm[VP_COMM_SIZE];
typedef __u64 vp_type_words8[8];
typedef __u64 vp_type_words16[16];

/* Readers access records at any address; in BPF ring buffers they are 8-byte aligned. */
#ifdef __bpf__
#define VP_RECORD_PACKED
#else
#define VP_RECORD_PACKED __attribute__((packed))
#endif

/* Every record starts with this header. */
struct vp_record_header {
	__u64 time; /* nanoseconds of the host's CLOCK_MONOTONIC */
	__u16 id;
} VP_RECORD_PACKED;

#define VP_STRUCT_FIELD(type, style, name, meaning) vp_type_##type name;
#define VP_STRUCT(number, name, meaning)                                                           \
	struct vp_##name {                                                                         \
		__u64 time;                                                                        \
		__u16 id;                                                                          \
		VP_FIELDS_##name(VP_STRUCT_FIELD)                                                  \
	} VP_RECORD_PACKED;
VP_RECORDS(VP_STRUCT)

#define VP_FIELD_SIZE(type, style, name, meaning) +sizeof(vp_type_##type)
#define VP_NO_PADDING(number, name, meaning)                                                       \
	_Static_assert(sizeof(struct vp_##name) == 10 VP_FIELDS_##name(VP_FIELD_SIZE) &&           \
			   sizeof(struct vp_##name) % 8 == 0,                                      \
		       "order the fields of " #name " by size");
VP_RECORDS(VP_NO_PADDING)

#define VP_ENUM(number, name, meaning) VP_ID_##name = number,
enum vp_record_id { VP_RECORDS(VP_ENUM) VP_ID_MAX = 35 };

/* Unknown vCPU number. */
#define VP_VCPU_UNKNOWN 0xffffu

/* Values of `mode`: the kernel's own PERF_RECORD_MISC_CPUMODE numbers. */
enum vp_mode {
	VP_MODE_KERNEL = 1,
	VP_MODE_USER = 2,
	VP_MODE_GUEST_KERNEL = 4,
	VP_MODE_GUEST_USER = 5
};
/* Values of `vendor`. */
enum vp_vendor { VP_VENDOR_UNKNOWN = 0, VP_VENDOR_INTEL = 1, VP_VENDOR_AMD = 2, VP_VENDOR_ARM = 3 };
/* Arm has no exit reasons. A trap has its exception class (ESR_EL2.EC, 6 bits); other exits have
 * this bit and KVM's own code (v6.1, ARM_EXCEPTION_* of arch/arm64/include/asm/kvm_asm.h). */
#define VP_ARM_NO_TRAP 0x40
/* Guests without hardware virtualization have no exits. Their entries into the hypervisor are
 * counted with this pattern, which no vendor's exit reasons have, plus: a hypercall's number; a
 * trap's vector; or the kind of work in the hypervisor. Their duration is unknown. */
#define VP_PARAVIRTUAL 0x50000000
#define VP_PARAVIRTUAL_BITS 0xffff0000
enum { VP_PARAVIRTUAL_TRAP = 0x1000, VP_PARAVIRTUAL_WORK = 0x2000 };
/*
 * Bits of `flags`.
 * Late tick: the timer interrupt came more than one period late; the sample also represents the
 * missed ticks, each of which is a record with this flag.
 * Hidden: a sample in the guest of a VM that --vm excludes.
 * By memory: the guest's current task was read from its memory at the sample.
 * At a method: an interpreter executed it; `ip` is the address of the method's data.
 */
enum vp_flag {
	VP_HAS_EXIT_REASON = 1,
	VP_HAS_AS_ROOT = 2,
	VP_HAS_CPL = 4,
	VP_BLOCKED = 8,
	VP_LATE = 16,
	VP_HIDDEN = 32,
	VP_ENDED = 64,
	VP_BY_MEMORY = 128,
	VP_HAS_STACK = 256,
	VP_AT_INTERRUPT = 512,
	VP_AT_METHOD = 1024,
	VP_KNOWS_ENTRY = 2048,
};
/* Bit of guest_task.flags. */
enum { VP_IN_USER = 1 };
/* Bits of vcpu_span.flags: part of its time moves to another state, because KVM reports polling
 * only afterwards; a wait ended on pCPU `cpu`; that pCPU was idle until then (Xen only). */
enum { VP_STATE_MOVED = 2, VP_STATE_GOT_PCPU = 4, VP_STATE_WAS_IDLE = 8 };
/* Bit of exit_site.flags. */
enum { VP_SITE_KNOWN = 1 };
/* Values of `detail_kind`, the meaning of `detail`. For memory: guest page number + 1; 0: unknown,
 * or not in the guest's memory. */
enum vp_detail_kind {
	VP_DETAIL_NONE,
	VP_DETAIL_PORT_IN,
	VP_DETAIL_PORT_OUT,
	VP_DETAIL_MSR_READ,
	VP_DETAIL_MSR_WRITE,
	VP_DETAIL_CR_READ,
	VP_DETAIL_CR_WRITE,
	VP_DETAIL_DR_READ,
	VP_DETAIL_DR_WRITE,
	VP_DETAIL_MEMORY_READ,
	VP_DETAIL_MEMORY_WRITE,
	VP_DETAIL_MEMORY_FETCH,
	VP_DETAIL_EXCEPTION,
	VP_DETAIL_APIC_READ,
	VP_DETAIL_APIC_WRITE,
	VP_DETAIL_EOI,
	VP_DETAIL_MMIO_READ,
	VP_DETAIL_MMIO_WRITE
};
/* Unknown address. */
#define VP_NO_ADDRESS 0xffffffffffffffffULL
/* Granularity of exits to RAM: 2 MiB. */
#define VP_MEMORY_BLOCK 0x200000ULL
/* Bits of interval.flags. */
enum { VP_INTERVAL_PARTIAL = 1, VP_INTERVAL_LAST = 2 };
/* Values of thief.kind. */
enum vp_thief_record {
	VP_BY_VCPU = 1,
	VP_BY_TASK,
	VP_BY_NOBODY,
	VP_BY_DEVICE,
	VP_BY_SOFTIRQ,
	VP_BY_UNKNOWN,
	VP_BY_VECTOR,
	VP_BY_MANY
};

#endif
