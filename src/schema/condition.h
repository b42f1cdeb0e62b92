/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions on which a flight recorder takes a snapshot, as the user writes them: steal>10ms. */
#ifndef VP_SCHEMA_CONDITION_H
#define VP_SCHEMA_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* In the order of bpf/conditions_abi.h. */
enum vp_condition {
	VP_CONDITION_STEAL,     /* a vCPU thread was runnable for that long without a pCPU */
	VP_CONDITION_WAKEUP,    /* it got a pCPU that long after its wakeup */
	VP_CONDITION_EXIT,      /* from a VM exit that is no halt to the next entry */
	VP_CONDITION_THROTTLED, /* its cgroup's CPU quota was used up */
	VP_CONDITIONS
};

struct vp_conditions {
	bool wanted[VP_CONDITIONS];
	uint64_t ns[VP_CONDITIONS]; /* longer than this; 0: the condition has no limit */
};

/* Parses `text` and adds its condition. Errors: malformed, or a duplicate. */
struct vp_error *vp_conditions_add(struct vp_conditions *conditions, const char *text,
				   size_t size) VP_MUST_CHECK;
/* "steal>10ms", to be freed. */
char *vp_condition_text(const struct vp_conditions *conditions, enum vp_condition which);

/* A time with its unit: 10ms, 0.5s. `option` is named in the error; 0 is allowed if `may_be_0`. */
struct vp_error *vp_duration_parse(const char *option, const char *text, size_t size, bool may_be_0,
				   uint64_t *ret) VP_MUST_CHECK;

#endif
