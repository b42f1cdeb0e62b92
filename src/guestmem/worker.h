/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads one guest's memory on request. It is the only code that parses guest memory, and runs in a
 * confined process (collect/guests/guest_reader.h starts it).
 *
 * Requests and replies are lines; a reply ends with the line ".". Numbers are hexadecimal, texts
 * escaped as in map text.
 *
 *   find [scan] [banner GPA]
 *                 look for the kernel (scan: without the vCPUs' registers), first where its banner
 *                 was. Without registers this takes long: repeat it until the reply is not
 *       searching DONE ALL                bytes; the latter is all that there are
 *       kernel TEXT GPA SIZE DIRECT LEVELS CACHED SCANNED DERIVED BUILDID BANNER
 *       arm64 PAGE_BITS VA_BITS WIDE ROOT  its page tables: see schema/paging.h
 *       at TID TGID COMM STACK            offsets in task_struct; STACK 0: not known
 *       cpu VCPU CPU GPA                  where the pointer to its current task is
 *       lacks TEXT                        the reason for missing tasks; its symbols can
 *       dropped SENTENCE                  a cached pack did not fit
 *       banner GPA                        where to look first the next time
 *       pack TEXT                         to be kept
 *   tasks         list the guest's processes
 *       task TGID ROOT COMM
 *       damaged                           the list ended too early
 *   check         is the kernel still there
 *       java TGID LOW HIGH LOW HIGH       a Java process: its code, and its interpreter
 *       starting                          a Java process that has no code yet: ask again soon
 *   see PLACE TGID TIME                   read that task's mappings now; no answer
 *   hit TGID ADDR TIME                    a sample hit generated code there; no answer
 *   method TGID ADDR TIME                 a sample hit an interpreter at that method; no answer
 *   memory [GPA SIZE HVA]                 there is memory there too, or (alone) forget where there
 *                                         was some; no answer
 *   dump SYMBOLS                          write map text, with symbols or (0) without
 *       wrote PROCESSES
 *   orc                                   write the kernel's unwind tables, after that
 *       wrote ENTRIES
 *   error SENTENCE                        in place of any answer
 */
#ifndef VP_GUESTMEM_WORKER_H
#define VP_GUESTMEM_WORKER_H

#include "base/pace.h"
#include "guestmem/memory.h"

struct vp_guest_worker_options {
	struct vp_guest_memory *memory; /* changed on request */
	const struct vp_guest_registers *vcpus;
	size_t n_vcpus;
	const struct vp_buffer *packs; /* texts of kernel packs that may fit */
	size_t n_packs;
	uint64_t seed;                         /* random, for a new pack's evidence */
	const struct vp_throttle_clock *clock; /* of scans; NULL: this process's own */
	int channel;                           /* a socket: requests in, answers out */
	int dump;                              /* where map text goes; -1: nowhere */
};

/* Answers until the channel is closed. */
void vp_guest_worker_run(const struct vp_guest_worker_options *options);

#endif
