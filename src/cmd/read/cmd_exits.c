/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf exits: cost of VM exits, and the guest code that caused them. */
#include <string.h>

#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/account_options.h"
#include "cmd/common/choice.h"
#include "cmd/common/naming_options.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "schema/account_grade.h"
#include "store/packet.h"
#include "store/trace_reader.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_exits(void)
{
	return &verb;
}

struct exits {
	struct vp_account_options common;
	const char *by;
	struct vp_naming_words words;
	enum vp_exits_by chosen;
	struct vp_naming_options naming;
};

static struct vp_error *cmd_exits_choose_all(struct exits *exits)
{
	static const char *const names[] = {[VP_EXITS_BY_REASON] = "reason",
					    [VP_EXITS_BY_FUNCTION] = "function",
					    [VP_EXITS_BY_PROCESS] = "process",
					    [VP_EXITS_BY_ADDRESS] = "address"};
	size_t by = 0;

	/* Addresses can be resolved only within their own recording, so other tables cannot be
	 * joined. */
	exits->common.joins = !exits->by || !strcmp(exits->by, names[VP_EXITS_BY_REASON]);
	if (!exits->common.joins && exits->common.store.store && exits->common.time)
		return vp_error_new("guest addresses of exits are summed over a whole recording: "
				    "name one in place of --store and --time ('vperf store' lists "
				    "them), or choose --by reason");
	VP_TRY(vp_account_options_check(&exits->common));
	if (exits->by)
		VP_TRY(vp_choose("by", exits->by, names, VP_ARRAY_SIZE(names), &by));
	exits->chosen = (enum vp_exits_by)by;
	if (exits->chosen != VP_EXITS_BY_REASON && exits->common.vcpu)
		return vp_error_usage("--vcpu works only with --by reason: guest addresses are not "
				      "recorded per vCPU");
	if (exits->chosen != VP_EXITS_BY_REASON && exits->common.time)
		return vp_error_usage(
		    "--time works only with --by reason: guest addresses of exits "
		    "are summed over the whole recording; with 'record --trace', "
		    "'vperf script --event kvm_exit --time %s' lists them",
		    exits->common.time);
	return vp_naming_words_check(&exits->words, exits->common.directory, &exits->naming);
}

/* Function names come from the symbol map; lifetimes of processes need the clocks in the trace. */
static struct vp_error *make_sites(const struct exits *exits, struct vp_account_recording *rec,
				   struct vp_account_view *view, struct vp_table *table)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", rec->path);
	vp_stream_readers streams = {0};
	struct vp_naming naming;

	VP_TRY(vp_trace_open(host, VP_STREAMS(VP_STREAM_PCPU), &streams));
	struct vp_error *error =
	    vp_naming_load(&exits->naming, &rec->recording, &rec->vms, &streams, &naming);
	if (!error) {
		vp_account_sites_table(view, &naming, exits->chosen, table);
		vp_naming_deinit(&naming);
	}
	vp_trace_close(&streams);
	return error;
}

static struct vp_error *exits_with(void *context)
{
	struct exits *exits = context;
	struct vp_account_recording rec;
	struct vp_account_view view;
	struct vp_named_table table = {.key = "exits"};
	struct vp_error *error = NULL;

	VP_TRY(cmd_exits_choose_all(exits));
	VP_TRY(vp_account_options_open(&exits->common, &rec, &view));
	if (rec.account.grade == VP_ACCOUNT_STATES)
		error = vp_error_new("the recording '%s' has no exits: it was recorded with "
				     "--account=states",
				     rec.path);
	else if (exits->chosen == VP_EXITS_BY_REASON)
		vp_account_exits_table(&view, &table.table);
	else if (exits->chosen == VP_EXITS_BY_ADDRESS)
		vp_account_addresses_table(&view, &table.table);
	else
		error = make_sites(exits, &rec, &view, &table.table);
	if (!error)
		error = vp_account_print(&exits->common, &rec, verb.name, &table, 1, false);
	vp_table_deinit(&table.table);
	vp_account_view_deinit(&view);
	vp_account_recording_close(&rec);
	return error;
}

static int run_exits(int argc, char **argv)
{
	struct exits exits = {.common.needs_exits = true};
	const struct vp_option options[] = {
	    VP_ACCOUNT_OPTIONS(&exits.common),
	    {0, "by", VP_OPTION_TEXT, &exits.by, "WHAT",
	     "one row per reason, guest function, guest process or guest physical address "
	     "(default: reason)"},
	    VP_NAMING_OPTIONS(&exits.words),
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &exits.common.operands, exits_with, &exits);

	vp_naming_words_deinit(&exits.words, &exits.naming);
	vp_account_options_deinit(&exits.common);
	return status;
}

static const struct vp_verb verb = {
    .name = "exits",
    .usage = "[--vm NAME] [--by reason|function|process|address] [OPTION]... [DIR]",
    .summary = "show VM exits: count, cost and the guest code that causes them",
    .run = run_exits,
};
