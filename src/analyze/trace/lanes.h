/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slices of a recording: its events as states of its pCPUs (the thread) and of its vCPUs (in the
 * guest, in KVM, waiting for a pCPU, asleep; and the guest thread). A slice is passed on at its
 * end; memory grows with pCPUs, vCPUs and names only. */
#ifndef VP_ANALYZE_TRACE_LANES_H
#define VP_ANALYZE_TRACE_LANES_H

#include "analyze/trace/trace_feed.h"
#include "base/macros.h"

enum vp_lane { VP_LANE_PCPU, VP_LANE_VCPU };

enum vp_lane_state {
	VP_LANE_RUNNING, /* of a pCPU: a thread has it … */
	VP_LANE_IDLE,    /* … or none */
	VP_LANE_GUEST,   /* of a vCPU, from here on: in guest mode */
	VP_LANE_HOST,    /* on a pCPU, in KVM or in the VMM */
	VP_LANE_STOLEN,  /* runnable, but another thread had the pCPU */
	VP_LANE_WAKING,  /* woken, and has no pCPU yet */
	VP_LANE_HALTED,  /* asleep after a halt */
	VP_LANE_BLOCKED, /* asleep for another reason */
	VP_LANE_STATES
};

/* Whether the guest's thread had the vCPU during all of a period in guest mode. */
enum vp_lane_certainty { VP_LANE_UNKNOWN, VP_LANE_EXACT, VP_LANE_UNCERTAIN };

struct vp_period {
	enum vp_lane lane;
	enum vp_lane_state state;
	uint64_t begin, end;
	uint32_t pcpu; /* where it is or waits; VP_NO_PCPU: nowhere */
	uint32_t tid;  /* of the pCPU's thread, of the vCPU's */
	const char *comm;
	bool has_vcpu; /* of a pCPU: its thread is a vCPU's */
	uint32_t vm, vcpu;
	/* For a vCPU: the guest thread that was current at the start. */
	bool has_guest;
	uint32_t guest_tid, guest_pid;
	const char *guest_comm;
	enum vp_lane_certainty certainty;
	uint32_t switches; /* that the guest made in it, as far as is known */
	/* STOLEN and WAKING: who had that pCPU. */
	bool has_thief;
	uint32_t thief_tid;
	const char *thief_comm;
	/* WAKING, if it is known: who woke it, and where that ran. */
	bool has_waker;
	uint32_t waker_tid, waker_pcpu;
	const char *waker_comm;
	/* STOLEN and WAKING: the wait is in several periods if the thief changes; since when it
	 * lasts, and whether it ended with this one, by getting a pCPU. */
	uint64_t wait_begin;
	bool wait_ends;
};

/* The switches of a vCPU's guest between `from` and `to`. */
struct vp_lane_switches {
	uint64_t made, seen; /* counted by its kernel; of these, that were the last of an exit's */
	uint64_t jumps;      /* its count was not believed */
	uint64_t begins;     /* times from which on it was known */
};

struct vp_lanes_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns: periods are cut to this time */
	const char *vm;    /* name, or pid of its VMM; NULL: all */
	const int *pcpus;  /* only periods on these */
	size_t n_pcpus;    /* 0: all */
	void (*take)(void *context, const struct vp_period *period);
	void *context;
};

struct vp_lanes;

struct vp_error *vp_lanes_open(const char *directory, const struct vp_lanes_options *options,
			       struct vp_lanes **ret) VP_MUST_CHECK;
void vp_lanes_close(struct vp_lanes *lanes);
/* Reads up to `events` more of them; false at the recording's end, when all slices were passed
 * on. */
bool vp_lanes_read(struct vp_lanes *lanes, uint64_t events);
const struct vp_feed *vp_lanes_feed(const struct vp_lanes *lanes);
/* Name of a VM, or its number as text; the lanes'. */
const char *vp_lanes_vm(struct vp_lanes *lanes, uint32_t vm);
/* The switches of a vCPU; one whose number is not known is known by its thread. */
struct vp_lane_switches vp_lanes_switches(const struct vp_lanes *lanes, uint32_t vm, uint32_t vcpu,
					  uint32_t tid);

#endif
