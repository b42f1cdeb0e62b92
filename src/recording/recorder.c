/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recorder.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/map.h"
#include "collect/clock.h"
#include "collect/host_maps.h"
#include "collect/sampler.h"
#include "collect/vm_scan.h"
#include "recording/convert.h"
#include "recording/guest_watch.h"
#include "recording/place.h"
#include "recording/trace_writer.h"

/* What the stream of a pCPU said last. */
struct stream {
	uint32_t tid; /* the thread whose name was given */
	char comm[VP_COMM_SIZE];
	uint64_t grid; /* the clock's ticks are due at whole periods after this */
	uint64_t tick; /* how many were due up to the last sample */
	uint64_t lost; /* records lost before this drain */
	bool may_fill; /* a gap in this drain is no loss: nothing was lost */
	uint64_t vcpu; /* (VMM's pid, vCPU) and thread that were noted last */
	uint32_t vcpu_tid;
};

struct vp_recorder {
	struct vp_recorder_options options;
	struct vp_recording about;
	struct vp_trigger trigger;
	struct vp_sampler *sampler;
	struct vp_trace_writer *trace;
	int lock; /* on the directory */
	struct vp_host_maps *host_maps;
	struct vp_guest_watch *guest_watch; /* NULL: guests' memory is not read */
	/* (VMM's pid, tid in the guest, pCPU), hashed → the name written for it, hashed. */
	struct vp_map guest_tasks;
	vp_vms vms;
	struct vp_map vcpu_tids; /* (VMM's pid, vCPU) -> tid, as written to `vms` */
	struct vp_map no_vms;    /* pids that were looked at and have no VM */
	bool vms_changed;
	uint64_t seconds;     /* of slow work done */
	uint64_t next_second; /* when to look for what changes slowly */
	uint32_t vendor;
	VP_VEC(struct stream) streams; /* by pCPU */
	uint64_t samples, late;
	VP_VEC(char *) notices;
	bool said_unwritten;
};

/* A longer gap is no late tick: the pCPU was off, or the machine suspended. */
enum { MOST_LATE_NS = 1000000000 };
enum { MOST_GUEST_TASKS = 1 << 20 };
/* How long finding the guests' kernels may hold up the start. */
enum { SETTLE_MS = 30000 };

#define NOTICE(recorder, ...) vp_vec_push(&(recorder)->notices, vp_format(__VA_ARGS__))

static uint64_t lost_in_buffers(const struct vp_recorder *recorder)
{
	uint64_t lost = 0;

	if (recorder->sampler)
		vp_vec_each (&recorder->trigger.pcpus, pcpu)
			lost += vp_sampler_lost(recorder->sampler, *pcpu);
	return lost;
}

static uint64_t lost_records(const struct vp_recorder *recorder)
{
	return lost_in_buffers(recorder) + vp_trace_unwritten(recorder->trace);
}

static bool is_chosen(const struct vp_recorder *recorder, const struct vp_vm *vm)
{
	const struct vp_recorder_options *options = &recorder->options;

	for (size_t i = 0; i < options->n_vm_names; i++)
		if (!strcmp(options->vm_names[i], vm->name))
			return true;
	return options->n_vm_names == 0;
}

/* The VM of that process, found now if it is new; NULL if the process has none (any more). */
static struct vp_vm *vm_of(struct vp_recorder *recorder, uint32_t pid)
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
	if (recorder->guest_watch && is_chosen(recorder, vm))
		vp_guest_watch_add(recorder->guest_watch, vm);
	NOTICE(recorder, "VM '%s' (process %u) started during the recording", vm->name, pid);
	return vm;
}

static struct stream *stream_of(struct vp_recorder *recorder, uint32_t pcpu)
{
	while (recorder->streams.count <= pcpu)
		vp_vec_push(&recorder->streams, ((struct stream){.tid = UINT32_MAX}));
	return &recorder->streams.at[pcpu];
}

static void note_vcpu(struct vp_recorder *recorder, struct stream *stream,
		      const struct vp_raw_record *raw)
{
	uint64_t key = (uint64_t)raw->pid << 32 | raw->vcpu;
	bool inserted;

	if (stream->vcpu == key && stream->vcpu_tid == raw->tid)
		return;
	stream->vcpu = key;
	stream->vcpu_tid = raw->tid;
	uint32_t *tid = vp_map_find(&recorder->vcpu_tids, key);
	if (tid && *tid == raw->tid)
		return;
	struct vp_vm *vm = vm_of(recorder, raw->pid);
	if (!vm)
		return;
	size_t before = vm->vcpus.count;
	struct vp_vcpu *vcpu = vp_vm_vcpu(vm, raw->vcpu);
	recorder->vms_changed |= vcpu->tid != raw->tid;
	vcpu->tid = raw->tid;
	if (recorder->about.start && vm->vcpus.count > before && before && vm->at_start)
		NOTICE(recorder, "VM '%s' gained vCPU %u during the recording", vm->name,
		       raw->vcpu);
	*vp_map_insert(&recorder->vcpu_tids, key, raw->tid, &inserted) = raw->tid;
}

/* Where the kernel does not tell the vCPU's number, the thread's name did. */
static void complete_vcpu(struct vp_recorder *recorder, struct stream *stream,
			  struct vp_raw_record *raw)
{
	if (raw->flags & VP_RAW_VCPU_KNOWN) {
		note_vcpu(recorder, stream, raw);
		return;
	}
	const struct vp_vm *vm = vm_of(recorder, raw->pid);
	if (!vm)
		return;
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->tid == raw->tid)
			raw->vcpu = vcpu->number;
}

/* Says who the thread is, if the stream's last word was about another one. */
static void append_task(struct vp_recorder *recorder, struct stream *stream, uint32_t pcpu,
			const struct vp_raw_record *raw)
{
	union vp_any_record record;

	if (stream->tid == raw->tid && !memcmp(stream->comm, raw->comm, sizeof(stream->comm)))
		return;
	stream->tid = raw->tid;
	memcpy(stream->comm, raw->comm, sizeof(stream->comm));
	vp_convert_task(raw, &record);
	vp_trace_append(recorder->trace, pcpu, &record);
}

/*
 * Says what the guest's thread is called, unless the stream has said that: streams are drained one
 * after the other, so another one's word may be of a later time.
 */
static void append_guest_task(struct vp_recorder *recorder, uint32_t pcpu,
			      const struct vp_raw_record *raw)
{
	uint64_t key = vp_hash64((uint64_t)raw->pid << 32 | raw->guest_tid) + pcpu, words[2];
	union vp_any_record record;
	bool inserted;

	memcpy(words, raw->guest_comm, sizeof(words));
	uint32_t hash = (uint32_t)vp_hash64(words[0] ^ vp_hash64(words[1] + raw->guest_tgid));
	if (recorder->guest_tasks.count >= MOST_GUEST_TASKS)
		vp_map_deinit(&recorder->guest_tasks);
	uint32_t *known = vp_map_insert(&recorder->guest_tasks, key, ~hash, &inserted);
	if (*known == hash)
		return;
	*known = hash;
	vp_convert_guest_task(raw, &record);
	vp_trace_append(recorder->trace, pcpu, &record);
}

/*
 * How many ticks of the clock a sample stands for beside its own. A timer that fires late
 * (interrupts were off, or this machine is itself a VM that waited) skips the ticks that were due
 * meanwhile: perf forgets them. What was interrupted had the pCPU all the while, as far as anyone
 * can tell.
 */
static uint64_t missed_ticks(const struct vp_recorder *recorder, struct stream *stream,
			     uint64_t time)
{
	uint64_t period = recorder->trigger.period_ns;

	if (!recorder->trigger.by_time || !stream->grid || time < stream->grid)
		return 0;
	uint64_t due = (time - stream->grid) / period, next = stream->tick + 1;
	stream->tick = due > next ? due : next;
	bool late = due > next && (due - next) * period < MOST_LATE_NS;
	return late && stream->may_fill ? due - next : 0;
}

static void append_sample(struct vp_recorder *recorder, struct stream *stream, uint32_t pcpu,
			  uint32_t mode, uint64_t ip, struct vp_raw_record *raw)
{
	uint64_t period = recorder->trigger.period_ns;
	uint64_t missed = missed_ticks(recorder, stream, raw->time);
	union vp_any_record record;

	recorder->samples += missed + 1;
	recorder->late += missed;
	raw->time -= missed * period;
	append_task(recorder, stream, pcpu, raw);
	if (raw->flags & VP_BY_MEMORY && vp_mode_is_guest(mode))
		append_guest_task(recorder, pcpu, raw);
	for (; missed; missed--, raw->time += period) {
		raw->flags |= VP_LATE;
		vp_convert_sample(raw, mode, ip, recorder->vendor, &record);
		vp_trace_append(recorder->trace, pcpu, &record);
	}
	raw->flags &= ~VP_LATE;
	vp_convert_sample(raw, mode, ip, recorder->vendor, &record);
	vp_trace_append(recorder->trace, pcpu, &record);
}

/* Blanks out what the guest did, if its VM was not asked for; that the guest ran stays. */
static void hide_unchosen(struct vp_recorder *recorder, uint32_t mode, uint64_t *ip,
			  struct vp_raw_record *raw)
{
	const struct vp_vm *vm = vp_mode_is_guest(mode) ? vm_of(recorder, raw->pid) : NULL;

	if (!vm || is_chosen(recorder, vm))
		return;
	*ip = 0;
	raw->as_root = 0;
	raw->guest_tgid = raw->guest_tid = 0;
	raw->flags = (raw->flags & ~(uint32_t)(VP_HAS_AS_ROOT | VP_BY_MEMORY)) | VP_HIDDEN;
}

static void take_raw(void *context, int pcpu, uint32_t mode, uint64_t ip, struct vp_raw_record *raw)
{
	struct vp_recorder *recorder = context;
	struct stream *stream = stream_of(recorder, (uint32_t)pcpu);
	union vp_any_record record;

	if (raw->flags & VP_RAW_ON_VCPU || vp_mode_is_guest(mode)) {
		complete_vcpu(recorder, stream, raw);
		if (recorder->options.n_vm_names)
			hide_unchosen(recorder, mode, &ip, raw);
	}
	if (raw->kind != VP_RAW_SAMPLE) {
		vp_convert_switch(raw, recorder->vendor, &record);
		vp_trace_append(recorder->trace, (uint32_t)pcpu, &record);
		return;
	}
	append_sample(recorder, stream, (uint32_t)pcpu, mode, ip, raw);
	if (raw->flags & VP_BY_MEMORY && vp_mode_is_guest(mode) &&
	    vp_convert_guest_mode(raw, ip) == VP_MODE_GUEST_USER)
		vp_guest_watch_see(recorder->guest_watch, raw);
	if (mode == VP_MODE_USER)
		vp_host_maps_see(recorder->host_maps, raw->pid,
				 raw->tid == raw->pid ? raw->comm : NULL, raw->time);
}

static struct vp_error *check_vm_names(const struct vp_recorder *recorder)
{
	for (size_t i = 0; i < recorder->options.n_vm_names; i++) {
		struct vp_buffer known = {0};
		bool found = false;
		vp_vec_each (&recorder->vms, vm) {
			found |= !strcmp(vm->name, recorder->options.vm_names[i]);
			vp_buffer_printf(&known, "%s%s", known.size ? ", " : "", vm->name);
		}
		struct vp_error *error =
		    found ? NULL
			  : vp_error_new("no VM named '%s' is running; there is %s",
					 recorder->options.vm_names[i],
					 known.size ? vp_buffer_text(&known) : "none");
		vp_buffer_deinit(&known);
		if (error)
			return error;
	}
	return NULL;
}

static void describe(struct vp_recorder *recorder)
{
	struct vp_recording *about = &recorder->about;
	struct utsname names;

	uname(&names);
	about->tool = vp_strdup(VPERF_VERSION);
	about->hostname = vp_strdup(names.nodename);
	about->kernel = vp_strdup(names.release);
	about->trigger = vp_strdup(recorder->trigger.name);
	about->command = vp_strdup(recorder->options.command ? recorder->options.command : "");
	about->note = vp_strdup("");
	about->period_ns = recorder->trigger.period_ns;
	about->by_time = recorder->trigger.by_time;
	about->pcpus = (uint32_t)recorder->trigger.pcpus.count;
}

static struct vp_error *open_trace(struct vp_recorder *recorder)
{
	struct vp_clock_reading clock = vp_clock_read();
	uint8_t uuid[16];
	VP_AUTO_FREE char *path = vp_format("%s/host", recorder->options.directory);

	if (getrandom(uuid, sizeof(uuid), 0) != sizeof(uuid))
		return vp_error_errno(errno, "cannot draw a uuid");
	uuid[6] = (uuid[6] & 0x0f) | 0x40; /* RFC 4122: version 4, variant 1 */
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	struct vp_ctf_trace trace = {
	    .uuid = uuid,
	    .hostname = recorder->about.hostname,
	    .machine = "host",
	    .realtime_offset_ns = (int64_t)(clock.realtime - clock.monotonic),
	};
	return vp_trace_writer_create(path, &trace, &recorder->trace);
}

static void watch_guests(struct vp_recorder *recorder)
{
	recorder->guest_watch = vp_guest_watch_new(recorder->sampler, recorder->options.directory);
	vp_vec_each (&recorder->vms, vm)
		if (is_chosen(recorder, vm))
			vp_guest_watch_add(recorder->guest_watch, vm);
	vp_guest_watch_settle(recorder->guest_watch, SETTLE_MS);
}

static struct vp_error *open_all(struct vp_recorder *recorder)
{
	const struct vp_recorder_options *options = &recorder->options;

	VP_TRY(vp_trigger_open(&options->trigger, &recorder->trigger));
	VP_TRY(vp_vm_scan(&recorder->vms, true));
	VP_TRY(check_vm_names(recorder));
	vp_vec_each (&recorder->vms, vm) /* now, rather than while the guests are sampled */
		vp_host_maps_see(recorder->host_maps, vm->pid, NULL, 0);
	describe(recorder);
	VP_TRY(vp_sampler_start(&recorder->trigger, options->buffer_pages, take_raw, recorder,
				&recorder->sampler));
	/* Only now that recording works is an older one moved away. */
	VP_TRY(vp_recording_place(options->directory, &recorder->lock));
	VP_TRY(open_trace(recorder));
	if (options->read_memory)
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
	recorder->vendor = vp_sampler_vendor();
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
	union vp_any_record record = {
	    .clock_sync = {.header = {.time = clock.monotonic, .id = VP_ID_clock_sync},
			   .error_ns = clock.error_ns,
			   .tsc = clock.tsc,
			   .realtime = clock.realtime}};

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
	VP_TRY(vp_trigger_enable(trigger, true));
	for (size_t i = 0; i < trigger->pcpus.count; i++)
		stream_of(recorder, (uint32_t)trigger->pcpus.at[i])->grid =
		    trigger->enabled_at.at[i];
	return NULL;
}

static void flush_all(struct vp_recorder *recorder)
{
	vp_vec_each (&recorder->trigger.pcpus, pcpu)
		vp_trace_flush(recorder->trace, (uint32_t)*pcpu,
			       vp_sampler_lost(recorder->sampler, *pcpu));

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
	vp_sampler_read_lost(recorder->sampler);
	vp_vec_each (&recorder->trigger.pcpus, pcpu) {
		struct stream *stream = stream_of(recorder, (uint32_t)*pcpu);
		uint64_t lost = vp_sampler_lost(recorder->sampler, *pcpu);
		stream->may_fill = lost == stream->lost;
		stream->lost = lost;
	}
}

static struct vp_error *drain(struct vp_recorder *recorder, int timeout_ms)
{
	VP_TRY(vp_sampler_wait(recorder->sampler, timeout_ms));
	note_losses(recorder);
	VP_TRY(vp_sampler_drain(recorder->sampler));
	vp_sampler_read_lost(recorder->sampler);
	return NULL;
}

struct vp_error *vp_recorder_step(struct vp_recorder *recorder, int timeout_ms)
{
	VP_TRY(drain(recorder, timeout_ms));
	do_slow_work(recorder);
	flush_all(recorder);
	return NULL;
}

static void say(const struct vp_recorder *recorder, bool only_agents_left, const char *what)
{
	if (recorder->options.progress)
		recorder->options.progress(what, only_agents_left);
}

static struct vp_error *write_host_maps(struct vp_recorder *recorder)
{
	VP_AUTO_FREE char *path =
	    vp_recording_maps_path(recorder->options.directory, &recorder->vms, NULL);

	return vp_host_maps_write(recorder->host_maps, path, recorder->options.with_symbols);
}

/* Has map text made of the guests' memory; how that went goes into `vms`. */
static struct vp_error *read_guests(struct vp_recorder *recorder)
{
	struct vp_error *error = NULL;

	vp_vec_each (&recorder->vms, vm) {
		VP_AUTO_FREE char *path =
		    vp_recording_maps_path(recorder->options.directory, &recorder->vms, vm);
		bool written = false;
		if (!error && is_chosen(recorder, vm) && !vm->end)
			error = vp_guest_watch_dump(recorder->guest_watch, vm, path,
						    recorder->options.with_symbols, &written);
		free(vm->memory);
		vm->memory = vp_guest_watch_state(recorder->guest_watch, vm->pid);
		if (!written && vm->memory[0] && !vm->end)
			NOTICE(recorder, "VM '%s': %s", vm->name, vm->memory);
	}
	return error;
}

/* Asks the VM's agent, if it has a vsock device; how that went goes into `vms`. */
static void ask_agent(struct vp_recorder *recorder, struct vp_vm *vm)
{
	const struct vp_recorder_options *options = &recorder->options;
	VP_AUTO_FREE char *path = vp_recording_maps_path(options->directory, &recorder->vms, vm);
	struct vp_agent_limits limits = {.bytes = options->agent_bytes,
					 .seconds_idle = options->agent_seconds,
					 .seconds_total = options->agent_seconds,
					 .no_symbols = !options->with_symbols};
	struct vp_agent_result result = {0};
	VP_AUTO_FREE char *what = vp_format("asking the agent of VM '%s'", vm->name);
	say(recorder, true, what);
	struct vp_error *error =
	    vp_agent_fetch(vm->cid, options->agent_port, path, &limits, &result);

	free(vm->agent);
	vm->agent = vp_strdup(error ? vp_error_message(error) : "ok");
	if (error)
		NOTICE(recorder, "VM '%s': %s", vm->name, vm->agent);
	vp_error_free(error);
}

static void ask_agents(struct vp_recorder *recorder)
{
	vp_vec_each (&recorder->vms, vm) {
		if (!is_chosen(recorder, vm)) {
			free(vm->agent);
			vm->agent = vp_strdup("not asked: another VM was chosen with --vm");
		} else if (!vm->end && vm->cid) {
			ask_agent(recorder, vm);
		}
	}
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
	about->end = vp_clock_monotonic();
	append_clocks(recorder);
	VP_TRY(drain(recorder, 0));
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
	say(recorder, false, "writing the host's symbols");
	error = first_of(error, write_host_maps(recorder));
	if (recorder->guest_watch) {
		say(recorder, false, "reading the guests' maps");
		error = first_of(error, read_guests(recorder));
		error = first_of(error, vp_vms_write(recorder->options.directory, &recorder->vms));
	}
	if (recorder->options.ask_agents) {
		ask_agents(recorder);
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
	if (!recorder->notices.count)
		return NULL;
	char *notice = recorder->notices.at[0];
	memmove(recorder->notices.at, recorder->notices.at + 1,
		--recorder->notices.count * sizeof(*recorder->notices.at));
	return notice;
}

void vp_recorder_free(struct vp_recorder *recorder)
{
	if (!recorder)
		return;
	vp_guest_watch_free(recorder->guest_watch);
	vp_map_deinit(&recorder->guest_tasks);
	vp_sampler_free(recorder->sampler);
	vp_trigger_close(&recorder->trigger);
	vp_trace_writer_free(recorder->trace);
	vp_host_maps_free(recorder->host_maps);
	vp_vms_deinit(&recorder->vms);
	vp_map_deinit(&recorder->vcpu_tids);
	vp_map_deinit(&recorder->no_vms);
	vp_vec_deinit(&recorder->streams);
	vp_vec_each (&recorder->notices, notice)
		free(*notice);
	vp_vec_deinit(&recorder->notices);
	vp_recording_deinit(&recorder->about);
	if (recorder->lock >= 0)
		close(recorder->lock);
	free(recorder);
}
