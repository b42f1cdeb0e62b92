/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest of `vperf selftest`: a VM with one vCPU and a program of a few instructions, on
 * /dev/kvm. It has neither firmware nor kernel, so all of its activity is known: time per function,
 * number of VM exits per kind, and number of halts.
 */
#ifndef VP_SELFTEST_GUEST_H
#define VP_SELFTEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* Kinds of VM exits that the guest causes, each by a single instruction. */
enum vp_guest_exit {
	VP_GUEST_CPUID,
	VP_GUEST_PORT,
	VP_GUEST_MMIO,
	VP_GUEST_MSR,
	VP_GUEST_HYPERCALL,
	VP_GUEST_HALT, /* until the next interrupt of its timer */
	VP_GUEST_EXITS
};

/* A kind of VM exit, with names in reports. */
struct vp_guest_exit_kind {
	const char *check;      /* name of its check; NULL: not on this architecture */
	const char *function;   /* the guest function with only these exits */
	const char *reasons[4]; /* AMD's, Intel's; NULL-terminated */
	int others;             /* other exits of the program for these reasons */
};
enum { VP_GUEST_OTHERS_UNKNOWN = -1 };
const struct vp_guest_exit_kind *vp_guest_exit_kind(enum vp_guest_exit exit);

/* A function of the guest's program. */
struct vp_guest_symbol {
	const char *name;
	uint64_t address;
};
/* Function number N; NULL: no more. */
const struct vp_guest_symbol *vp_guest_symbol(size_t number, struct vp_guest_symbol *ret);
/* The function at the address, or NULL. */
const char *vp_guest_function(uint64_t address);
/* The two functions that share the time, and the share of the first one in their loops. */
#define VP_GUEST_HOT "selftest_hot"
#define VP_GUEST_COLD "selftest_cold"
enum { VP_GUEST_HOT_PERCENT = 80 };

/* Whether host samples have the guest RIP. */
bool vp_guest_has_rip(void);
/* Why a guest may have no hardware counter here. */
const char *vp_guest_no_counter(void);

struct vp_guest_work {
	uint64_t busy_ns; /* run time of the two functions, before anything else */
	uint32_t exits[VP_GUEST_EXITS];
	uint32_t halt_us; /* length of a halt: period of the timer */
	bool counts;      /* read an instruction counter at both ends of the busy time */
};

/* CPU time of the vCPU thread from the scheduler's statistics, ns. */
struct vp_guest_cpu_time {
	uint64_t at, run, delay; /* CLOCK_MONOTONIC; run time; time waiting for a pCPU */
};

struct vp_guest_done {
	struct vp_guest_cpu_time begin, busy,
	    end;                /* at the start, after the busy time, at the end */
	uint64_t loops, rounds; /* in the busy time, both functions together */
	uint64_t instructions;  /* executed in the busy time, from the number of loops */
	uint64_t counted;       /* from the guest's counter, with `counts` */
	bool has_counter;
	uint64_t handled[VP_GUEST_EXITS]; /* VM exits handled by the VMM */
	bool has_stats;                   /* KVM's own statistics of the vCPU are available: … */
	uint64_t stat_exits, stat_halts;
};

struct vp_guest;

/* Errors: /dev/kvm cannot be used, or the VM cannot be created. */
struct vp_error *vp_guest_new(struct vp_guest **ret) VP_MUST_CHECK;
/* Runs it in the calling thread, whose statistics are used. Errors: KVM fails, or the guest leaves
 * its program. */
struct vp_error *vp_guest_run(struct vp_guest *guest, const struct vp_guest_work *work,
			      struct vp_guest_done *done) VP_MUST_CHECK;

/* Statistics of a thread from /proc; zeros if there is no such thread. */
struct vp_guest_cpu_time vp_guest_cpu_time_read(int tid);

#endif
