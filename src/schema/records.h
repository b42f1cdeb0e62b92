/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every record type, once. This table drives the C structs, the writer, the reader, the CTF
 * metadata (schema/ctf.c) and docs/format.md (tools/format-doc).
 *
 * A record on disk is a CTF event: the header {u64 time, u32 id} and the record's fields, little
 * endian, without padding. Fields are ordered so that the C struct has no padding either.
 *
 * VP_FIELD(type, style, name, meaning) with type u8 u16 u32 u64 comm, style dec hex text.
 * `comm` is 16 bytes of text, zero-terminated when shorter.
 */
#ifndef VP_SCHEMA_RECORDS_H
#define VP_SCHEMA_RECORDS_H

#include <linux/types.h>

#define VP_FIELDS_host_sample(FIELD)                                                               \
	FIELD(u32, dec, pid, "process (thread group) on the pCPU; 0 is the idle task")             \
	FIELD(u32, dec, tid, "thread on the pCPU")                                                 \
	FIELD(u32, dec, mode, "what the sample hit: 1 host kernel, 2 host user space")             \
	FIELD(u64, hex, ip, "program counter")                                                     \
	FIELD(u32, hex, flags, "16 a late tick")

#define VP_FIELDS_vcpu_sample(FIELD)                                                               \
	FIELD(u32, dec, pid, "process of the VMM")                                                 \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u32, dec, mode, "what the sample hit: 1 host kernel, 2 host user space")             \
	FIELD(u64, hex, ip, "host program counter")                                                \
	FIELD(u32, dec, vcpu, "vCPU number, as KVM numbers them")                                  \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, vendor, "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM")      \
	FIELD(u32, hex, flags, "1 exit_reason is known, 16 a late tick")

#define VP_FIELDS_guest_sample(FIELD)                                                              \
	FIELD(u32, dec, pid, "process of the VMM")                                                 \
	FIELD(u32, dec, tid, "thread of the vCPU")                                                 \
	FIELD(u32, dec, mode, "what the sample hit: 4 guest kernel, 5 guest user space")           \
	FIELD(u64, hex, ip, "guest program counter")                                               \
	FIELD(u64, hex, host_ip, "host program counter: where KVM entered the guest")              \
	FIELD(u64, hex, as_root, "guest address-space root (CR3 on x86) as the vCPU holds it")     \
	FIELD(u32, dec, vcpu, "vCPU number, as KVM numbers them")                                  \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, vendor, "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM")      \
	FIELD(u32, hex, flags,                                                                     \
	      "1 exit_reason is known, 2 as_root is known, 4 cpl is known, 16 a late tick, "       \
	      "32 of a VM that was not asked for: ip and as_root are blanked out, "                \
	      "64 guest_pid and guest_tid are known, by the guest's memory")                       \
	FIELD(u32, dec, cpl, "guest privilege level, 0 to 3")                                      \
	FIELD(u32, dec, guest_pid, "process of the guest, as the guest numbers it; see flags")     \
	FIELD(u32, dec, guest_tid, "its thread")

#define VP_FIELDS_guest_task(FIELD)                                                                \
	FIELD(u32, dec, pid, "process of the VMM")                                                 \
	FIELD(u32, dec, guest_pid, "process of the guest's thread")                                \
	FIELD(u32, dec, guest_tid, "thread of the guest that guest_samples from now on name")      \
	FIELD(comm, text, comm, "its name")

#define VP_FIELDS_task(FIELD)                                                                      \
	FIELD(u32, dec, pid, "process of the thread")                                              \
	FIELD(u32, dec, tid, "thread that the following samples of this stream belong to")         \
	FIELD(u32, dec, reserved, "0")                                                             \
	FIELD(comm, text, comm, "its name")

#define VP_FIELDS_vcpu_in(FIELD)                                                                   \
	FIELD(u32, dec, pid, "process of the VMM")                                                 \
	FIELD(u32, dec, tid, "thread of the vCPU that got the pCPU")                               \
	FIELD(u32, dec, vcpu, "vCPU number, as KVM numbers them")                                  \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, vendor, "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM")      \
	FIELD(u32, hex, flags, "1 exit_reason is known")                                           \
	FIELD(u32, dec, other_tid, "thread that had the pCPU before")

#define VP_FIELDS_vcpu_out(FIELD)                                                                  \
	FIELD(u32, dec, pid, "process of the VMM")                                                 \
	FIELD(u32, dec, tid, "thread of the vCPU that left the pCPU")                              \
	FIELD(u32, dec, vcpu, "vCPU number, as KVM numbers them")                                  \
	FIELD(u32, hex, exit_reason, "reason of the last VM exit, in the vendor's encoding")       \
	FIELD(u32, dec, vendor, "encoding of exit_reason: 0 unknown, 1 Intel VMX, 2 AMD SVM")      \
	FIELD(u32, hex, flags, "1 exit_reason is known, 8 blocked (else still runnable)")          \
	FIELD(u32, dec, other_tid, "thread that has the pCPU now")

#define VP_FIELDS_clock_sync(FIELD)                                                                \
	FIELD(u32, dec, error_ns, "the two clocks were read within this many nanoseconds")         \
	FIELD(u64, dec, tsc, "time-stamp counter at `time`")                                       \
	FIELD(u64, dec, realtime, "CLOCK_REALTIME at `time`, nanoseconds")

/* VP_RECORD(id, name, meaning). Ids are for ever: a retired record's id is not used again. */
#define VP_RECORDS(RECORD)                                                                         \
	RECORD(1, host_sample, "a sample that hit the host outside KVM's vCPU loop")               \
	RECORD(2, vcpu_sample, "a sample that hit the host while a vCPU's thread was inside KVM")  \
	RECORD(3, guest_sample, "a sample that hit a running guest")                               \
	RECORD(4, task, "the name of the thread that the samples after it belong to")              \
	RECORD(5, vcpu_in, "a vCPU's thread was scheduled in")                                     \
	RECORD(6, vcpu_out, "a vCPU's thread was scheduled out")                                   \
	RECORD(7, clock_sync, "the host's clocks, read together")                                  \
	RECORD(8, guest_task, "the name of a guest's thread")

#define VP_COMM_SIZE 16

typedef __u8 vp_type_u8;
typedef __u16 vp_type_u16;
typedef __u32 vp_type_u32;
typedef __u64 vp_type_u64;
typedef char vp_type_comm[VP_COMM_SIZE];

struct vp_record_header {
	__u64 time; /* nanoseconds of the host's CLOCK_MONOTONIC */
	__u32 id;
} __attribute__((packed));

#define VP_STRUCT_FIELD(type, style, name, meaning) vp_type_##type name;
#define VP_STRUCT(number, name, meaning)                                                           \
	struct vp_##name {                                                                         \
		struct vp_record_header header;                                                    \
		VP_FIELDS_##name(VP_STRUCT_FIELD)                                                  \
	} __attribute__((packed));
VP_RECORDS(VP_STRUCT)

#define VP_ENUM(number, name, meaning) VP_ID_##name = number,
enum vp_record_id { VP_RECORDS(VP_ENUM) VP_ID_MAX = 8 };

/* Values of `mode`: the kernel's own PERF_RECORD_MISC_CPUMODE numbers. */
enum vp_mode {
	VP_MODE_KERNEL = 1,
	VP_MODE_USER = 2,
	VP_MODE_GUEST_KERNEL = 4,
	VP_MODE_GUEST_USER = 5
};
/* Values of `vendor`. */
enum vp_vendor { VP_VENDOR_UNKNOWN = 0, VP_VENDOR_INTEL = 1, VP_VENDOR_AMD = 2 };
/*
 * Bits of `flags`. A late tick: the clock's interrupt came after more than one period, so that what
 * it hit stands for the missed ticks too; each of them is a record of its own with this flag.
 * Hidden: in the guest of a VM that was not asked for. By memory: the guest's current task was read
 * from its memory at the sample.
 */
enum vp_flag {
	VP_HAS_EXIT_REASON = 1,
	VP_HAS_AS_ROOT = 2,
	VP_HAS_CPL = 4,
	VP_BLOCKED = 8,
	VP_LATE = 16,
	VP_HIDDEN = 32,
	VP_BY_MEMORY = 64,
};

#endif
