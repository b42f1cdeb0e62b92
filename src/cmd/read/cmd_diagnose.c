/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf diagnose: the largest causes of lost vCPU time, as text. */
#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/model/intervals.h"
#include "analyze/report/diagnose.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/account_options.h"
#include "cmd/common/naming_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "render/render_account.h"
#include "render/render_diagnose.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_diagnose(void)
{
	return &verb;
}

struct diagnose {
	struct vp_account_options account;
	struct vp_naming_words words;
	struct vp_naming_options naming;
};

/* Makes the table of exits by guest function. */
static struct vp_error *cmd_diagnose_find_sites(const struct diagnose *diagnose,
						struct vp_account_recording *rec,
						struct vp_account_view *view,
						struct vp_table *exit_sites)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", rec->path);
	vp_stream_readers streams = {0};
	struct vp_naming naming;

	VP_TRY(vp_trace_open(host, VP_STREAMS(VP_STREAM_PCPU), &streams));
	struct vp_error *error =
	    vp_naming_load(&diagnose->naming, &rec->recording, &rec->vms, &streams, &naming);
	if (!error) {
		vp_account_sites_table(view, &naming, VP_EXITS_BY_FUNCTION, exit_sites);
		vp_naming_deinit(&naming);
	}
	vp_trace_close(&streams);
	return error;
}

static struct vp_error *cmd_diagnose_print(const struct diagnose *diagnose,
					   const struct vp_diagnosis *diagnosis,
					   const struct vp_account_recording *rec)
{
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);

	if (diagnose->account.chosen == VP_FORMAT_JSON) {
		vp_json_answer(&json);
		vp_render_account_json(rec, &json);
		vp_render_diagnosis_json(diagnosis, rec, &json);
		vp_json_line(&json);
		vp_json_object_end(&json);
		vp_buffer_string(&out, "\n");
	} else {
		vp_render_account_head(rec, verb.name, &out);
		vp_render_diagnosis_text(diagnosis, rec, &out);
	}
	struct vp_error *error = diagnose->account.chosen == VP_FORMAT_JSON
				     ? vp_verb_print(&out)
				     : vp_verb_print_text(&out, true);
	vp_buffer_deinit(&out);
	return error;
}

static struct vp_error *cmd_diagnose_find(const struct vp_account_recording *rec,
					  const struct vp_account_view *view,
					  const struct vp_table *exit_sites,
					  const struct vp_table *addresses,
					  struct vp_diagnosis *ret)
{
	struct vp_interval_recording intervals = {0};
	bool has_intervals = vp_recording_has_intervals(rec->path);
	struct vp_error *error =
	    has_intervals ? vp_interval_recording_open(rec->path, &intervals) : NULL;

	*ret = (struct vp_diagnosis){0};
	if (error)
		return error;
	vp_diagnose(view, exit_sites, addresses, &rec->losses, has_intervals ? &intervals : NULL,
		    ret);
	vp_interval_recording_close(&intervals);
	return vp_diagnose_seconds(rec->path, view, exit_sites, ret);
}

static struct vp_error *find_in_one(const struct vp_account_recording *rec,
				    struct vp_account_view *view, const struct vp_table *exit_sites,
				    struct vp_table *addresses, struct vp_diagnosis *ret)
{
	vp_account_addresses_table(view, addresses);
	return cmd_diagnose_find(rec, view, exit_sites, addresses, ret);
}

static struct vp_error *diagnose_with(void *context)
{
	struct diagnose *diagnose = context;
	struct vp_account_recording rec;
	struct vp_account_view view;
	struct vp_diagnosis diagnosis;
	struct vp_table exit_sites = {0}, addresses = {0};

	VP_TRY(vp_account_options_check(&diagnose->account));
	if (diagnose->account.chosen == VP_FORMAT_CSV)
		return vp_error_usage("option --format: expected text or json, not 'csv'");
	VP_TRY(vp_naming_words_check(&diagnose->words, diagnose->account.directory,
				     &diagnose->naming));
	VP_TRY(vp_account_options_open(&diagnose->account, &rec, &view));
	view.limit = 0; /* --limit is for findings, not for the tables that they are searched in */
	bool joined = vp_store_options_has_several(&diagnose->account.store);
	VP_AUTO_FREE char *arguments =
	    joined ? vp_store_options_arguments(&diagnose->account.store, diagnose->account.time)
		   : NULL;
	rec.arguments = arguments;
	struct vp_error *error =
	    joined ? NULL : cmd_diagnose_find_sites(diagnose, &rec, &view, &exit_sites);
	if (!error) {
		if (joined)
			vp_diagnose_joined(&view, &rec.losses, &rec.notes, &diagnosis);
		else
			error = find_in_one(&rec, &view, &exit_sites, &addresses, &diagnosis);
		if (diagnose->account.limit && diagnosis.findings.count > diagnose->account.limit)
			diagnosis.findings.count = diagnose->account.limit;
		if (!error)
			error = cmd_diagnose_print(diagnose, &diagnosis, &rec);
		vp_diagnosis_deinit(&diagnosis);
	}
	vp_table_deinit(&exit_sites);
	vp_table_deinit(&addresses);
	vp_account_view_deinit(&view);
	vp_account_recording_close(&rec);
	return error;
}

static int run_diagnose(int argc, char **argv)
{
	struct diagnose diagnose = {.account.joins = true};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &diagnose.account.input, "DIR",
	     "recording directory (default: vperf.data)"},
	    VP_ACCOUNT_STORE_OPTION(&diagnose.account),
	    {0, "vm", VP_OPTION_NAMES, &diagnose.account.vm, "NAME",
	     "only this VM (name, or pid of its VMM); can be repeated"},
	    {0, "time", VP_OPTION_TEXT, &diagnose.account.time, "FROM,TO", VP_TIME_HELP},
	    {0, "format", VP_OPTION_TEXT, &diagnose.account.format.format, "FORMAT",
	     "text or json (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &diagnose.account.format.json, NULL,
	     "same as --format json"},
	    {0, "limit", VP_OPTION_COUNT, &diagnose.account.limit, "N",
	     "print only the first N findings"},
	    VP_NAMING_OPTIONS(&diagnose.words),
	};

	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &diagnose.account.operands, diagnose_with, &diagnose);

	vp_naming_words_deinit(&diagnose.words, &diagnose.naming);
	vp_account_options_deinit(&diagnose.account);
	return status;
}

static const struct vp_verb verb = {
    .name = "diagnose",
    .usage = "[--vm NAME] [--time FROM,TO] [--json] [DIR]",
    .summary = "rank the causes of lost CPU time, with advice",
    .run = run_diagnose,
};
