/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes as users write them: kprobe:FUNCTION, kretprobe:FUNCTION, uprobe:BINARY:FUNCTION and
 * uretprobe:BINARY:FUNCTION, the rest as perf-probe(1) has it: [EVENT=]FUNCTION[+OFFSET|%return]
 * [ARGUMENT...], where an argument is [NAME=]WHAT[:TYPE].
 */
#ifndef VP_COLLECT_TRACEFS_PROBE_DEFINITION_H
#define VP_COLLECT_TRACEFS_PROBE_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_probe_argument {
	char *name; /* NULL: none was given */
	char *
	    what; /* a parameter ("sk->sk_num"), or what the kernel itself knows ("$arg1", "%di") */
	char *type; /* NULL: none was given */
};

struct vp_probe_definition {
	const char *text; /* all of it, for errors */
	bool of_user, at_return;
	char *binary; /* of_user: as it was given */
	char *event;  /* NULL: named after the function */
	char *function;
	uint64_t offset;
	VP_VEC(struct vp_probe_argument) arguments;
};

/* Whether it is meant for one, by its first word. */
bool vp_probe_is_definition(const char *text);
/* `text` must outlive it. Errors: what is missing or too much. */
struct vp_error *vp_probe_definition_parse(const char *text,
					   struct vp_probe_definition *ret) VP_MUST_CHECK;
void vp_probe_definition_deinit(struct vp_probe_definition *definition);
/* Whether the kernel itself knows what is meant: a register, memory, $retval, a number. */
bool vp_probe_argument_is_raw(const struct vp_probe_argument *argument);

#endif
