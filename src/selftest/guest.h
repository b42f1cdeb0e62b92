/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest of `vperf selftest`: a VM with one vCPU and a program of a few instructions, on
 * /dev/kvm. It has neither firmware nor a kernel, so all that it does is known: which functions run
 * for which share of the time, which VM exits it makes and how often it halts.
 */
#ifndef VP_SELFTEST_GUEST_H
#define VP_SELFTEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* Kinds of VM exits that the guest makes by one instruction each. */
enum vp_guest_exit {
	VP_GUEST_CPUID,
	VP_GUEST_PORT,
	VP_GUEST_MMIO,
	VP_GUEST_MSR,
	VP_GUEST_HYPERCALL,
	VP_GUEST_HALT, /* until the next interrupt of its own timer */
	VP_GUEST_EXITS
};

/* VM exits of a kind, in the names of reports. */
struct vp_guest_exit_kind {
	const char *check;      /* the name of their check; NULL: this architecture has none */
	const char *function;   /* of the guest, which makes these exits only */
	const char *reasons[4]; /* AMD's, Intel's; NULL after the last */
	int others;             /* the program's other exits of these reasons */
};
enum { VP_GUEST_OTHERS_UNKNOWN = -1 };
const struct vp_guest_exit_kind *vp_guest_exit_kind(enum vp_guest_exit exit);

/* A function of the guest's program. */
struct vp_guest_symbol {
	const char *name;
	uint64_t address;
};
/* NULL: there are no more. */
const struct vp_guest_symbol *vp_guest_symbol(size_t number, struct vp_guest_symbol *ret);
/* The function at the address, or NULL. */
const char *vp_guest_function(uint64_t address);
/* The two functions that share its time, and the first one's share of their loops. */
#define VP_GUEST_HOT "selftest_hot"
#define VP_GUEST_COLD "selftest_cold"
enum { VP_GUEST_HOT_PERCENT = 80 };

/* Whether host samples have the guest's program counter. */
bool vp_guest_has_rip(void);
/* Why a guest may have no counter here. */
const char *vp_guest_no_counter(void);

struct vp_guest_work {
	uint64_t busy_ns; /* the two functions run for this time, before anything else */
	uint32_t exits[VP_GUEST_EXITS];
	uint32_t halt_us; /* the length of a halt: the timer's period */
	bool counts;      /* reads an instruction counter at both ends of the busy time */
};

/* CPU time of the vCPU's thread by the scheduler's books, ns. */
struct vp_guest_cpu_time {
	uint64_t at, run, delay; /* CLOCK_MONOTONIC; on a pCPU; runnable and waiting for one */
};

struct vp_guest_done {
	struct vp_guest_cpu_time begin, busy,
	    end;                /* at the start, after the busy time, at the end */
	uint64_t loops, rounds; /* of the busy time, both functions together */
	uint64_t instructions;  /* that it executed in this time, by its program */
	uint64_t counted;       /* by the guest's counter, with `counts` */
	bool has_counter;
	uint64_t seen[VP_GUEST_EXITS]; /* VM exits that came to the VMM */
	bool has_stats;                /* KVM's own statistics of the vCPU: … */
	uint64_t stat_exits, stat_halts;
};

struct vp_guest;

/* Errors: /dev/kvm cannot be used, or a VM cannot be made. */
struct vp_error *vp_guest_new(struct vp_guest **ret) VP_MUST_CHECK;
/* Runs it in the calling thread, whose books these are. Errors: KVM refuses, or the guest leaves
 * its program. */
struct vp_error *vp_guest_run(struct vp_guest *guest, const struct vp_guest_work *work,
			      struct vp_guest_done *done) VP_MUST_CHECK;

/* The books of a thread, by /proc; zeros without one. */
struct vp_guest_cpu_time vp_guest_cpu_time_read(int tid);

#endif
