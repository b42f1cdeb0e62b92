/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings with a known layout of ticks, made by tests: each call is one record. Times are in
 * ticks of MADE_PERIOD, plus made.offset.
 */
#ifndef VP_TESTS_MAKE_RECORDING_H
#define VP_TESTS_MAKE_RECORDING_H

#include "schema/trace_event.h"
#include "store/recording.h"
#include "store/trace_writer.h"

#define MADE_PERIOD 1000000ULL
#define MADE_START 1000000000ULL

enum { MADE_HLT = 0x78, MADE_INTR = 0x60, MADE_NPF = 0x400, MADE_UNKNOWN = -1 };

struct made {
	char path[64];
	struct vp_trace_writer *writer;
	struct vp_recording about;
	vp_vms vms;
	uint32_t pcpus;  /* with records */
	uint64_t lost;   /* said by every stream */
	bool intervals;  /* there are some */
	uint64_t offset; /* of the next records from their tick, ns */
};

/* Begins a recording in a directory of that name, with `n_vms` VMs vm0 (process 1000), vm1 (2000),
 * … of two vCPUs each (threads 1001, 1002, 2001, …). */
void made_begin(struct made *made, const char *name, unsigned n_vms);
/* Writes everything and frees `made`; ends at tick `end`, or is interrupted if that is 0. */
void made_end(struct made *made, uint64_t end);

/* A guest's sample; `exit` is the AMD exit code or MADE_UNKNOWN. */
void made_guest(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu,
		uint32_t mode, int exit);
/* The same of vCPU 0 of vm0, with that RIP and CR3 0x1000. */
void made_guest_at(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t mode, uint64_t ip);
/* A guest's sample that names its thread by the guest's memory; before it, the thread's name. */
void made_guest_thread(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, uint32_t pid,
		       uint32_t tid, const char *comm, uint64_t root, uint64_t ip);
/* A sample of the vCPU's thread inside KVM, outside of it, of another process, of nobody. */
void made_in_kvm(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu,
		 int exit);
void made_in_vmm(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu);
void made_host(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t pid, uint32_t mode);
void made_idle(struct made *made, uint32_t pcpu, uint64_t tick);
/* The next sample of the stream stands for so many events. */
void made_period(struct made *made, uint32_t pcpu, uint64_t tick, uint64_t events);
/* Call chains of the next sample of that thread: where its vCPU's guest is; frames of one side
 * (enum vp_mode), innermost first; a piece of the guest kernel's stack. */
void made_regs(struct made *made, uint32_t pcpu, uint64_t tick, const struct vp_guest_regs *regs);
void made_frames(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t tid, uint32_t mode,
		 const uint64_t *ips, uint32_t count, uint32_t end);
/* `flags`: enum vp_chain_flag. */
void made_flagged_frames(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t tid,
			 uint32_t mode, const uint64_t *ips, uint32_t count, uint32_t end,
			 uint32_t flags);
void made_stack(struct made *made, uint32_t pcpu, uint64_t tick,
		const struct vp_chain_stack *piece);
/* The vCPU's thread gets the pCPU; leaves it; leaves it to sleep. */
void made_in(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu, int exit);
void made_out(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu, int exit,
	      bool blocked);
void made_task(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t pid, uint32_t tid,
	       const char *comm);
/* An interval of a vCPU from tick `begin` to `end`: `n` values, each with its share in billionths.
 */
void made_interval(struct made *made, uint32_t pcpu, uint64_t begin, uint64_t end, unsigned vm,
		   unsigned vcpu, uint32_t flags, unsigned n, const uint64_t *values,
		   const uint32_t *live);

/* An event of the pCPU's; from made_trace_begin() on. */
void made_event(struct made *made, uint32_t pcpu, void *record);
#define MADE_EVENT(made, pcpu, at, event, ...)                                                     \
	made_event(made, pcpu,                                                                     \
		   &(struct vp_trace_##event){.time = (at),                                        \
					      .id = VP_TRACE_ID_##event,                           \
					      .size = VP_TRACE_SIZE_##event,                       \
					      __VA_ARGS__})
/* The recording has events of the host, of so many pCPUs. */
void made_trace_begin(struct made *made, uint32_t pcpus);
/* Writes their streams; then made_end(). */
void made_trace_end(struct made *made, uint32_t pcpus, uint64_t end);

#endif
