/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 'vperf stat' without root: counts COMMAND with perf events that the kernel allows. No BPF
 * programs run, so there are totals, but no intervals and no recording. */
#ifndef VP_CMD_HOST_STAT_UNPRIVILEGED_H
#define VP_CMD_HOST_STAT_UNPRIVILEGED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "cmd/common/options.h"
#include "schema/recipe.h"

struct vp_unprivileged {
	const struct vp_texts *command;
	uint64_t duration_ns; /* 0: until COMMAND ends */
	bool quiet;           /* print nothing */
};

/* Counts COMMAND and its children, and prints totals to stderr. `*status` is that of COMMAND, from
 * waitpid(). Errors: COMMAND cannot be executed, or no event can be counted. */
struct vp_error *vp_stat_unprivileged(const struct vp_unprivileged *options,
				      const struct vp_recipe *recipe, int *status) VP_MUST_CHECK;

#endif
