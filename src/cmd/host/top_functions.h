/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 'vperf top --by function': live samples of the host and its guests, like perf top. */
#ifndef VP_CMD_HOST_TOP_FUNCTIONS_H
#define VP_CMD_HOST_TOP_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_top_functions_options {
	uint64_t count, delay_ns; /* number of updates, 0: unlimited; interval */
	uint64_t limit;           /* rows; 0: all, or as many as fit on the terminal */
	const char *vm;           /* only these VMs, see vp_account_view_init(); NULL: all */
	bool by_process, json, csv;
};

/* Prints updates until `count`, a signal, or a key. Needs root. */
struct vp_error *vp_top_functions(const struct vp_top_functions_options *options) VP_MUST_CHECK;

#endif
