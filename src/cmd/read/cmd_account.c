/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf account: time of each vCPU by state, and a check that the states add up. */
#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/table.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/account_options.h"
#include "cmd/common/options.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_account(void)
{
	return &verb;
}

static struct vp_error *print_sums(const struct vp_account_options *options,
				   const struct vp_account_recording *rec,
				   struct vp_account_view *view)
{
	struct vp_named_table tables[] = {{.key = "states"}, {.key = "vcpus"}};

	vp_account_states_table(view, &tables[0].table);
	vp_account_vcpus_table(view, &tables[1].table);
	struct vp_error *error =
	    vp_account_print(options, rec, verb.name, tables, VP_ARRAY_SIZE(tables), true);
	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++)
		vp_table_deinit(&tables[i].table);
	return error;
}

static struct vp_error *cmd_account_print_events(const struct vp_account_options *options,
						 const struct vp_account_recording *rec,
						 struct vp_account_view *view)
{
	struct vp_named_table table = {.key = "events"};
	table.table.clock = options->clock;
	struct vp_error *error =
	    vp_account_events_table(view, rec->path, rec->recording.start, &table.table);

	if (!error)
		error = vp_account_print(options, rec, verb.name, &table, 1, false);
	vp_table_deinit(&table.table);
	return error;
}

static struct vp_error *account_with(void *context)
{
	struct vp_account_options *options = context;
	struct vp_account_recording rec;
	struct vp_account_view view;

	options->joins = !options->events;
	VP_TRY(vp_account_options_check(options));
	VP_TRY(vp_clock_option_parse(options->clock_form, options->directory, &options->clock));
	VP_TRY(vp_account_options_open(options, &rec, &view));
	struct vp_error *error = options->events ? cmd_account_print_events(options, &rec, &view)
						 : print_sums(options, &rec, &view);
	vp_account_view_deinit(&view);
	vp_account_recording_close(&rec);
	return error;
}

static int run_account(int argc, char **argv)
{
	struct vp_account_options account = {0};
	const struct vp_option options[] = {
	    VP_ACCOUNT_OPTIONS(&account),
	    {0, "clock", VP_OPTION_TEXT, &account.clock_form, "FORM",
	     "with --events: " VP_CLOCK_HELP},
	    {0, "events", VP_OPTION_FLAG, &account.events, NULL,
	     "list every vCPU state change (needs 'vperf record --account-events')"}};

	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &account.operands, account_with, &account);

	vp_account_options_deinit(&account);
	return status;
}

static const struct vp_verb verb = {
    .name = "account",
    .usage = "[--vm NAME] [--vcpu N] [--time FROM,TO] [--events] [--format FORMAT] [DIR]",
    .summary = "show the exact time of each vCPU by state",
    .run = run_account,
};
