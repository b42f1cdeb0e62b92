/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recorder_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "collect/clock.h"
#include "collect/host.h"
#include "collect/vm_scan.h"
#include "recording/place.h"

enum {
	SETTLE_MS = 30000, /* how long finding the guests' kernels may hold up the start */
	STATES_MS = 100    /* every so often the vCPUs' states are fetched */
};

static uint64_t lost_in_buffers(const struct vp_recorder *recorder)
{
	uint64_t lost = 0;

	if (recorder->sampler)
		vp_vec_each (&recorder->trigger.pcpus, pcpu)
			lost += vp_sampler_lost(recorder->sampler, (uint32_t)*pcpu);
	return lost;
}

static uint64_t lost_states(const struct vp_recorder *recorder)
{
	return recorder->account ? vp_account_writer_lost_states(recorder->account) : 0;
}

static uint64_t lost_records(const struct vp_recorder *recorder)
{
	return lost_in_buffers(recorder) + lost_states(recorder) +
	       vp_trace_unwritten(recorder->trace);
}

bool vp_recorder_is_chosen(const struct vp_recorder *recorder, const struct vp_vm *vm)
{
	return vp_vm_is_named(vm, recorder->options.vm_names, recorder->options.n_vm_names);
}

/* The VM of that process, found now if it is new; NULL if the process has none (any more). */
struct vp_vm *vp_recorder_vm(struct vp_recorder *recorder, uint32_t pid)
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
	if (recorder->guest_watch && vp_recorder_is_chosen(recorder, vm))
		vp_guest_watch_add(recorder->guest_watch, vm);
	NOTICE(recorder, "VM '%s' (process %u) started during the recording", vm->name, pid);
	return vm;
}

static void describe(struct vp_recorder *recorder)
{
	struct vp_recording *about = &recorder->about;

	vp_recording_describe(about, recorder->trigger.name, recorder->options.command);
	about->period_ns = recorder->trigger.period_ns;
	about->by_time = recorder->trigger.by_time || recorder->options.no_samples;
	about->chains = recorder->options.with_chains && !recorder->options.no_samples;
	about->pcpus = (uint32_t)recorder->trigger.pcpus.count;
}

/* What the account says goes to the first pCPU's stream; other VMs' code is not looked at. */
static void take_account(void *context, struct vp_record_header *header)
{
	struct vp_recorder *recorder = context;
	uint32_t pid = ((struct vp_vcpu_account *)header)->pid;
	struct vp_exit_site *site = (void *)header;

	if (header->id == VP_ID_vcpu_account)
		vp_recorder_vm(recorder, pid);
	if (header->id == VP_ID_exit_site && recorder->options.n_vm_names) {
		const struct vp_vm *vm = vp_recorder_vm(recorder, pid);
		if (!vm || !vp_recorder_is_chosen(recorder, vm))
			site->ip = site->as_root = site->flags = 0;
	}
	if (header->id == VP_ID_vcpu_span)
		vp_trace_append(recorder->trace, VP_STREAM_STATES, header);
	else if (recorder->trigger.pcpus.count)
		vp_trace_append(recorder->trace, (uint32_t)recorder->trigger.pcpus.at[0], header);
}

/* Without an account, samples are worth recording all the same. */
static struct vp_error *open_account(struct vp_recorder *recorder)
{
	if (!recorder->options.with_account)
		return NULL;
	struct vp_error *error =
	    vp_account_writer_open(&recorder->vms, vp_host_vendor(), recorder->options.with_states,
				   take_account, recorder, &recorder->account);
	if (error && recorder->options.no_samples)
		return error;
	if (error)
		NOTICE(recorder, "no account of the vCPUs' time: %s", vp_error_message(error));
	else if (vp_account_writer_missing(recorder->account))
		NOTICE(recorder,
		       "the account of the vCPUs' time lacks something on this kernel: %s",
		       vp_account_writer_missing(recorder->account));
	vp_error_free(error);
	return NULL;
}

static void write_account(struct vp_recorder *recorder, uint64_t now, bool all)
{
	if (recorder->account)
		vp_account_writer_write(recorder->account, now, all);
}

static void write_states(struct vp_recorder *recorder, bool last)
{
	if (recorder->account && recorder->options.with_states)
		vp_account_writer_write_states(recorder->account, last);
}

static struct vp_error *write_cgroups(struct vp_recorder *recorder)
{
	if (!recorder->account)
		return NULL;
	vp_cgroups *cgroups = vp_account_writer_cgroups(recorder->account);
	vp_cgroups_find(cgroups);
	return vp_cgroups_write(recorder->options.directory, cgroups);
}

static struct vp_error *identify(void *context, uint32_t number, const struct vp_guest_state *state,
				 const struct vp_guest_finding *finding)
{
	return vp_sampler_identify(context, number, state, finding);
}

static void forget(void *context, uint32_t pid)
{
	vp_sampler_forget(context, pid);
}

static uint64_t count_nowhere(void *context, uint32_t pid, const struct vp_guest_finding *finding)
{
	return vp_sampler_identity_counts(context, pid, finding).nowhere;
}

static struct vp_error *change_memory(void *context, uint32_t number,
				      const struct vp_guest_state *state,
				      const struct vp_guest_finding *finding)
{
	return vp_sampler_identify_memory(context, number, state, finding);
}

static char *count_named(void *context, uint32_t pid, const struct vp_guest_finding *finding)
{
	struct vp_sampler_identity_counts counts =
	    vp_sampler_identity_counts(context, pid, finding);

	return vp_format("%llu samples named, %llu not", (unsigned long long)counts.good,
			 (unsigned long long)counts.failed);
}

static void watch_guests(struct vp_recorder *recorder)
{
	const struct vp_guest_user user = {.context = recorder->sampler,
					   .notices = &recorder->notices,
					   .check_s = 1,
					   .identify = identify,
					   .forget = forget,
					   .count_nowhere = count_nowhere,
					   .change_memory = change_memory,
					   .outcome = count_named};

	recorder->guest_watch =
	    vp_guest_watch_new(&user, recorder->options.directory, recorder->options.with_symbols);
	vp_vec_each (&recorder->vms, vm)
		if (vp_recorder_is_chosen(recorder, vm))
			vp_guest_watch_add(recorder->guest_watch, vm);
	if (recorder->vms.count)
		vp_recorder_say(recorder, false, "finding the guests' kernels");
	vp_guest_watch_settle(recorder->guest_watch, SETTLE_MS);
}

static void note_low_frequency(struct vp_recorder *recorder)
{
	uint64_t frequency = recorder->trigger.frequency;

	if (!recorder->options.trigger.frequency && frequency && frequency < VP_USUAL_FREQUENCY)
		NOTICE(recorder,
		       "sampling at %llu Hz, not %d: the kernel allows no more "
		       "(kernel.perf_event_max_sample_rate)",
		       (unsigned long long)frequency, VP_USUAL_FREQUENCY);
}

static struct vp_error *open_all(struct vp_recorder *recorder)
{
	const struct vp_recorder_options *options = &recorder->options;

	VP_TRY(vp_trigger_open(&options->trigger, &recorder->trigger));
	note_low_frequency(recorder);
	VP_TRY(vp_vm_scan(&recorder->vms, true));
	VP_TRY(vp_vms_expect(&recorder->vms, options->vm_names, options->n_vm_names));
	vp_vec_each (&recorder->vms, vm) /* now, rather than while the guests are sampled */
		vp_host_maps_see(recorder->host_maps, vm->pid, NULL, 0);
	describe(recorder);
	struct vp_sampler_options sampling = {.trigger = &recorder->trigger,
					      .buffer_pages = options->buffer_pages,
					      .by_memory = options->read_memory,
					      .with_chains = options->with_chains,
					      .take = vp_recorder_take,
					      .context = recorder};
	if (!options->no_samples)
		VP_TRY(vp_sampler_start(&sampling, &recorder->sampler));
	VP_TRY(open_account(recorder));
	/* Only now that recording works is an older one moved away. */
	VP_TRY(vp_recording_place(options->directory, &recorder->lock));
	VP_TRY(vp_trace_writer_create_host(options->directory, recorder->about.hostname,
					   &recorder->trace));
	if (options->read_memory && recorder->sampler)
		watch_guests(recorder);
	VP_TRY(vp_recording_write(options->directory, &recorder->about));
	return vp_vms_write(options->directory, &recorder->vms);
}

struct vp_error *vp_recorder_open(const struct vp_recorder_options *options,
				  struct vp_recorder **ret)
{
	struct vp_recorder *recorder = vp_alloc(sizeof(*recorder));

	recorder->options = *options;
	recorder->lock = -1;
	recorder->host_maps = vp_host_maps_new();
	struct vp_error *error = open_all(recorder);
	if (error)
		vp_recorder_free(recorder);
	else
		*ret = recorder;
	return error;
}

static void append_clocks(struct vp_recorder *recorder)
{
	struct vp_clock_reading clock = vp_clock_read();
	struct vp_clock_sync record = {.time = clock.monotonic,
				       .id = VP_ID_clock_sync,
				       .error_ns = clock.error_ns,
				       .tsc = clock.tsc,
				       .realtime = clock.realtime};

	if (recorder->trigger.pcpus.count)
		vp_trace_append(recorder->trace, (uint32_t)recorder->trigger.pcpus.at[0], &record);
}

struct vp_error *vp_recorder_start(struct vp_recorder *recorder)
{
	struct vp_trigger *trigger = &recorder->trigger;

	vp_vec_each (&trigger->pcpus, pcpu)
		vp_trace_flush(recorder->trace, (uint32_t)*pcpu, 0); /* opens the stream */
	append_clocks(recorder);
	recorder->about.start = vp_clock_monotonic();
	recorder->next_second = recorder->about.start + 1000000000;
	VP_TRY(vp_recording_write(recorder->options.directory, &recorder->about));
	if (recorder->account)
		vp_account_writer_begin(recorder->account, recorder->about.start);
	if (!recorder->sampler)
		return NULL;
	VP_TRY(vp_trigger_enable(trigger, true));
	for (size_t i = 0; trigger->by_time && i < trigger->pcpus.count; i++)
		vp_recorder_stream(recorder, (uint32_t)trigger->pcpus.at[i])->late_from =
		    trigger->enabled_at.at[i] + 2 * trigger->period_ns;
	return NULL;
}

static void flush_all(struct vp_recorder *recorder)
{
	vp_vec_each (&recorder->trigger.pcpus, pcpu)
		vp_trace_flush(
		    recorder->trace, (uint32_t)*pcpu,
		    recorder->sampler ? vp_sampler_lost(recorder->sampler, (uint32_t)*pcpu) : 0);
	if (recorder->options.with_states && recorder->account)
		vp_trace_flush(recorder->trace, VP_STREAM_STATES, lost_states(recorder));

	int failure = vp_trace_take_failure(recorder->trace);
	if (failure && !recorder->said_unwritten) {
		NOTICE(recorder, "cannot write to '%s': %s; records are being lost, and counted",
		       recorder->options.directory, strerror(failure));
		recorder->said_unwritten = true;
	}
}

/* `closely`: also VMs that their process has closed, for which its descriptors are gone through. */
static void note_ends(struct vp_recorder *recorder, bool closely)
{
	vp_vec_each (&recorder->vms, vm) {
		bool exited = kill((pid_t)vm->pid, 0) && errno == ESRCH;
		if (vm->end || !(exited || (closely && vp_vm_is_gone(vm))))
			continue;
		vm->end = vp_clock_monotonic();
		recorder->vms_changed = true;
		NOTICE(recorder, "VM '%s' (process %u) stopped during the recording", vm->name,
		       vm->pid);
	}
}

/* Once a second: VMs that are gone, the clocks, the list of VMs on disk. */
static void do_slow_work(struct vp_recorder *recorder)
{
	uint64_t now = vp_clock_monotonic();

	if (recorder->guest_watch)
		vp_guest_watch_step(recorder->guest_watch);
	if (now < recorder->next_second)
		return;
	recorder->next_second = now + 1000000000;
	append_clocks(recorder);
	write_account(recorder, now, false);
	vp_map_deinit(&recorder->no_vms); /* pids are used again */
	note_ends(recorder, ++recorder->seconds % 10 == 0);
	if (recorder->vms_changed) {
		struct vp_error *error = vp_vms_write(recorder->options.directory, &recorder->vms);
		recorder->vms_changed = error != NULL;
		vp_error_free(error);
	}
}

/* Notes what was lost up to now: gaps in what is drained next may be filled only without losses. */
static void note_losses(struct vp_recorder *recorder)
{
	vp_vec_each (&recorder->trigger.pcpus, pcpu) {
		struct stream *stream = vp_recorder_stream(recorder, (uint32_t)*pcpu);
		uint64_t lost = vp_sampler_lost(recorder->sampler, (uint32_t)*pcpu);
		stream->may_fill = lost == stream->lost;
		stream->lost = lost;
	}
}

static struct vp_error *drain(struct vp_recorder *recorder, int timeout_ms)
{
	if (!recorder->sampler) {
		poll(NULL, 0, timeout_ms);
		return NULL;
	}
	VP_TRY(vp_sampler_wait(recorder->sampler, timeout_ms));
	note_losses(recorder);
	return vp_sampler_drain(recorder->sampler);
}

struct vp_error *vp_recorder_step(struct vp_recorder *recorder, int timeout_ms)
{
	bool often = recorder->options.with_states && timeout_ms > STATES_MS;

	VP_TRY(drain(recorder, often ? STATES_MS : timeout_ms));
	write_states(recorder, false);
	do_slow_work(recorder);
	flush_all(recorder);
	return NULL;
}

void vp_recorder_say(const struct vp_recorder *recorder, bool only_agents_left, const char *what)
{
	if (recorder->options.progress)
		recorder->options.progress(what, only_agents_left);
}

/* The first of two failures; the second is its consequence. */
static struct vp_error *first_of(struct vp_error *first, struct vp_error *second)
{
	if (!first)
		return second;
	vp_error_free(second);
	return first;
}

struct vp_error *vp_recorder_finish(struct vp_recorder *recorder)
{
	struct vp_recording *about = &recorder->about;

	VP_TRY(vp_trigger_enable(&recorder->trigger, false));
	if (recorder->account)
		vp_account_writer_end(recorder->account);
	about->end = vp_clock_monotonic();
	VP_TRY(drain(recorder, 0));
	append_clocks(recorder);
	write_account(recorder, about->end, true);
	write_states(recorder, true);
	flush_all(recorder);
	note_ends(recorder, true);
	vp_vec_each (&recorder->vms, vm)
		if (!vm->end)
			vp_vm_read_tsc(vm);

	/* What is small first: there may be no room for the maps. */
	about->records = vp_trace_written(recorder->trace);
	about->lost = lost_records(recorder);
	struct vp_error *error = vp_recording_write(recorder->options.directory, about);
	error = first_of(error, vp_vms_write(recorder->options.directory, &recorder->vms));
	error = first_of(error, write_cgroups(recorder));
	vp_recorder_say(recorder, false, "writing the host's symbols");
	error = first_of(error, vp_recorder_write_host_maps(recorder));
	if (recorder->guest_watch) {
		vp_recorder_say(recorder, false, "reading the guests' maps");
		error = first_of(error, vp_recorder_read_guests(recorder));
		error = first_of(error, vp_vms_write(recorder->options.directory, &recorder->vms));
	}
	if (recorder->options.ask_agents) {
		vp_recorder_ask_agents(recorder);
		error = first_of(error, vp_vms_write(recorder->options.directory, &recorder->vms));
	}
	return error;
}

struct vp_recorder_totals vp_recorder_totals(const struct vp_recorder *recorder)
{
	return (struct vp_recorder_totals){.samples = recorder->samples,
					   .late = recorder->late,
					   .lost = lost_records(recorder),
					   .vms = recorder->vms.count};
}

char *vp_recorder_take_notice(struct vp_recorder *recorder)
{
	return vp_notices_take(&recorder->notices);
}

void vp_recorder_free(struct vp_recorder *recorder)
{
	if (!recorder)
		return;
	vp_account_writer_free(recorder->account);
	vp_guest_watch_free(recorder->guest_watch);
	vp_sampler_free(recorder->sampler);
	vp_trigger_close(&recorder->trigger);
	vp_trace_writer_free(recorder->trace);
	vp_host_maps_free(recorder->host_maps);
	vp_vms_deinit(&recorder->vms);
	vp_map_deinit(&recorder->vcpu_tids);
	vp_map_deinit(&recorder->no_vms);
	vp_vec_deinit(&recorder->streams);
	vp_notices_deinit(&recorder->notices);
	vp_recording_deinit(&recorder->about);
	if (recorder->lock >= 0)
		close(recorder->lock);
	free(recorder);
}
