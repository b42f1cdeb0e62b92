/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/interval_recorder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "collect/clock.h"
#include "collect/intervals.h"
#include "collect/pcpus.h"
#include "collect/vm_scan.h"
#include "recording/guest_agents.h"
#include "recording/guest_watch.h"
#include "recording/notices.h"
#include "recording/place.h"
#include "recording/recording.h"
#include "recording/trace_writer.h"

enum {
	SETTLE_MS = 30000, /* how long finding the guests' kernels may hold up the start */
	CHECK_S = 10,      /* a guest that boots anew has other counters */
	AGENTS_MS = 10000, /* how long the agents' answers may */
};

struct vp_interval_recorder {
	struct vp_interval_recorder_options options;
	struct vp_recording about;
	struct vp_intervals *intervals;
	struct vp_trace_writer *trace;
	int lock;                       /* on the directory */
	struct vp_guest_watch *guests;  /* NULL: guests' memory is not read */
	struct vp_guest_agents *agents; /* NULL: nor are agents asked */
	vp_vms vms;
	struct vp_map no_vms; /* pids that were looked at and have no VM */
	bool vms_changed;
	uint64_t n_intervals;
	VP_VEC(struct vp_task) newcomers; /* vCPUs that are to be watched */
	vp_notices notices;
};

#define NOTICE(recorder, ...) vp_vec_push(&(recorder)->notices, vp_format(__VA_ARGS__))

static void note(struct vp_interval_recorder *recorder, struct vp_error *error)
{
	if (error)
		NOTICE(recorder, "%s", vp_error_message(error));
	vp_error_free(error);
}

static void say(const struct vp_interval_recorder *recorder, const char *what)
{
	if (recorder->options.progress && recorder->vms.count)
		recorder->options.progress(what);
}

static void watch_guest(struct vp_interval_recorder *recorder, const struct vp_vm *vm)
{
	const struct vp_interval_recorder_options *options = &recorder->options;

	if (recorder->guests && vp_vm_is_named(vm, options->vm_names, options->n_vm_names))
		vp_guest_watch_add(recorder->guests, vm);
}

/* The VM of that process, found now if it is new; NULL if the process has none. */
static struct vp_vm *vm_of(struct vp_interval_recorder *recorder, uint32_t pid)
{
	struct vp_vm *vm = vp_vms_find(&recorder->vms, pid);
	bool inserted;

	if (vm || vp_map_find(&recorder->no_vms, pid))
		return vm;
	vm = vp_vm_look_at(&recorder->vms, pid, false);
	if (!vm) {
		vp_map_insert(&recorder->no_vms, pid, 0, &inserted);
		return NULL;
	}
	recorder->vms_changed = true;
	watch_guest(recorder, vm);
	return vm;
}

/* What the programs know of a vCPU is better than what its thread's name says. */
static void see_vcpu(struct vp_interval_recorder *recorder, const struct vp_interval *interval)
{
	struct vp_vm *vm = vm_of(recorder, interval->pid);

	if (!vm || interval->vcpu == VP_VCPU_UNKNOWN)
		return;
	struct vp_vcpu *vcpu = vp_vm_vcpu(vm, interval->vcpu);
	recorder->vms_changed |= vcpu->tid != interval->tid;
	vcpu->tid = interval->tid;
}

/* A record of a program's: an interval with all its values, or the name of a new vCPU's thread. */
static void take_records(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct vp_interval_recorder *recorder = context;
	const struct vp_record_header *first = (const void *)records;
	struct vp_run run = {
	    .bytes = records, .size = size, .n = 1, .first = first->time, .last = first->time};

	if (first->id == VP_ID_interval) {
		const struct vp_interval *interval = (const void *)records;
		run.n += interval->values;
		recorder->n_intervals++;
		if (recorder->options.recipe->per == VP_PER_VCPU)
			see_vcpu(recorder, interval);
	} else {
		const struct vp_task *task = (const void *)records;
		vm_of(recorder, task->pid);
		vp_vec_push(&recorder->newcomers, *task);
	}
	vp_trace_append_run(recorder->trace, pcpu, &run);
}

/* Their intervals are closed by events of their own, if events close them. */
static void watch_newcomers(struct vp_interval_recorder *recorder)
{
	vp_vec_each (&recorder->newcomers, task)
		if (!vp_intervals_is_watched(recorder->intervals, task->tid))
			note(recorder, vp_intervals_watch(recorder->intervals, task->pid, task->tid,
							  VP_VCPU_UNKNOWN));
	recorder->newcomers.count = 0;
}

static struct vp_error *watch_vm(struct vp_interval_recorder *recorder, const struct vp_vm *vm)
{
	const struct vp_interval_recorder_options *options = &recorder->options;

	if (!vp_vm_is_named(vm, options->vm_names, options->n_vm_names))
		return NULL;
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->tid && !vp_intervals_is_watched(recorder->intervals, vcpu->tid))
			VP_TRY(vp_intervals_watch(recorder->intervals, vm->pid, vcpu->tid,
						  vcpu->number));
	return NULL;
}

static struct vp_error *watch_all(struct vp_interval_recorder *recorder)
{
	const struct vp_interval_recorder_options *options = &recorder->options;

	if (options->recipe->per == VP_PER_TASK)
		return vp_intervals_watch(recorder->intervals, options->task, options->task,
					  VP_VCPU_UNKNOWN);
	if (options->recipe->per == VP_PER_VCPU)
		vp_vec_each (&recorder->vms, vm)
			VP_TRY(watch_vm(recorder, vm));
	return NULL;
}

static struct vp_error *open_intervals(struct vp_interval_recorder *recorder)
{
	const struct vp_interval_recorder_options *options = &recorder->options;
	struct vp_intervals_options how = {
	    .recipe = options->recipe,
	    .ring_bytes = options->ring_bytes,
	    .only_watched = options->n_vm_names > 0,
	    .take = take_records,
	    .context = recorder,
	};

	VP_TRY(vp_intervals_open(&how, &recorder->intervals));
	char *missing = vp_intervals_missing(recorder->intervals);
	if (missing)
		vp_vec_push(&recorder->notices, missing);
	return watch_all(recorder);
}

static struct vp_error *identify(void *context, uint32_t number, const struct vp_guest_state *state,
				 const struct vp_guest_finding *finding)
{
	return vp_intervals_identify(context, state, finding);
}

static void forget(void *context, uint32_t pid)
{
	vp_intervals_forget(context, pid);
}

static char *say_counters(void *context, uint32_t pid, const struct vp_guest_finding *finding)
{
	return vp_format("%zu counters of %zu vCPUs", finding->counts.count, finding->cpus.count);
}

/* Finds the guests' kernels before the first interval begins. */
static void watch_guests(struct vp_interval_recorder *recorder)
{
	const struct vp_guest_user user = {.context = recorder->intervals,
					   .notices = &recorder->notices,
					   .check_s = CHECK_S,
					   .identify = identify,
					   .forget = forget,
					   .outcome = say_counters};
	uint32_t in_memory = vp_intervals_guest_events(recorder->intervals) & VP_GUEST_IN_MEMORY;

	if (!recorder->options.read_guest_memory || !in_memory)
		return;
	recorder->guests = vp_guest_watch_new(&user, recorder->options.directory, false);
	vp_vec_each (&recorder->vms, vm)
		watch_guest(recorder, vm);
	say(recorder, "finding the guests' kernels");
	vp_guest_watch_settle(recorder->guests, SETTLE_MS);
}

/* Whether it is time to ask the VM's agent: what is not known by now, memory does not tell. A guest
 * that just boots gets time to have a kernel. */
static bool is_agents_turn(const struct vp_interval_recorder *recorder, const struct vp_vm *vm)
{
	const struct vp_interval_recorder_options *options = &recorder->options;
	uint64_t waited = vp_clock_monotonic() - vm->start;

	return vp_vm_is_named(vm, options->vm_names, options->n_vm_names) &&
	       !vp_guest_agents_asked(recorder->agents, vm) &&
	       (!recorder->guests || vm->at_start ||
		vp_guest_watch_has_found(recorder->guests, vm) || waited > SETTLE_MS * 1000000ULL);
}

static void ask_agents(struct vp_interval_recorder *recorder)
{
	vp_vec_each (&recorder->vms, vm)
		if (is_agents_turn(recorder, vm))
			vp_guest_agents_ask(recorder->agents, vm);
}

/* The same for what guests' memory does not tell. */
static void watch_agents(struct vp_interval_recorder *recorder)
{
	if (!recorder->options.ask_agents || !vp_intervals_guest_events(recorder->intervals))
		return;
	recorder->agents = vp_guest_agents_new(recorder->intervals, recorder->options.agent_port,
					       &recorder->notices);
	say(recorder, "waiting for the agents in the guests");
	ask_agents(recorder);
	vp_guest_agents_settle(recorder->agents, AGENTS_MS);
}

/* How it went with each guest is kept with its VM, and said if it did not go well. */
static void note_guests(struct vp_interval_recorder *recorder)
{
	vp_vec_each (&recorder->vms, vm) {
		if (recorder->agents) {
			free(vm->agent);
			vm->agent = vp_guest_agents_state(recorder->agents, vm);
		}
		if (!recorder->guests)
			continue;
		free(vm->memory);
		vm->memory = vp_guest_watch_state(recorder->guests, vm);
		if (vm->memory[0] && strncmp(vm->memory, "ok", 2) != 0)
			NOTICE(recorder, "VM '%s': its kernel's counters are not known: %s",
			       vm->name, vm->memory);
	}
	recorder->vms_changed = true;
}

static struct vp_error *write_recipe(const struct vp_interval_recorder *recorder)
{
	VP_AUTO_FREE char *path = vp_recording_recipe_path(recorder->options.directory);
	struct vp_buffer text = {0};

	vp_recipe_write(recorder->options.recipe, &text);
	struct vp_error *error = vp_file_publish(path, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

static struct vp_error *open_all(struct vp_interval_recorder *recorder)
{
	const struct vp_interval_recorder_options *options = &recorder->options;

	VP_TRY(vp_vm_scan(&recorder->vms, true));
	VP_TRY(vp_vms_expect(&recorder->vms, options->vm_names, options->n_vm_names));
	VP_TRY(open_intervals(recorder));
	vp_recording_describe(&recorder->about, options->recipe->unit_name, options->command);
	recorder->about.period_ns =
	    options->recipe->unit == VP_UNIT_TIME ? options->recipe->width : 1;
	recorder->about.by_time = true; /* there are no samples to miss */
	recorder->about.pcpus = (uint32_t)vp_intervals_pcpus(recorder->intervals)->count;
	/* Only now that counting works is an older one moved away. */
	VP_TRY(vp_recording_place(options->directory, &recorder->lock));
	VP_TRY(vp_trace_writer_create_host(options->directory, recorder->about.hostname,
					   &recorder->trace));
	VP_TRY(write_recipe(recorder));
	watch_guests(recorder);
	watch_agents(recorder);
	return vp_vms_write(options->directory, &recorder->vms);
}

struct vp_error *vp_interval_recorder_open(const struct vp_interval_recorder_options *options,
					   struct vp_interval_recorder **ret)
{
	struct vp_interval_recorder *recorder = vp_alloc(sizeof(*recorder));

	recorder->options = *options;
	recorder->lock = -1;
	struct vp_error *error = open_all(recorder);
	if (error)
		vp_interval_recorder_free(recorder);
	else
		*ret = recorder;
	return error;
}

struct vp_error *vp_interval_recorder_start(struct vp_interval_recorder *recorder)
{
	for (size_t i = 0; i < vp_intervals_pcpus(recorder->intervals)->count; i++)
		vp_trace_flush(recorder->trace,
			       (uint32_t)vp_intervals_pcpus(recorder->intervals)->at[i], 0);
	recorder->about.start = vp_clock_monotonic();
	VP_TRY(vp_recording_write(recorder->options.directory, &recorder->about));
	return vp_intervals_begin(recorder->intervals);
}

static void flush_all(struct vp_interval_recorder *recorder)
{
	const struct vp_pcpus *pcpus = vp_intervals_pcpus(recorder->intervals);
	uint64_t lost = vp_intervals_lost(recorder->intervals).intervals;

	/* The programs count their losses together: they are said with the first stream. */
	for (size_t i = 0; i < pcpus->count; i++)
		vp_trace_flush(recorder->trace, (uint32_t)pcpus->at[i], i ? 0 : lost);
	int failure = vp_trace_take_failure(recorder->trace);
	if (failure)
		NOTICE(recorder, "cannot write to '%s': %s; intervals are being lost, and counted",
		       recorder->options.directory, strerror(failure));
}

static struct vp_error *write_vms(struct vp_interval_recorder *recorder)
{
	if (!recorder->vms_changed)
		return NULL;
	recorder->vms_changed = false;
	return vp_vms_write(recorder->options.directory, &recorder->vms);
}

struct vp_error *vp_interval_recorder_step(struct vp_interval_recorder *recorder, int timeout_ms)
{
	VP_TRY(vp_intervals_drain(recorder->intervals, timeout_ms));
	watch_newcomers(recorder);
	vp_map_deinit(&recorder->no_vms); /* pids are used again */
	flush_all(recorder);
	if (recorder->guests)
		vp_guest_watch_step(recorder->guests);
	if (recorder->agents) {
		ask_agents(recorder);
		vp_guest_agents_step(recorder->agents);
	}
	return write_vms(recorder);
}

static void note_no_vcpus(struct vp_interval_recorder *recorder)
{
	if (recorder->options.recipe->per == VP_PER_VCPU && !recorder->n_intervals)
		NOTICE(recorder, "no vCPU ran: there are no intervals (--native counts what "
				 "COMMAND does itself)");
}

struct vp_error *vp_interval_recorder_finish(struct vp_interval_recorder *recorder)
{
	struct vp_recording *about = &recorder->about;

	VP_TRY(vp_intervals_end(recorder->intervals));
	about->end = vp_clock_monotonic();
	VP_TRY(vp_intervals_drain(recorder->intervals, 0));
	flush_all(recorder);
	struct vp_interval_totals totals = vp_interval_recorder_totals(recorder);
	about->records = vp_trace_written(recorder->trace);
	about->lost = totals.lost;
	uint64_t homeless = vp_intervals_lost(recorder->intervals).subjects;
	if (homeless)
		NOTICE(recorder, "%llu threads had no intervals: there was no room for more",
		       (unsigned long long)homeless);
	note_no_vcpus(recorder);
	note_guests(recorder);
	VP_TRY(write_vms(recorder));
	return vp_recording_write(recorder->options.directory, about);
}

struct vp_interval_totals vp_interval_recorder_totals(const struct vp_interval_recorder *recorder)
{
	return (struct vp_interval_totals){
	    .intervals = recorder->n_intervals,
	    .lost = vp_intervals_lost(recorder->intervals).intervals +
		    vp_trace_unwritten(recorder->trace),
	    .vms = recorder->vms.count,
	};
}

char *vp_interval_recorder_take_notice(struct vp_interval_recorder *recorder)
{
	return vp_notices_take(&recorder->notices);
}

void vp_interval_recorder_free(struct vp_interval_recorder *recorder)
{
	if (!recorder)
		return;
	vp_guest_watch_free(recorder->guests);
	vp_guest_agents_free(recorder->agents);
	vp_intervals_free(recorder->intervals);
	vp_trace_writer_free(recorder->trace);
	vp_vms_deinit(&recorder->vms);
	vp_map_deinit(&recorder->no_vms);
	vp_notices_deinit(&recorder->notices);
	vp_vec_deinit(&recorder->newcomers);
	vp_recording_deinit(&recorder->about);
	if (recorder->lock >= 0)
		close(recorder->lock);
	free(recorder);
}
