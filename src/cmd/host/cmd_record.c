/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf record: samples every layer of this host until COMMAND ends or Ctrl-C. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "cmd/host/cmd_stat.h"
#include "cmd/host/record_events.h"
#include "cmd/host/record_flight.h"
#include "cmd/host/record_loop.h"
#include "cmd/host/record_targets.h"
#include "collect/programs/account_source.h"
#include "collect/programs/guest_sampler.h"
#include "host/host.h"
#include "host/pmu.h"
#include "schema/account_grade.h"
#include "schema/interval.h"
#include "schema/recipe.h"
#include "schema/records.h"
#include "schema/trace_event.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "session/instrument_account.h"
#include "session/instrument_guest_samples.h"
#include "session/instrument_guest_trace.h"
#include "session/instrument_hypervisor.h"
#include "session/instrument_intervals.h"
#include "session/instrument_profile.h"
#include "session/instrument_trace.h"
#include "session/instrument_tracepoints.h"
#include "session/plan.h"
#include "session/session.h"
#include "store/packet_zstd.h"

static const struct vp_verb verb;

enum { MAX_PAGES = 1 << 20 };

const struct vp_verb *vp_verb_record(void)
{
	return &verb;
}

struct record {
	uint64_t frequency, period, pages, duration_ns, names_ns, agent_port, agent_ns,
	    agent_megabytes;
	const char *output, *call_graph, *stat, *trace, *trace_guests, *compression, *interrupts,
	    *account;
	enum vp_account_grade grade; /* --account, or the default */
	unsigned level;              /* --compression-level; 0: not given */
	struct vp_record_events events;
	unsigned sets, guest_sets; /* --trace, --trace-guests */
	struct vp_hypervisor_events *hypervisor_events;
	struct vp_texts vms, command;
	bool chains, no_agent, no_memory, no_symbols, no_samples, no_account, account_events,
	    paravirtual;
	enum vp_guest_interrupts at; /* --interrupts */
	struct vp_record_flight flight;
	struct vp_record_targets targets;
	bool quiet, quiet_vms, shared, stagger;
	bool ignored_flag; /* accepted for compatibility: already the default */
	int status;        /* of COMMAND */
};

static bool is_level(const char *word)
{
	return word[0] && !word[strspn(word, "0123456789")];
}

static bool is_interrupt_source(const char *word)
{
	return !strcmp(word, "exits") || !strcmp(word, "pmu");
}

static bool is_grade(const char *word)
{
	enum vp_account_grade grade;

	return vp_account_grade_parse(word, &grade);
}

static bool is_sets(const char *word)
{
	unsigned sets;
	VP_AUTO_ERROR struct vp_error *error = vp_trace_sets_parse(word, &sets);

	return word[0] && !error;
}

static struct vp_error *check_most(const char *option, uint64_t value, uint64_t most)
{
	return value <= most
		   ? NULL
		   : vp_error_usage("option --%s: expected at most %" PRIu64 ", not %" PRIu64,
				    option, most, value);
}

/* Without SETS: all available ones. */
static struct vp_error *choose_sets(struct record *record)
{
	VP_TRY(vp_trace_sets_parse(record->trace, &record->sets));
	if (!record->trace[0] && record->no_memory)
		record->sets &= ~(unsigned)VP_TRACE_SET_guest;
	vp_record_events_add_sets(&record->events, record->sets);
	return record->no_memory && record->sets & VP_TRACE_SET_guest
		   ? vp_error_usage("--trace=guest and --no-guest-memory are mutually exclusive")
		   : NULL;
}

static struct vp_error *choose_guest_sets(struct record *record)
{
	return record->no_agent
		   ? vp_error_usage("--trace-guests and --no-agent are mutually exclusive")
		   : vp_record_guest_sets_parse(record->trace_guests, &record->guest_sets);
}

static struct vp_error *choose_hypervisor_events(struct record *record)
{
	const struct vp_texts *names = &record->events.of_hypervisor;

	if (!names->count)
		return NULL;
	if (record->no_account)
		return vp_error_usage("the hypervisor's own events need vCPU accounting: "
				      "--no-account and -e %s:%s are mutually exclusive",
				      vp_hypervisor_here()->events()->system, names->at[0]);
	return vp_hypervisor_here()->events()->open(names->at, names->count,
						    &record->hypervisor_events);
}

static struct vp_error *choose_level(struct record *record)
{
	const char *text = record->compression[0] ? record->compression : "1";
	char *end;
	unsigned long level = strtoul(text, &end, 10);

	if (*end || level < VP_ZSTD_LEVEL_MIN || level > VP_ZSTD_LEVEL_MAX)
		return vp_error_usage("option --compression-level: expected %d (the fastest) to %d "
				      "(the smallest), not '%s'",
				      VP_ZSTD_LEVEL_MIN, VP_ZSTD_LEVEL_MAX, text);
	record->level = (unsigned)level;
	return NULL;
}

static struct vp_error *choose_interrupts(struct record *record)
{
	const char *text = record->interrupts, *trigger = record->events.trigger;

	if (text[0] && strcmp(text, "exits") != 0 && strcmp(text, "pmu") != 0)
		return vp_error_usage("option --interrupts: expected exits or pmu, not '%s'", text);
	record->at = strcmp(text, "pmu") == 0 ? VP_INTERRUPTS_COUNTERS : VP_INTERRUPTS_EXITS;
	if (record->no_account || record->no_samples)
		return vp_error_usage("--interrupts and %s are mutually exclusive",
				      record->no_account ? "--no-account" : "--no-samples");
	if (record->at == VP_INTERRUPTS_COUNTERS && trigger && strcmp(trigger, "cpu-clock") != 0)
		return vp_error_usage("--interrupts=pmu and -e %s are mutually exclusive: counters "
				      "count in all domains then",
				      trigger);
	return vp_guest_samples_needed() ? NULL
					 : vp_error_new("option --interrupts: for Xen only: on %s, "
							"the host samples guests directly",
							vp_hypervisor_here()->name);
}

/* The option that requires timing of every exit, or NULL. */
static const char *option_of_exact(const struct record *record)
{
	return record->account_events ? "--account-events" : record->stat ? "--stat" : NULL;
}

static struct vp_error *choose_grade(struct record *record)
{
	const char *word = record->account, *other = option_of_exact(record);
	bool has_grades = vp_hypervisor_here()->account()->has_grades;

	/* --trace records each exit: timing it, too, is little more, and --time is exact. */
	bool is_traced = record->sets & VP_TRACE_SET_kvm;
	record->grade = other || !has_grades || is_traced ? VP_ACCOUNT_EXACT : VP_ACCOUNT_SAMPLED;
	if (!word || !word[0])
		return NULL;
	if (!vp_account_grade_parse(word, &record->grade))
		return vp_error_usage("option --account: expected exact, sampled or states, not "
				      "'%s'",
				      word);
	if (record->no_account)
		return vp_error_usage("--account and --no-account are mutually exclusive");
	if (record->grade == VP_ACCOUNT_EXACT)
		return NULL;
	if (other)
		return vp_error_usage("--account=%s and %s are mutually exclusive: that needs "
				      "--account=exact",
				      word, other);
	if (record->grade == VP_ACCOUNT_STATES && record->no_samples)
		return vp_error_usage("--account=states and --no-samples are mutually exclusive: "
				      "samples split the running time of a vCPU");
	return has_grades ? NULL
			  : vp_error_new("option --account: accounting on %s is always exact",
					 vp_hypervisor_here()->name);
}

static struct vp_error *cmd_record_check_options(struct record *record)
{
	if (record->frequency && record->period)
		return vp_error_usage("-F and -c are mutually exclusive");
	VP_TRY(vp_record_events_choose(&record->events));
	if (record->no_samples && record->no_account && !record->stat && !record->trace &&
	    !record->trace_guests && !record->events.specs.count)
		return vp_error_usage("--no-samples and --no-account leave nothing to record");
	if (record->account_events && record->no_account)
		return vp_error_usage("--account-events and --no-account are mutually exclusive");
	if (record->paravirtual && record->no_account)
		return vp_error_usage("--paravirtual and --no-account are mutually exclusive");
	if (record->flight.conditions.count && record->no_account &&
	    vp_hypervisor_here()->conditions()->needs_account)
		return vp_error_usage("on %s, --snapshot-on needs vCPU accounting: it and "
				      "--no-account are mutually exclusive",
				      vp_hypervisor_here()->name);
	if (record->no_samples &&
	    (record->targets.pids || record->targets.tids || record->targets.cpus))
		return vp_error_usage("--no-samples and --pid, --tid or --cpu are mutually "
				      "exclusive: these choose samples");
	VP_TRY(vp_record_targets_check(&record->targets));
	VP_TRY(choose_hypervisor_events(record));
	if (record->paravirtual && !vp_hypervisor_here()->account()->has_paravirtual)
		return vp_error_new("option --paravirtual: on %s, VM exits are always counted",
				    vp_hypervisor_here()->name);
	if (record->interrupts)
		VP_TRY(choose_interrupts(record));
	VP_TRY(vp_record_flight_check(&record->flight));
	if (record->compression)
		VP_TRY(choose_level(record));
	if (record->trace)
		VP_TRY(choose_sets(record));
	VP_TRY(choose_grade(record));
	if (record->trace_guests)
		VP_TRY(choose_guest_sets(record));
	VP_TRY(check_most("freq", record->frequency, 100000000));
	VP_TRY(check_most("agent-port", record->agent_port, UINT32_MAX - 1));
	if (record->agent_ns > 86400 * 1000000000ULL)
		return vp_error_usage("option --agent-timeout: expected at most a day");
	VP_TRY(check_most("agent-limit", record->agent_megabytes, 1 << 20));
	if (record->call_graph && strcmp(record->call_graph, "fp") != 0 &&
	    strcmp(record->call_graph, "dwarf") != 0)
		return vp_error_usage("option --call-graph: expected fp or dwarf, not '%s'",
				      record->call_graph);
	if (record->pages & (record->pages - 1) || record->pages > MAX_PAGES)
		return vp_error_usage("option --mmap-pages: expected a power of two up to %d, "
				      "not %" PRIu64,
				      MAX_PAGES, record->pages);
	return NULL;
}

/* *stat is the recipe of --stat. */
static struct vp_error *cmd_record_read_recipe(const struct record *record, struct vp_recipe *stat)
{
	VP_AUTO_FREE char *path = NULL;

	if (!record->stat)
		return NULL;
	VP_TRY(vp_stat_recipe_path(record->stat, &path));
	VP_TRY(vp_recipe_read(path, stat));
	VP_TRY(vp_pmu_resolve_recipe(VP_SYSFS, path, stat));
	if (vp_hypervisor_here()->intervals && stat->per == VP_PER_VCPU && !stat->native &&
	    !(record->no_samples && record->no_account))
		return vp_error_new("option --stat: the trace of %s has one reader, and accounting "
				    "or samples are recorded: use 'vperf stat'",
				    vp_hypervisor_here()->name);
	return stat->per == VP_PER_TASK && !record->command.count
		   ? vp_error_usage("option --stat: the recipe is 'per task': expected -- COMMAND")
		   : NULL;
}

static void add_instruments(const struct record *record, const struct vp_recipe *stat, pid_t task,
			    struct vp_session *session)
{
	const struct vp_plan_request request = {
	    .frequency = record->frequency,
	    .period = record->period,
	    .trigger = record->events.trigger,
	    .pages = record->pages,
	    .at_interrupts = record->interrupts != NULL,
	    .no_memory = record->no_memory,
	    .states = record->account_events,
	    .trace = record->trace != NULL,
	    .stagger = record->stagger,
	};
	struct vp_plan plan = vp_plan_make(&request, vp_hypervisor_here());
	plan.trigger.pcpus = &record->targets.chosen.pcpus;
	const struct vp_instrument_guest_samples_options guest_samples = {
	    .period_ns = plan.guest_period_ns,
	    .poll_ns = plan.guest_poll_ns,
	    .read_memory = !record->no_memory,
	    .interrupts = record->at};
	const struct vp_instrument_profile_options profile = {
	    .trigger = plan.trigger,
	    .buffer_pages = plan.sample_pages,
	    .read_memory = plan.samples_read_memory,
	    .with_chains = record->chains || record->call_graph,
	    .by_frame_pointers = record->call_graph && !strcmp(record->call_graph, "fp"),
	    .targets = &record->targets.chosen,
	};
	const struct vp_account_source_options account = {.grade = record->grade,
							  .with_states = plan.states,
							  .reports_exits = record->stat != NULL,
							  .by_memory = !record->no_memory,
							  .events = record->hypervisor_events,
							  .paravirtual = record->paravirtual};
	const struct vp_instrument_intervals_options intervals = {
	    .recipe = stat,
	    .ring_bytes = plan.interval_bytes,
	    .task = (uint32_t)task,
	    .read_guest_memory = !record->no_memory,
	    .ask_agents = !record->no_agent,
	    .agent_port = (unsigned)record->agent_port,
	};
	const struct vp_instrument_trace_options trace = {.sets = record->sets & VP_TRACE_SETS_ALL,
							  .ring_bytes = plan.trace_bytes};
	const struct vp_instrument_tracepoints_options tracepoints = {
	    .specs = record->events.specs.at,
	    .n_specs = record->events.specs.count,
	    .ring_bytes = plan.trace_bytes,
	};
	const struct vp_instrument_guest_trace_options guest_trace = {
	    .sets = record->guest_sets, .port = (unsigned)record->agent_port};

	if (!record->no_samples)
		vp_session_add(session, vp_instrument_profile(&profile));
	/* Guests that are sampled separately have no process or thread on this host. */
	if (!record->no_samples && plan.samples_guests_apart && !record->targets.pids &&
	    !record->targets.tids)
		vp_session_add(session, vp_instrument_guest_samples(&guest_samples));
	if (!record->no_account)
		vp_session_add(session, vp_instrument_account(&account));
	if (trace.sets) /* first, because events of the trace have fixed ids */
		vp_session_add(session, vp_instrument_trace(&trace));
	if (record->hypervisor_events)
		vp_session_add(session, vp_instrument_hypervisor(record->hypervisor_events));
	if (record->stat)
		vp_session_add(session, vp_instrument_intervals(&intervals));
	if (tracepoints.n_specs)
		vp_session_add(session, vp_instrument_tracepoints(&tracepoints));
	if (guest_trace.sets)
		vp_session_add(session, vp_instrument_guest_trace(&guest_trace));
}

static struct vp_error *record_session(struct record *record, const struct vp_recipe *stat)
{
	VP_AUTO_FREE char *command_text = vp_command_text(&record->command);
	struct vp_command command = {0};
	const struct vp_session_options options = {
	    .flight = record->flight.size ? &record->flight.options : NULL,
	    .directory = record->output,
	    .command = command_text,
	    .compression = record->level,
	    .vm_names = record->vms.at,
	    .n_vm_names = record->vms.count,
	    .with_symbols = !record->no_symbols,
	    .names_ns = record->names_ns,
	    .ask_agents = !record->no_agent,
	    .agent_port = (unsigned)record->agent_port,
	    .agent_seconds = (unsigned)((record->agent_ns + 999999999) / 1000000000),
	    .agent_bytes = record->agent_megabytes << 20,
	    .quiet_vms = record->quiet_vms,
	    .progress = record->quiet ? NULL : vp_record_loop_progress,
	};

	if (record->flight.size)
		vp_command_catch_snapshot_signal();
	if (record->command.count)
		VP_TRY(vp_command_prepare(&record->command, &command));
	const struct vp_record_loop loop = {
	    .verb = verb.name,
	    .duration_ns = record->duration_ns ? record->duration_ns : stat->duration * 1000000000,
	    .quiet = record->quiet,
	    .output = record->output,
	    .session = vp_session_new(&options),
	    .targets = &record->targets};
	add_instruments(record, stat, command.pid, loop.session);
	struct vp_error *error = vp_session_open(loop.session);
	vp_command_catch_signals();
	if (!error)
		error = vp_record_loop_run(&loop, &command, &record->status);
	vp_session_free(loop.session);
	return error;
}

static struct vp_error *record_with(void *context)
{
	struct record *record = context;
	struct vp_recipe stat = {0};

	VP_TRY(cmd_record_check_options(record));
	vp_command_keep_private(record->shared);
	if (geteuid() != 0)
		return vp_error_new("sampling the host requires root (try sudo)");
	struct vp_error *error = cmd_record_read_recipe(record, &stat);
	if (!error)
		error = record_session(record, &stat);
	vp_recipe_deinit(&stat);
	return error;
}

static void deinit_record(struct record *record)
{
	vp_vec_deinit(&record->vms);
	vp_record_events_deinit(&record->events);
	vp_vec_deinit(&record->flight.conditions);
	vp_record_targets_deinit(&record->targets);
}

static int run_record(int argc, char **argv)
{
	struct record record = {
	    .output = "vperf.data", .agent_ns = 60000000000ULL, .agent_megabytes = 512};
	const struct vp_option options[] = {
	    {'F', "freq", VP_OPTION_COUNT, &record.frequency, "HZ",
	     "samples per second and pCPU (default: 997; on Xen 97, of each vCPU's CPU time, or "
	     "997 with --interrupts)"},
	    {'c', "count", VP_OPTION_COUNT, &record.period, "N",
	     "sample every N events; every N ns for cpu-clock"},
	    {0, "stagger", VP_OPTION_FLAG, &record.stagger, NULL,
	     "sample each pCPU at a different offset within the period, derived from the "
	     "machine-id (cpu-clock)"},
	    {'e', "event", VP_OPTION_TEXTS, &record.events.words, "EVENT",
	     "event to sample on: a perf event or rHEX (default: cycles, or cpu-clock without a "
	     "hardware counter); SYSTEM:EVENT (may have wildcards): a tracepoint to record; "
	     "kprobe:FUNCTION or uprobe:BINARY:FUNCTION, with the syntax of perf probe after it: a "
	     "probe to record; on Xen xentrace:CLASS or xentrace:EVENT: Xen's own; can be "
	     "repeated"},
	    {0, "filter", VP_OPTION_OF_LAST, &record.events.filters, "FILTER",
	     "filter of the preceding tracepoint, such as 'prev_pid == 0'"},
	    {'g', "call-chains", VP_OPTION_FLAG, &record.chains, NULL,
	     "record call chains of host and guests"},
	    {0, "call-graph", VP_OPTION_TEXT, &record.call_graph, "MODE",
	     "as -g; guest user space by tables (MODE dwarf, as -g) or frame pointers (fp)"},
	    VP_RECORD_TARGET_OPTIONS(&record.targets),
	    {'a', "all-cpus", VP_OPTION_FLAG, &record.ignored_flag, NULL, NULL}, /* the default */
	    {0, "no-samples", VP_OPTION_FLAG, &record.no_samples, NULL,
	     "no samples: only vCPU accounting, --stat and --trace"},
	    {0, "interrupts", VP_OPTION_MAYBE, &record.interrupts, "AT",
	     "on Xen: also sample guests at interrupts; AT is exits (default): HVM and PVH guests, "
	     "at VM exits for external interrupts; pmu: all guests, at interrupts of a hardware "
	     "counter",
	     is_interrupt_source},
	    {0, "", VP_OPTION_HEADING, NULL, NULL, "What else to record"},
	    {0, "account", VP_OPTION_MAYBE, &record.account, "GRADE",
	     "vCPU accounting: exact (each exit is timed; default with --trace=kvm), sampled "
	     "(default: frequent exits are timed 1 in N), states (the scheduler's states; the rest "
	     "is estimated by samples)",
	     is_grade},
	    {0, "no-account", VP_OPTION_FLAG, &record.no_account, NULL,
	     "no vCPU accounting: no exits; account and steal only by --trace"},
	    {0, "account-events", VP_OPTION_FLAG, &record.account_events, NULL,
	     "also record every vCPU state change as an event"},
	    {0, "paravirtual", VP_OPTION_FLAG, &record.paravirtual, NULL,
	     "on Xen: also count hypercalls and traps of PV guests, for 'vperf exits'"},
	    {0, "stat", VP_OPTION_TEXT, &record.stat, "RECIPE",
	     "also count in intervals, like 'vperf stat --recipe RECIPE'"},
	    {0, "trace", VP_OPTION_MAYBE, &record.trace, "SETS",
	     "also record events: sched, kvm, irq, guest (default: these), block, net, "
	     "syscalls, timer, separated by commas",
	     is_sets},
	    {0, "trace-guests", VP_OPTION_MAYBE, &record.trace_guests, "SETS",
	     "also record guest events, which the agents send: sched, irq (default: these), block, "
	     "net, syscalls, timer, separated by commas",
	     is_sets},
	    {0, "", VP_OPTION_HEADING, NULL, NULL, "Guests"},
	    {0, "vm", VP_OPTION_TEXTS, &record.vms, "NAME",
	     "inspect only this VM's guest; can be repeated"},
	    {0, "guest-memory", VP_OPTION_FLAG, &record.ignored_flag, NULL, NULL}, /* the default */
	    {0, "no-guest-memory", VP_OPTION_FLAG, &record.no_memory, NULL,
	     "do not read guest memory: names only from agents and files"},
	    {0, "no-agent", VP_OPTION_FLAG, &record.no_agent, NULL,
	     "do not query guest agents at the end"},
	    {0, "agent-port", VP_OPTION_COUNT, &record.agent_port, "PORT",
	     "vsock port of the guest agents (default: 733)"},
	    {0, "agent-timeout", VP_OPTION_SECONDS, &record.agent_ns, "TIME",
	     "timeout for one agent's reply, in seconds or such as 2m (default: 60)"},
	    {0, "agent-limit", VP_OPTION_COUNT, &record.agent_megabytes, "MIB",
	     "maximum size of one agent's reply, in MiB (default: 512)"},
	    {0, "", VP_OPTION_HEADING, NULL, NULL, "Recording"},
	    {'o', "output", VP_OPTION_TEXT, &record.output, "DIR",
	     "recording directory (default: vperf.data)"},
	    {0, "shared", VP_OPTION_FLAG, &record.shared, NULL,
	     "let others read the recording, as the umask allows (default: only you)"},
	    {'z', "compression-level", VP_OPTION_MAYBE, &record.compression, "N",
	     "compress the streams with zstd at level N, 1 (the fastest, default) to 22", is_level},
	    {0, "names-every", VP_OPTION_SECONDS, &record.names_ns, "TIME",
	     "also write function names during the recording: soon after the start, then at "
	     "doubling intervals up to TIME"},
	    {'d', "duration", VP_OPTION_SECONDS, &record.duration_ns, "S",
	     "stop after this time, such as 5, 0.3, 500ms or 10m (default: when COMMAND ends or at "
	     "Ctrl-C)"},
	    {'m', "mmap-pages", VP_OPTION_PAGES, &record.pages, "PAGES",
	     "buffer size per pCPU: pages, a power of two, or bytes such as 4M (default: 512; 256 "
	     "for --stat, 1024 for --trace)"},
	    {0, "no-symbols", VP_OPTION_FLAG, &record.no_symbols, NULL,
	     "record only build-ids, no symbol tables of files"},
	    {'q', "quiet", VP_OPTION_FLAG, &record.quiet, NULL, "no progress, no summary"},
	    {0, "quiet-vms", VP_OPTION_FLAG, &record.quiet_vms, NULL,
	     "do not report VMs that start or stop, or their kernels"},
	    {0, "", VP_OPTION_HEADING, NULL, NULL, "Flight recorder"},
	    VP_RECORD_FLIGHT_OPTIONS(&record.flight),
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &record.command, record_with, &record);

	deinit_record(&record);
	/* Exit status 0 if Ctrl-C ended the command. */
	return status ? status : record.status != 0 && !vp_command_stop_wanted();
}

static const struct vp_verb verb = {
    .name = "record",
    .usage = "[-F HZ | -c N] [-e EVENT] [-o DIR] [-z[N]] [--vm NAME]... [--stat RECIPE] "
	     "[--trace[=SETS]] [--trace-guests[=SETS]] [--flight SIZE [--snapshot-on "
	     "CONDITION]...] [-- COMMAND [ARG]...]",
    .summary = "sample the host, its VMs and the guests in them",
    .takes_command = true,
    .run = run_record,
};
