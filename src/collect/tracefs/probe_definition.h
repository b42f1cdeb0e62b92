/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses probe definitions: kprobe:FUNCTION, kretprobe:FUNCTION, uprobe:BINARY:FUNCTION and
 * uretprobe:BINARY:FUNCTION, with the rest as in perf-probe(1): [EVENT=]FUNCTION[+OFFSET|%return]
 * [ARGUMENT...], where an argument is [NAME=]VALUE[:TYPE].
 */
#ifndef VP_COLLECT_TRACEFS_PROBE_DEFINITION_H
#define VP_COLLECT_TRACEFS_PROBE_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_probe_argument {
	char *name; /* NULL: not given */
	char *what; /* a parameter ("sk->sk_num"), or the kernel's own syntax ("$arg1", "%di") */
	char *type; /* NULL: not given */
};

struct vp_probe_definition {
	const char *text; /* the whole definition, for errors */
	bool of_user, at_return;
	char *binary; /* of_user: as given */
	char *event;  /* NULL: use the function's name */
	char *function;
	uint64_t offset;
	VP_VEC(struct vp_probe_argument) arguments;
};

/* Whether the text is a probe definition, by its first word. */
bool vp_probe_is_definition(const char *text);
/* `text` must outlive the result. Errors: missing or superfluous parts. */
struct vp_error *vp_probe_definition_parse(const char *text,
					   struct vp_probe_definition *ret) VP_MUST_CHECK;
void vp_probe_definition_deinit(struct vp_probe_definition *definition);
/* Whether the argument is in the kernel's own syntax: a register, memory, $retval, a number. */
bool vp_probe_argument_is_raw(const struct vp_probe_argument *argument);

#endif
