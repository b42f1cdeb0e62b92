/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf stat: counts events in aligned intervals, as a recipe defines. */
#include "cmd/host/cmd_stat.h"
#include "cmd/read/stat_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/model/intervals.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "cmd/host/stat_unprivileged.h"
#include "host/perf_event.h"
#include "host/pmu.h"
#include "render/render_intervals.h"
#include "schema/event.h"
#include "schema/interval.h"
#include "schema/vm.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "session/instrument_intervals.h"
#include "session/session.h"

enum { MAX_PAGES = 1 << 20 };

static const struct vp_verb verb;

const struct vp_verb *vp_verb_stat(void)
{
	return &verb;
}

static void cmd_stat_list_event(void *context, const char *name, const struct vp_event *event,
				const char *meaning)
{
	static const char *const sources[] = {
	    [VP_FROM_COUNTER] = "counter", [VP_FROM_COUNT] = "host", [VP_FROM_GUEST] = "guest"};

	printf("%-26s %-8s %-3s %s\n", name, sources[event->source], event->unit, meaning);
}

static void list_pmu_event(void *context, const char *name)
{
	(void)context;
	printf("%-26s %-8s %-3s %s\n", name, "counter", "", "kernel PMU event");
}

static struct vp_error *cmd_stat_list(void)
{
	vp_event_each(cmd_stat_list_event, NULL);
	vp_pmu_each(VP_SYSFS, list_pmu_event, NULL);
	printf("%-26s %-8s %-3s %s\n", "rHEX", "counter", "", "raw hardware event code");
	printf("%-26s %-8s %-3s %s\n", "PMU/TERM=VALUE,.../", "counter", "",
	       "raw PMU event, by format terms");
	printf("%-26s %-8s %-3s %s\n", "SYSTEM:NAME", "counter", "", "tracepoint");
	return NULL;
}

static struct vp_error *cmd_stat_check(const struct vp_stat_options *options,
				       const struct vp_recipe *recipe)
{
	if (recipe->per == VP_PER_TASK && !options->command.count)
		return vp_error_usage("intervals of a task: expected -- COMMAND");
	if (options->vms.count && recipe->per != VP_PER_VCPU)
		return vp_error_usage("option --vm: the recipe is not 'per vcpu'");
	if (options->pages & (options->pages - 1) || options->pages > MAX_PAGES)
		return vp_error_usage("option --mmap-pages: expected a power of two up to %d, "
				      "not %" PRIu64,
				      MAX_PAGES, options->pages);
	if (options->agent_port >= UINT32_MAX)
		return vp_error_usage("option --agent-port: expected at most %" PRIu32
				      ", not %" PRIu64,
				      UINT32_MAX - 1, options->agent_port);
	return geteuid() ? vp_error_new("counting on the host requires root (try sudo)") : NULL;
}

static struct vp_session *make_session(const struct vp_stat_options *options, const char *command,
				       const struct vp_instrument_intervals_options *intervals)
{
	const struct vp_session_options how = {
	    .directory = options->output,
	    .command = command,
	    .vm_names = options->vms.at,
	    .n_vm_names = options->vms.count,
	    .progress = options->quiet ? NULL : vp_record_loop_progress,
	};
	struct vp_session *session = vp_session_new(&how);

	vp_session_add(session, vp_instrument_intervals(intervals));
	return session;
}

static struct vp_error *record_recipe(const struct vp_stat_options *options,
				      const struct vp_recipe *recipe, int *status)
{
	VP_AUTO_FREE char *text = vp_command_text(&options->command);
	struct vp_command command = {0};

	VP_TRY(cmd_stat_check(options, recipe));
	vp_command_keep_private(options->shared);
	vp_command_catch_signals();
	if (options->command.count)
		VP_TRY(vp_command_prepare(&options->command, &command));
	const struct vp_instrument_intervals_options intervals = {
	    .recipe = recipe,
	    .ring_bytes = options->pages * (size_t)getpagesize(),
	    .task = (uint32_t)command.pid,
	    .read_guest_memory = !options->no_memory,
	    .ask_agents = !options->no_agent,
	    .agent_port = (unsigned)options->agent_port,
	    .paravirtual = options->paravirtual,
	};
	const struct vp_record_loop loop = {.verb = verb.name,
					    .duration_ns = options->duration_ns
							       ? options->duration_ns
							       : recipe->duration * 1000000000,
					    .quiet = options->quiet,
					    .output = options->output,
					    .session = make_session(options, text, &intervals)};
	struct vp_error *error = vp_session_open(loop.session);
	if (!error)
		error = vp_record_loop_run(&loop, &command, status);
	vp_session_free(loop.session);
	return error;
}

/* `*label`: name of the recipe in sentences, to be freed. */
static struct vp_error *cmd_stat_read_recipe(const struct vp_stat_options *options, char **label,
					     struct vp_recipe *ret)
{
	if (!options->recipe) {
		*label = vp_strdup("the options");
		return vp_stat_recipe(options, ret);
	}
	VP_TRY(vp_stat_recipe_path(options->recipe, label));
	return vp_recipe_read(*label, ret);
}

static struct vp_error *check_plan(const struct vp_stat_options *options)
{
	if (options->recipe && (options->events.count || options->interval))
		return vp_error_usage("--recipe and --%s are mutually exclusive",
				      options->interval ? "interval" : "event");
	return options->recipe || options->events.count || options->command.count
		   ? NULL
		   : vp_error_usage(
			 "expected -- COMMAND, --recipe FILE, --event EVENT, or 'report'");
}

/* Without a recipe, counts only COMMAND like perf stat: software events, and hardware events if
 * there is a PMU. */
static void choose_defaults(struct vp_stat_options *options)
{
	bool has_pmu = vp_perf_event_has_hardware();

	if (!options->recipe && !options->events.count) {
		vp_vec_push(&options->events,
			    "task-clock,context-switches,cpu-migrations,page-faults");
		if (has_pmu)
			vp_vec_push(&options->events, "cycles,instructions,branches,branch-misses");
		options->native = true;
	}
	if (!options->recipe && !options->interval && !has_pmu)
		options->interval = "10";
}

static bool has_hypervisor_events(const struct vp_recipe *recipe)
{
	vp_vec_each (&recipe->events, event)
		if (event->event.source == VP_FROM_COUNT)
			return true;
	return recipe->unit == VP_UNIT_EXITS;
}

/* Whether only COMMAND can be counted: -e EVENTS -- COMMAND on a host without VMs. */
static bool has_command_only(const struct vp_stat_options *options, const struct vp_recipe *recipe)
{
	vp_vms vms = {0};

	if (options->native || options->recipe || options->per || options->vms.count ||
	    !options->command.count || has_hypervisor_events(recipe))
		return false;
	VP_AUTO_ERROR struct vp_error *error = vp_hypervisor_here()->scan(&vms, true);
	bool ret = !error && !vms.count;
	vp_vms_deinit(&vms);
	return ret;
}

/* Prints totals to stderr, as perf stat does: stdout belongs to COMMAND. */
static struct vp_error *print_counts(const struct vp_stat_options *options)
{
	struct vp_interval_recording rec;
	struct vp_buffer out = {0};

	VP_TRY(vp_interval_recording_open(options->output, &rec));
	vp_render_intervals_text(&rec, NULL, 1000, vp_terminal_error_width(), &out);
	bool written = !vp_fd_write_all(STDERR_FILENO, out.bytes, out.size);
	vp_buffer_deinit(&out);
	vp_interval_recording_close(&rec);
	return written ? NULL : vp_error_new("cannot write to standard error");
}

static struct vp_error *stat_with(void *context)
{
	struct vp_stat_options *options = context;
	struct vp_recipe recipe;

	if (options->list)
		return cmd_stat_list();
	VP_TRY(check_plan(options));
	choose_defaults(options);
	VP_AUTO_FREE char *label = NULL;
	VP_TRY(cmd_stat_read_recipe(options, &label, &recipe));
	struct vp_error *error = NULL;
	if (has_command_only(options, &recipe)) {
		options->native = true;
		if (!options->quiet)
			vp_verb_say(
			    verb.name,
			    "no VM is running: COMMAND itself is counted, as with --native");
	}
	if (options->native)
		error = vp_recipe_make_native(label, &recipe);
	if (!error && options->per)
		error = vp_recipe_set_per(label, &recipe, options->per);
	if (!error)
		error = vp_pmu_resolve_recipe(VP_SYSFS, label, &recipe);
	bool unprivileged = geteuid() && recipe.native && options->command.count;
	const struct vp_unprivileged plain = {&options->command, options->duration_ns,
					      options->quiet};
	if (!error && unprivileged)
		error = vp_stat_unprivileged(&plain, &recipe, &options->status);
	else if (!error)
		error = record_recipe(options, &recipe, &options->status);
	vp_recipe_deinit(&recipe);
	if (!error && !options->quiet && !unprivileged)
		error = print_counts(options);
	return error;
}

static int run_stat(int argc, char **argv)
{
	struct vp_stat_options stat = {.output = "vperf.stat", .pages = 256};
	const struct vp_option options[] = {
	    {'r', "recipe", VP_OPTION_TEXT, &stat.recipe, "FILE",
	     "recipe: what to count over which intervals; a file, or the name of an installed "
	     "recipe"},
	    {'e', "event", VP_OPTION_TEXTS, &stat.events, "EVENTS",
	     "events to count, separated by commas; {EVENT,EVENT} is a group; can be repeated"},
	    {'I', "interval", VP_OPTION_TEXT, &stat.interval, "MS",
	     "with -e: interval length in ms, with a unit such as 1s, or as in a recipe, such as "
	     "'exits 1000' (default: "
	     "'instructions 60M')"},
	    {'o', "output", VP_OPTION_TEXT, &stat.output, "DIR",
	     "recording directory (default: vperf.stat)"},
	    {0, "shared", VP_OPTION_FLAG, &stat.shared, NULL,
	     "let others read the recording, as the umask allows (default: only you)"},
	    {0, "native", VP_OPTION_FLAG, &stat.native, NULL,
	     "count COMMAND and its children, without a hypervisor"},
	    {0, "per", VP_OPTION_TEXT, &stat.per, "WHAT",
	     "interval per vcpu, task or pcpu (default: as in the recipe)"},
	    {0, "vm", VP_OPTION_TEXTS, &stat.vms, "NAME", "only this VM's vCPUs; can be repeated"},
	    {'d', "duration", VP_OPTION_SECONDS, &stat.duration_ns, "S",
	     "stop after this time, such as 5, 0.3, 500ms or 10m (default: the recipe's duration, "
	     "the "
	     "end of COMMAND, or Ctrl-C)"},
	    {'m', "mmap-pages", VP_OPTION_PAGES, &stat.pages, "PAGES",
	     "buffer size per pCPU: pages, a power of two, or bytes such as 4M (default: 256)"},
	    {0, "no-guest-memory", VP_OPTION_FLAG, &stat.no_memory, NULL,
	     "do not read guest memory: guest events are counted by agents"},
	    {0, "paravirtual", VP_OPTION_FLAG, &stat.paravirtual, NULL,
	     "on Xen, also count what PV domains, dom0 too, enter Xen for"},
	    {0, "no-agent", VP_OPTION_FLAG, &stat.no_agent, NULL,
	     "do not use agents for guest events that are not in guest memory"},
	    {0, "agent-port", VP_OPTION_COUNT, &stat.agent_port, "PORT",
	     "vsock port of the guest agents (default: 733)"},
	    {0, "list", VP_OPTION_FLAG, &stat.list, NULL, "list event names"},
	    {'q', "quiet", VP_OPTION_FLAG, &stat.quiet, NULL, "no summary"},
	};

	if (argc > 1 && !strcmp(argv[1], "report"))
		return vp_stat_report(argc - 1, argv + 1);
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &stat.command,
				 stat_with, &stat);
	vp_vec_deinit(&stat.events);
	vp_vec_deinit(&stat.vms);
	return status ? status : stat.status != 0 && !vp_command_stop_wanted();
}

static const struct vp_verb verb = {
    .name = "stat",
    .usage =
	"[-r RECIPE | -e EVENTS] [-I MS] [-o DIR] [-- COMMAND [ARG]...] | report [OPTION]... DIR",
    .summary = "count hardware, hypervisor and guest events over the same intervals",
    .takes_command = true,
    .run = run_stat,
};
