/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf record: samples every layer of this host until COMMAND ends or Ctrl-C. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cmd/session.h"
#include "recording/recorder.h"

static const struct vp_verb verb;

enum { MOST_PAGES = 1 << 20 };

const struct vp_verb *vp_verb_record(void)
{
	return &verb;
}

struct record {
	uint64_t frequency, period, pages, duration, agent_port, agent_seconds, agent_megabytes;
	const char *event, *output, *call_graph;
	struct vp_texts vms, command;
	bool chains, no_agent, no_memory, no_symbols, no_samples, no_account, account_events;
	bool quiet;
	bool as_ever; /* what is asked for is done anyway */
	int status;   /* of COMMAND */
};

static struct vp_error *check_most(const char *option, uint64_t value, uint64_t most)
{
	return value <= most
		   ? NULL
		   : vp_error_usage("option --%s: expected at most %" PRIu64 ", not %" PRIu64,
				    option, most, value);
}

static struct vp_error *check_options(struct record *record)
{
	if (record->frequency && record->period)
		return vp_error_usage("-F and -c exclude each other: give a rate or a period");
	if (record->no_samples && record->no_account)
		return vp_error_usage("--no-samples and --no-account exclude each other: nothing "
				      "would be recorded");
	if (record->account_events && record->no_account)
		return vp_error_usage("--account-events and --no-account exclude each other");
	VP_TRY(check_most("freq", record->frequency, 100000000));
	VP_TRY(check_most("duration", record->duration, 1000000000));
	VP_TRY(check_most("agent-port", record->agent_port, UINT32_MAX - 1));
	VP_TRY(check_most("agent-timeout", record->agent_seconds, 86400));
	VP_TRY(check_most("agent-limit", record->agent_megabytes, 1 << 20));
	if (record->call_graph && strcmp(record->call_graph, "fp") != 0)
		return vp_error_usage("option --call-graph: expected fp, not '%s'",
				      record->call_graph);
	if (record->pages & (record->pages - 1) || record->pages > MOST_PAGES)
		return vp_error_usage("option --mmap-pages: expected a power of two up to %d, "
				      "not %" PRIu64,
				      MOST_PAGES, record->pages);
	return NULL;
}

/* What is left is not worth waiting for, if the user says so: a signal may end the program. */
static void show_end_progress(const char *what, bool only_agents_left)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(what);

	if (only_agents_left) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s%s ", clean,
			only_agents_left ? ", Ctrl-C to go without" : "");
}

static struct vp_error *start(void *recorder)
{
	return vp_recorder_start(recorder);
}

static struct vp_error *step(void *recorder, int timeout_ms)
{
	return vp_recorder_step(recorder, timeout_ms);
}

static struct vp_error *finish(void *recorder)
{
	return vp_recorder_finish(recorder);
}

static char *take_notice(void *recorder)
{
	return vp_recorder_take_notice(recorder);
}

static char *totals_of(void *recorder)
{
	struct vp_recorder_totals totals = vp_recorder_totals(recorder);

	return vp_format("%" PRIu64 " samples, %" PRIu64 " lost, %zu VM%s", totals.samples,
			 totals.lost, totals.vms, totals.vms == 1 ? "" : "s");
}

static struct vp_error *record_with(void *context)
{
	struct record *record = context;
	VP_AUTO_FREE char *command_text = vp_command_text(&record->command);
	struct vp_command command = {0};
	struct vp_recorder *recorder = NULL;

	VP_TRY(check_options(record));
	if (geteuid() != 0)
		return vp_error_new("root is needed to sample the host (try sudo)");
	struct vp_recorder_options options = {
	    .directory = record->output,
	    .trigger = {.event = record->event,
			.frequency = record->frequency,
			.period = record->period},
	    .buffer_pages = record->pages,
	    .command = command_text,
	    .vm_names = record->vms.at,
	    .n_vm_names = record->vms.count,
	    .no_samples = record->no_samples,
	    .with_account = !record->no_account,
	    .with_states = record->account_events,
	    .ask_agents = !record->no_agent,
	    .read_memory = !record->no_memory && !record->no_samples,
	    .with_chains = record->chains || record->call_graph,
	    .with_symbols = !record->no_symbols,
	    .agent_port = (unsigned)record->agent_port,
	    .agent_seconds = (unsigned)record->agent_seconds,
	    .agent_bytes = record->agent_megabytes << 20,
	    .progress = record->quiet ? NULL : show_end_progress,
	};
	VP_TRY(vp_recorder_open(&options, &recorder));
	vp_command_catch_signals();
	struct vp_error *error = record->command.count
				     ? vp_command_prepare(verb.name, &record->command, &command)
				     : NULL;
	const struct vp_session session = {.verb = verb.name,
					   .duration = record->duration,
					   .quiet = record->quiet,
					   .output = record->output,
					   .recorder = recorder,
					   .start = start,
					   .step = step,
					   .finish = finish,
					   .take_notice = take_notice,
					   .totals = totals_of};
	if (!error)
		error = vp_session_record(&session, &command, &record->status);
	vp_recorder_free(recorder);
	return error;
}

static int run_record(int argc, char **argv)
{
	struct record record = {.pages = 512,
				.output = "vperf.data",
				.agent_port = 733,
				.agent_seconds = 60,
				.agent_megabytes = 512};
	const struct vp_option options[] = {
	    {'F', "freq", VP_OPTION_COUNT, &record.frequency, "HZ",
	     "samples per second and pCPU (1000)"},
	    {'c', "count", VP_OPTION_COUNT, &record.period, "N",
	     "sample every N events; for cpu-clock every N nanoseconds"},
	    {'e', "event", VP_OPTION_TEXT, &record.event, "EVENT",
	     "what triggers a sample: one of perf's events, or rHEX (cycles, or "
	     "cpu-clock where there is no counter)"},
	    {'o', "output", VP_OPTION_TEXT, &record.output, "DIR", "the recording (vperf.data)"},
	    {'g', "call-chains", VP_OPTION_FLAG, &record.chains, NULL,
	     "take call chains, of hosts and guests"},
	    {0, "call-graph", VP_OPTION_TEXT, &record.call_graph, "MODE",
	     "same as -g; MODE is fp: user space by frame pointers"},
	    {0, "vm", VP_OPTION_TEXTS, &record.vms, "NAME",
	     "look into this VM's guest only; may be given again"},
	    {'d', "duration", VP_OPTION_COUNT, &record.duration, "S",
	     "stop after S seconds (when COMMAND ends, or at Ctrl-C)"},
	    {'m', "mmap-pages", VP_OPTION_COUNT, &record.pages, "PAGES",
	     "buffer per pCPU, a power of two (512)"},
	    {'a', "all-cpus", VP_OPTION_FLAG, &record.as_ever, NULL,
	     "taken for granted: all pCPUs are always sampled"},
	    {0, "account", VP_OPTION_FLAG, &record.as_ever, NULL,
	     "taken for granted: the vCPUs' time is accounted for"},
	    {0, "no-account", VP_OPTION_FLAG, &record.no_account, NULL,
	     "samples only: no account, steal and exits"},
	    {0, "account-events", VP_OPTION_FLAG, &record.account_events, NULL,
	     "every state of every vCPU as an event, too"},
	    {0, "no-samples", VP_OPTION_FLAG, &record.no_samples, NULL,
	     "the account of the vCPUs' time only"},
	    {0, "no-agent", VP_OPTION_FLAG, &record.no_agent, NULL,
	     "do not ask agents in guests at the end"},
	    {0, "guest-memory", VP_OPTION_FLAG, &record.as_ever, NULL,
	     "taken for granted: guests' memory is read for names"},
	    {0, "no-guest-memory", VP_OPTION_FLAG, &record.no_memory, NULL,
	     "do not read guests' memory: names by agents and files only"},
	    {0, "no-symbols", VP_OPTION_FLAG, &record.no_symbols, NULL,
	     "keep build-ids only, no symbol tables of files"},
	    {0, "agent-port", VP_OPTION_COUNT, &record.agent_port, "PORT",
	     "vsock port of the agents (733)"},
	    {0, "agent-timeout", VP_OPTION_COUNT, &record.agent_seconds, "S",
	     "time for one agent's answer (60)"},
	    {0, "agent-limit", VP_OPTION_COUNT, &record.agent_megabytes, "MIB",
	     "size of one agent's answer at most (512)"},
	    {'q', "quiet", VP_OPTION_FLAG, &record.quiet, NULL, "no progress, no summary"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &record.command, record_with, &record);

	vp_vec_deinit(&record.vms);
	/* A command that the user's Ctrl-C ended did not fail. */
	return status ? status : record.status != 0 && !vp_command_stop_wanted();
}

static const struct vp_verb verb = {
    .name = "record",
    .usage = "[-F HZ | -c N] [-e EVENT] [-o DIR] [--vm NAME]... [-- COMMAND [ARG]...]",
    .summary = "sample the host, its VMs and the guests in them",
    .takes_command = true,
    .run = run_record,
};
