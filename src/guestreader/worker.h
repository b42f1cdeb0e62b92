/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads one guest's memory on request. It is the only code that parses guest memory, and runs in a
 * confined process (collect/guests/guest_reader.h starts it).
 *
 * Requests and replies are lines; a reply ends with the line ".". Numbers are hexadecimal, texts
 * escaped as in map text.
 *
 *   find [scan] [banner GPA]
 *                 find the kernel (scan: without the vCPUs' registers), first at its banner's last
 *                 address. A scan takes long: repeat the request while the reply is
 *       searching DONE ALL                bytes scanned, and in total
 *       kernel TEXT GPA SIZE DIRECT LEVELS CACHED SCANNED DERIVED BUILDID BANNER
 *       arm64 PAGE_BITS VA_BITS WIDE ROOT  its page tables: see schema/paging.h
 *       at TID TGID COMM STACK            offsets in task_struct; STACK 0: unknown
 *       cpu VCPU CPU GPA                  address of the pointer to its current task
 *       lacks TEXT                        reason for missing tasks; symbols are available
 *       dropped SENTENCE                  a cached pack did not fit
 *       banner GPA                        hint for the next find
 *       pack TEXT                         for the cache
 *   tasks         list the guest's processes
 *       task TGID ROOT COMM
 *       damaged                           the list is incomplete
 *   check         check that the kernel is still in place
 *       java TGID LOW HIGH LOW HIGH       a Java process: ranges of code and interpreter
 *       python TGID LOW HIGH LOW HIGH OFFSET…  a Python process: ranges of its interpreter's file
 *                                         and of the eval loop; offsets as in struct
 *                                         vp_python_layout
 *       thread TGID TID STATE NATIVE      a thread of it: address of its state, native id
 *       v8 TGID LOW HIGH LOW HIGH OFFSET…  a process with V8: ranges of generated code and of V8's
 *                                         own; distances of context and function below the frame
 *                                         pointer, offset of JSFunction::shared
 *       starting                          a runtime without code so far: repeat soon
 *       file BUILDID PATH                 a file of which the guest lacks pages of unwind tables
 *   see PLACE TGID TIME                   read that task's mappings now; no reply
 *   hit TGID ADDR TIME                    a sample in generated code; no reply
 *   method TGID ADDR TIME                 a sample of an interpreted method; no reply
 *   unwind REQUEST COUNT                  unwind the stacks of that many jobs, then set `done` of
 *                                         struct vp_stack_jobs to REQUEST; no reply
 *   file BUILDID  read these tables from the host's copy, whose descriptor the message passes; no
 *                 reply
 *   memory [GPA SIZE HVA]                 add a slot, or (without arguments) remove all slots; no
 *                                         reply
 *   dump SYMBOLS                          write the symbol map, with symbols or (0) without
 *       wrote PROCESSES
 *   orc                                   then write the kernel's unwind tables
 *       wrote ENTRIES
 *   error SENTENCE                        instead of any reply
 */
#ifndef VP_GUESTREADER_WORKER_H
#define VP_GUESTREADER_WORKER_H

#include "base/pace.h"
#include "guestmem/memory/memory.h"
#include "guestreader/stack_job.h"

struct vp_guest_worker_options {
	struct vp_guest_memory *memory; /* modified on request */
	const struct vp_guest_registers *vcpus;
	size_t n_vcpus;
	const struct vp_buffer *packs; /* texts of kernel packs that may fit */
	size_t n_packs;
	uint64_t seed;                         /* random number, for a new pack's evidence */
	const struct vp_throttle_clock *clock; /* for scans; NULL: the clocks of this process */
	int channel;                           /* a socket: requests in, replies out */
	int dump;                              /* output file for symbol maps; -1: none */
	struct vp_stack_jobs *jobs;            /* shared with the recorder; NULL: none */
};

/* Serves requests until the channel is closed. */
void vp_guest_worker_run(const struct vp_guest_worker_options *options);

#endif
