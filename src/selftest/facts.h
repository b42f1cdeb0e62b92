/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts of a self-test: the activity of the guest, as counted by itself and by the host kernel, and
 * as reported by vperf, from its JSON output. Checks use only these. */
#ifndef VP_SELFTEST_FACTS_H
#define VP_SELFTEST_FACTS_H

#include "selftest/guest.h"
#include "selftest/verdict.h"

struct json_object;

/* Facts from vperf's reports of one recording. */
struct vp_selftest_recording {
	char *trigger;
	double period_ns, lost;
	bool by_time; /* samples are weighted by time, in ns */
	/* The guest's samples: number, ns, and ns per function. */
	double samples, sampled_ns, hot_ns, cold_ns, named_ns, late, ticks;
	uint64_t first, last; /* times of the first and last sample of the two functions, ns */
	/* The vCPU's states, ns. */
	double wall, guest, kernel, poll, vmm, halted, waiting, waking, preempted, throttled,
	    interrupted;
	double states; /* sum of all states */
	double exits;
	double by_reason[VP_GUEST_EXITS], by_function[VP_GUEST_EXITS];
	double stolen_by_thief;
};

struct vp_selftest_facts {
	/* Reasons for features missing on this host, from `vperf check`; NULL: available. */
	char *no_samples, *no_account, *no_rips, *no_counter;
	/* The same work without a recording, with one, and without one again. */
	struct vp_guest_work work;
	struct vp_guest_done before, quiet, after;
	struct vp_selftest_recording quiet_recording;
	/* With another program on the same pCPU. */
	struct vp_guest_done shared;
	struct vp_selftest_recording shared_recording;
	struct vp_guest_cpu_time thief_begin, thief_end;
};

/* Reads the output of `vperf check --json`. */
void vp_facts_take_check(struct vp_selftest_facts *facts, struct json_object *check);
/* Reads reports of a recording; `vm`: the guest's name in them. */
void vp_facts_take_info(struct vp_selftest_recording *recording, struct json_object *info);
void vp_facts_take_report(struct vp_selftest_recording *recording, const char *vm,
			  struct json_object *report);
/* Reads a line of `vperf export jsonl`. */
void vp_facts_take_sample(struct vp_selftest_recording *recording, const char *vm,
			  struct json_object *sample);
void vp_facts_take_account(struct vp_selftest_recording *recording, const char *vm,
			   struct json_object *account);
void vp_facts_take_exits(struct vp_selftest_recording *recording, const char *vm,
			 struct json_object *exits);
void vp_facts_take_steal(struct vp_selftest_recording *recording, const char *vm, const char *thief,
			 struct json_object *steal);
/* Whether neither samples nor accounting are possible: there is no recording. */
bool vp_facts_records_nothing(const struct vp_selftest_facts *facts);
void vp_facts_deinit(struct vp_selftest_facts *facts);

/* Makes all checks, in the order of the table. */
void vp_facts_judge(const struct vp_selftest_facts *facts, struct vp_checks *checks);

#endif
