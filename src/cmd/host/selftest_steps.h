/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of 'vperf selftest': its processes (guest, thief, recorder, reports) and their results. */
#ifndef VP_CMD_SELFTEST_STEPS_H
#define VP_CMD_SELFTEST_STEPS_H

#include <sys/types.h>

#include "base/macros.h"
#include "selftest/facts.h"

struct vp_selftest {
	bool quiet;        /* do not print progress */
	int pcpu;          /* of the guest and the thief */
	uint64_t deadline; /* CLOCK_MONOTONIC, ns; 0: none */
	char *folder;      /* of recordings and reports */
	pid_t guest, thief;
	int channel;           /* to the guest's process */
	char *vm, *thief_name; /* names in recordings */
	char *probes;          /* JSON output of 'vperf check' */
	struct vp_selftest_facts facts;
};

/* Runs all steps. Errors: a step failed. */
struct vp_error *vp_selftest_run(struct vp_selftest *test) VP_MUST_CHECK;
/* Ends remaining processes, and removes the folder unless `keep`. */
void vp_selftest_deinit(struct vp_selftest *test, bool keep);

#endif
