/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf stat without root: COMMAND's own counters, as far as the kernel allows them. No BPF
 * programs run, so there are sums, but no intervals and no recording. */
#ifndef VP_CMD_HOST_STAT_UNPRIVILEGED_H
#define VP_CMD_HOST_STAT_UNPRIVILEGED_H

#include "base/macros.h"
#include "cmd/host/cmd_stat.h"
#include "schema/recipe.h"

/* Counts COMMAND and its children, and prints the sums to stderr unless `quiet`. `*status` is
 * COMMAND's, as waitpid() gives it. Errors: COMMAND cannot be executed, no event can be counted. */
struct vp_error *vp_stat_unprivileged(const struct vp_stat_options *options,
				      const struct vp_recipe *recipe, int *status) VP_MUST_CHECK;

#endif
