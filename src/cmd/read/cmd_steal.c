/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf steal: thieves of each vCPU. */
#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/table.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/account_options.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"

/* Each vCPU has dozens of smaller thieves. */
#define LEAST_PERCENT 0.05

static const struct vp_verb verb;

const struct vp_verb *vp_verb_steal(void)
{
	return &verb;
}

static struct vp_error *steal_with(void *context)
{
	struct vp_account_options *options = context;
	struct vp_account_recording rec;
	struct vp_account_view view;
	struct vp_named_table table = {.key = "thieves"};

	VP_TRY(vp_account_options_check(options));
	VP_TRY(vp_account_options_open(options, &rec, &view));
	vp_account_steal_table(&view, &table.table);
	if (!options->limit)
		table.least = LEAST_PERCENT;
	if (options->chosen == VP_FORMAT_TEXT)
		vp_account_steal_totals(&view, &rec.notes);
	struct vp_error *error = vp_account_print(options, &rec, verb.name, &table, 1, false);
	vp_table_deinit(&table.table);
	vp_account_view_deinit(&view);
	vp_account_recording_close(&rec);
	return error;
}

static int run_steal(int argc, char **argv)
{
	struct vp_account_options steal = {.joins = true};
	const struct vp_option options[] = {VP_ACCOUNT_OPTIONS(&steal)};

	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &steal.operands, steal_with, &steal);

	vp_account_options_deinit(&steal);
	return status;
}

static const struct vp_verb verb = {
    .name = "steal",
    .usage = "[--vm NAME] [--vcpu N] [--time FROM,TO] [--format FORMAT] [DIR]",
    .summary = "show which tasks, VMs and interrupts took CPU time from the vCPUs",
    .run = run_steal,
};
