/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of vperf stat. */
#ifndef VP_CMD_HOST_CMD_STAT_H
#define VP_CMD_HOST_CMD_STAT_H

#include "base/macros.h"
#include "cmd/common/options.h"
#include "cmd/host/record_loop.h"
#include "schema/recipe.h"

struct vp_stat_options {
	const char *recipe, *interval, *output, *per;
	struct vp_texts events, vms, command;
	uint64_t duration_ns, pages, agent_port;
	bool native, no_memory, no_agent, paravirtual, list, quiet, shared;
	int status; /* of COMMAND, from waitpid() */
};

/* The path of a recipe: a file, or one supplied with vperf. To be freed. */
struct vp_error *vp_stat_recipe_path(const char *name, char **ret) VP_MUST_CHECK;
/* Makes the recipe of --event and --interval. */
struct vp_error *vp_stat_recipe(const struct vp_stat_options *options,
				struct vp_recipe *ret) VP_MUST_CHECK;

#endif
