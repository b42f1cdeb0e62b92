/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trigger conditions of a flight recorder: steal>10ms. */
#ifndef VP_SCHEMA_CONDITION_H
#define VP_SCHEMA_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* In the order of bpf/conditions_abi.h. */
enum vp_condition {
	VP_CONDITION_STEAL,     /* a vCPU thread was runnable for longer than the limit */
	VP_CONDITION_WAKEUP,    /* time from its wakeup until it runs */
	VP_CONDITION_EXIT,      /* time from a VM exit other than a halt to the next entry */
	VP_CONDITION_THROTTLED, /* time without CPU quota */
	VP_CONDITIONS
};

struct vp_conditions {
	bool wanted[VP_CONDITIONS];
	uint64_t ns[VP_CONDITIONS]; /* limit; 0: no such trigger */
};

/* Parses `text` and adds it. Errors: malformed, or a duplicate. */
struct vp_error *vp_conditions_add(struct vp_conditions *conditions, const char *text,
				   size_t size) VP_MUST_CHECK;
/* "steal>10ms", to be freed. */
char *vp_condition_text(const struct vp_conditions *conditions, enum vp_condition which);

/* Parses a time with its unit: 10ms, 0.5s. `option` is named in the error; 0 is valid if
 * `may_be_0`. */
struct vp_error *vp_duration_parse(const char *option, const char *text, size_t size, bool may_be_0,
				   uint64_t *ret) VP_MUST_CHECK;

#endif
