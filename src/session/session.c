/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/map.h"
#include "base/notices.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/hypervisor.h"
#include "host/host_maps.h"
#include "host/host_rules.h"
#include "host/kernel_btf.h"
#include "host/vm_scan.h"
#include "schema/agent_outcome.h"
#include "schema/event_class.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "session/session.h"
#include "session/session_flight.h"
#include "session/session_private.h"
#include "store/boot.h"
#include "store/directory.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/sample_counts.h"
#include "store/trace_writer.h"

enum {
	SETTLE_MS = 30000, /* maximum delay of the start for finding guest kernels */
	OFTEN_MS = 100,
	SOON_MS = 10,   /* timeout while names of generated code must be read soon */
	CLOSELY_S = 10, /* interval of scanning the descriptors of VM processes */
};
#define SECOND 1000000000ULL

struct vp_session *vp_session_new(const struct vp_session_options *options)
{
	struct vp_session *session = vp_alloc(sizeof(*session));

	session->options = *options;
	session->dir = VP_NO_RECORDING_DIR;
	session->cpu_hotplug = -1;
	session->wake = -1;
	session->hypervisor = vp_hypervisor_here();
	session->host_maps = vp_host_maps_new();
	session->kernel_btf = vp_kernel_btf_new();
	return session;
}

void vp_session_add(struct vp_session *session, struct vp_instrument *instrument)
{
	instrument->session = session;
	vp_vec_push(&session->instruments, instrument);
}

void vp_session_free(struct vp_session *session)
{
	if (!session)
		return;
	vp_vec_each (&session->instruments, instrument)
		(*instrument)->ops->free(*instrument);
	vp_vec_deinit(&session->instruments);
	vp_session_flight_free(session);
	vp_exit_event_close(session->services.exit_event);
	vp_kernel_btf_free(session->kernel_btf);
	vp_guest_watch_free(session->guest_watch);
	vp_trace_writer_free(session->trace);
	vp_event_classes_deinit(&session->event_classes);
	vp_host_maps_free(session->host_maps);
	vp_vms_deinit(&session->vms);
	vp_map_deinit(&session->no_vms);
	vp_map_deinit(&session->varying);
	vp_sample_counts_deinit(&session->samples);
	vp_vec_deinit(&session->pcpus);
	vp_vec_deinit(&session->late_pcpus);
	vp_notices_deinit(&session->notices);
	vp_recording_deinit(&session->info);
	vp_recording_dir_leave(&session->dir);
	if (session->cpu_hotplug >= 0)
		close(session->cpu_hotplug);
	free(session);
}

struct vp_error *vp_session_first_of(struct vp_error *first, struct vp_error *second)
{
	if (!first)
		return second;
	vp_error_free(second);
	return first;
}

const struct vp_session_options *vp_session_options(const struct vp_session *session)
{
	return &session->options;
}

const struct vp_hypervisor *vp_session_hypervisor(const struct vp_session *session)
{
	return session->hypervisor;
}

struct vp_kernel_btf *vp_session_kernel_btf(const struct vp_session *session)
{
	return session->kernel_btf;
}

struct vp_recording *vp_session_recording(struct vp_session *session)
{
	return &session->info;
}

const char *vp_session_directory(const struct vp_session *session)
{
	return session->dir.now;
}

struct vp_trace_writer *vp_session_trace(const struct vp_session *session)
{
	return session->trace;
}

struct vp_sample_counts *vp_session_sample_counts(struct vp_session *session)
{
	return &session->samples;
}

vp_event_classes *vp_session_event_classes(struct vp_session *session)
{
	return &session->event_classes;
}

vp_vms *vp_session_vms(struct vp_session *session)
{
	return &session->vms;
}

const struct vp_pcpus *vp_session_pcpus(const struct vp_session *session)
{
	return &session->pcpus;
}

const vp_late_pcpus *vp_session_late_pcpus(const struct vp_session *session)
{
	return &session->late_pcpus;
}

struct vp_host_maps *vp_session_host_maps(const struct vp_session *session)
{
	return session->host_maps;
}

struct vp_guest_watch *vp_session_guest_watch(const struct vp_session *session)
{
	return session->guest_watch;
}

const uint64_t *vp_session_vms_revision(const struct vp_session *session)
{
	return &session->vms_revision;
}

vp_notices *vp_session_notices(struct vp_session *session)
{
	return &session->notices;
}

void vp_session_say(const struct vp_session *session, bool only_agents_left, const char *what)
{
	if (session->options.progress)
		session->options.progress(what, only_agents_left);
}

bool vp_session_enable_exit_rip(struct vp_session *session)
{
	struct vp_services *services = &session->services;

	if (!services->exit_event)
		services->exit_event = vp_exit_event_open();
	return vp_exit_event_suffices(services->exit_event);
}

void vp_session_watch_guests(struct vp_session *session, const struct vp_guest_watch_client *user)
{
	if (!session->guest_watch) {
		session->guest_watch =
		    vp_guest_watch_new(session->hypervisor->guest_access(), &session->notices,
				       session->dir.now, session->options.with_symbols);
		if (session->options.quiet_vms)
			vp_guest_watch_be_quiet(session->guest_watch);
	}
	vp_guest_watch_join(session->guest_watch, user);
}

void vp_session_note_agent(struct vp_session *session, struct vp_vm *vm,
			   const struct vp_agent_outcome *outcome)
{
	vp_vm_add_agent_outcome(vm, outcome);
	session->vms_changed = true;
}

static uint64_t lost_of(const struct vp_session *session, const struct vp_instrument *instrument,
			enum vp_stream_class kind)
{
	uint64_t lost = 0;

	if (!vp_stream_class_is_per_pcpu(kind))
		return instrument->ops->lost(instrument, (struct vp_stream_id){kind, VP_NO_PCPU});
	vp_vec_each (&session->pcpus, pcpu)
		lost +=
		    instrument->ops->lost(instrument, (struct vp_stream_id){kind, (uint32_t)*pcpu});
	vp_vec_each (&session->late_pcpus, late)
		if (late->classes & VP_STREAMS(kind))
			lost += instrument->ops->lost(instrument,
						      (struct vp_stream_id){kind, late->pcpu});
	return lost;
}

/* Lost before reaching the writer, and by failed writes. */
static uint64_t lost_records(const struct vp_session *session, enum vp_stream_class kind)
{
	uint64_t lost = session->trace ? vp_trace_unwritten(session->trace, VP_STREAMS(kind)) : 0;

	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->classes & VP_STREAMS(kind))
			lost += lost_of(session, *instrument, kind);
	return lost;
}

char *vp_session_totals(const struct vp_session *session)
{
	struct vp_buffer text = {0};
	uint64_t lost = 0;

	vp_vec_each (&session->instruments, instrument)
		(*instrument)->ops->put_total(*instrument, &text);
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		lost += lost_records(session, kind);
	uint64_t vms = session->vms.count + session->vms_forgotten;
	vp_buffer_printf(&text, "%llu lost, %llu VM%s", (unsigned long long)lost,
			 (unsigned long long)vms, vms == 1 ? "" : "s");
	char *totals = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return totals;
}

bool vp_session_had_vms(const struct vp_session *session)
{
	return session->vms.count || session->vms_forgotten;
}

char *vp_session_take_notice(struct vp_session *session)
{
	return vp_notices_take(&session->notices);
}

/* Whether an instrument from index `from` on, other than this one, provides a service that it
 * uses. */
static bool has_to_wait(const struct vp_session *session, size_t from, size_t index)
{
	const unsigned uses = session->instruments.at[index]->ops->uses;

	for (size_t i = from; i < session->instruments.count; i++)
		if (i != index && session->instruments.at[i]->ops->provides & uses)
			return true;
	return false;
}

/* Sorts providers before users; otherwise the order is kept. */
static void order_instruments(struct vp_session *session)
{
	struct vp_instrument **all = session->instruments.at;
	const size_t count = session->instruments.count;

	for (size_t next = 0; next < count; next++) {
		size_t found = next;
		while (found < count && has_to_wait(session, next, found))
			found++;
		if (found == count) /* circular dependency */
			return;
		struct vp_instrument *instrument = all[found];
		memmove(&all[next + 1], &all[next],
			(found - next) * sizeof(struct vp_instrument *));
		all[next] = instrument;
	}
}

/* Opens the instruments; some are optional. */
static struct vp_error *open_instruments(struct vp_session *session)
{
	size_t kept = 0, count = session->instruments.count;
	struct vp_error *error = NULL;

	order_instruments(session);
	for (size_t i = 0; i < count; i++) {
		struct vp_instrument *instrument = session->instruments.at[i];
		struct vp_error *problem =
		    error ? NULL : instrument->ops->open(instrument, &session->services);
		bool dropped = problem && instrument->absence && count > 1;
		if (!dropped) {
			session->instruments.at[kept++] = instrument;
			error = vp_session_first_of(error, problem);
			continue;
		}
		VP_NOTICE(session, "%s: %s", instrument->absence, vp_error_message(problem));
		vp_error_free(problem);
		instrument->ops->free(instrument);
	}
	session->instruments.count = kept;
	vp_kernel_btf_forget(session->kernel_btf);
	return error;
}

static void session_describe(struct vp_session *session)
{
	struct vp_recording *info = &session->info;

	vp_recording_describe(info, session->options.command);
	free(info->boot);
	info->boot = vp_boot_id();
	info->by_time = true; /* without samples, no idle time is missing */
	info->period_ns = 1;
	info->pcpus = (uint32_t)session->pcpus.count;
	if (session->hypervisor->count_pcpus)
		info->hypervisor_pcpus = session->hypervisor->count_pcpus();
	info->compression = session->options.compression;
	vp_vec_each (&session->instruments, instrument) {
		vp_recording_add_instrument(info, (*instrument)->ops->name);
		if ((*instrument)->ops->describe)
			(*instrument)->ops->describe(*instrument, info);
	}
}

/* Searches for the guests' kernels before recording starts. */
static void watch_guests(struct vp_session *session)
{
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->watch_guests)
			(*instrument)->ops->watch_guests(*instrument);
	if (!session->guest_watch)
		return;
	vp_session_watch_vms(session);
	if (session->vms.count)
		vp_session_say(session, false, "finding guest kernels");
	vp_guest_watch_settle(session->guest_watch, SETTLE_MS);
}

bool vp_session_needs_names(const struct vp_session *session)
{
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->needs_names)
			return true;
	return false;
}

static struct vp_error *find_vms(struct vp_session *session)
{
	const struct vp_session_options *options = &session->options;

	VP_TRY(vp_session_find_pcpus(session));
	(void)vp_session_may_be_new_vms(session); /* resets the state: present VMs are found here */
	VP_TRY(session->hypervisor->scan(&session->vms, true));
	vp_session_take_vms(session, 0);
	VP_TRY(vp_vms_expect(&session->vms, options->vm_names, options->n_vm_names));
	if (vp_session_needs_names(session) && session->hypervisor->has_processes)
		vp_vec_each (&session->vms, vm) /* now, instead of during the measurement */
			vp_host_maps_note_sample(session->host_maps, vm->pid, NULL, 0);
	return NULL;
}

void vp_session_warn_of_clock(struct vp_session *session)
{
	VP_AUTO_FREE char *other = vp_host_other_clock("/sys");

	if (other)
		VP_NOTICE(session,
			  "the kernel's clock source is %s, not the TSC: if the TSCs of two pCPUs "
			  "differ, times of guest events and of Xen's trace are off by as much; "
			  "boot with clocksource=tsc if they do not",
			  other);
}

struct vp_error *vp_session_open(struct vp_session *session)
{
	VP_TRY(vp_recording_dir_claim(session->options.directory, &session->dir));
	const char *directory = session->dir.now;
	VP_TRY(find_vms(session));
	VP_TRY(vp_session_flight_open(session));
	VP_TRY(open_instruments(session));
	if (session->hypervisor->has_counter_times)
		vp_session_warn_of_clock(session);
	session_describe(session);
	VP_TRY(vp_trace_writer_create_host(directory, session->info.hostname, &session->trace));
	if (session->options.compression)
		vp_trace_writer_compress(session->trace, (int)session->options.compression);
	VP_TRY(vp_session_flight_listen(session));
	watch_guests(session);
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->prepare)
			VP_TRY((*instrument)->ops->prepare(*instrument));
	if (session->event_classes.count)
		VP_TRY(vp_trace_writer_define(session->trace, &session->event_classes));
	VP_TRY(vp_recording_write(directory, &session->info));
	return vp_vms_write(directory, &session->vms);
}

/* Writes clock readings to the first pCPU's stream. */
static void append_clocks(struct vp_session *session)
{
	struct vp_clock_reading clock = vp_clock_read();
	struct vp_clock_sync record = {.time = clock.monotonic,
				       .id = VP_ID_clock_sync,
				       .error_ns = clock.error_ns,
				       .tsc = clock.tsc,
				       .realtime = clock.realtime};

	if (session->pcpus.count)
		vp_trace_append(session->trace, vp_stream_of_pcpu((uint32_t)session->pcpus.at[0]),
				&record);
}

/* The instrument that writes this stream, or NULL. */
static const struct vp_instrument *instrument_of(const struct vp_session *session,
						 enum vp_stream_class kind)
{
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->classes & VP_STREAMS(kind))
			return *instrument;
	return NULL;
}

static void flush_class(struct vp_session *session, enum vp_stream_class kind)
{
	const struct vp_instrument *owner = instrument_of(session, kind);
	struct vp_stream_id id = {kind, VP_NO_PCPU};

	if (!owner && kind != VP_STREAM_PCPU) /* also has the clocks */
		return;
	if (!vp_stream_class_is_per_pcpu(kind)) {
		vp_trace_flush(session->trace, id, owner->ops->lost(owner, id));
		return;
	}
	vp_vec_each (&session->pcpus, pcpu) {
		id.pcpu = (uint32_t)*pcpu;
		vp_trace_flush(session->trace, id, owner ? owner->ops->lost(owner, id) : 0);
	}
	vp_vec_each (&session->late_pcpus, late) {
		id.pcpu = late->pcpu;
		if (owner && late->classes & VP_STREAMS(kind))
			vp_trace_flush(session->trace, id, owner->ops->lost(owner, id));
	}
}

/* 0, or the error of a failed write. */
static int session_write_out(struct vp_session *session)
{
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		flush_class(session, kind);
	return vp_trace_take_failure(session->trace);
}

static void flush_all(struct vp_session *session)
{
	int failure = session_write_out(session);

	if (failure && !session->said_unwritten) {
		VP_NOTICE(session, "cannot write to '%s': %s; records are being lost, and counted",
			  session->options.directory, strerror(failure));
		session->said_unwritten = true;
	}
}

/* The next whole second of the clock: recorders that overlap write their accounting at the same
 * time, so that their sums can be joined (analyze/account/account_joined.h). */
static uint64_t whole_second(uint64_t now)
{
	return (now / SECOND + 1) * SECOND;
}

struct vp_error *vp_session_start(struct vp_session *session)
{
	flush_all(session); /* opens the streams */
	append_clocks(session);
	vp_session_find_late_vms(session);
	session->info.start = vp_clock_monotonic();
	session->next_second = whole_second(session->info.start + SECOND / 2);
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->start)
			VP_TRY((*instrument)->ops->start(*instrument, session->info.start));
	vp_session_flight_start(session);
	/* Last: time spent waiting for the disk is not part of the recording. */
	return vp_recording_write(session->dir.now, &session->info);
}

struct vp_error *vp_session_publish(struct vp_session *session)
{
	int failure = session_write_out(session); /* at least the clocks */

	if (failure)
		return vp_error_errno(failure, "cannot write to '%s'", session->dir.now);
	return vp_recording_dir_publish(&session->dir);
}

static struct vp_error *write_vms(struct vp_session *session)
{
	struct vp_error *error = NULL;

	if (session->vms_changed)
		error = vp_vms_write(session->dir.now, &session->vms);
	session->vms_changed = error != NULL;
	return error;
}

/* Makes instruments write their state up to `now`. */
static void do_second(struct vp_session *session, uint64_t now)
{
	append_clocks(session);
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->second)
			(*instrument)->ops->second(*instrument, now);
	vp_session_flight_mark(session, now);
}

/* If one fails, the others are drained nevertheless. */
static struct vp_error *session_drain(struct vp_session *session)
{
	struct vp_error *error = NULL;

	vp_vec_each (&session->instruments, instrument)
		error = vp_session_first_of(error, (*instrument)->ops->drain(*instrument));
	return error;
}

struct vp_error *vp_session_keep_up(struct vp_session *session)
{
	struct vp_error *error = session_drain(session);
	uint64_t now = vp_clock_monotonic();

	if (!session->flight && now >= session->next_second) {
		session->next_second = whole_second(now);
		do_second(session, now);
		flush_all(session);
	}
	return error;
}

/* Slow work, once a second: ended VMs, clocks, the list of VMs on disk. */
static void do_slow_work(struct vp_session *session)
{
	uint64_t now = vp_clock_monotonic();

	if (session->guest_watch)
		vp_guest_watch_step(session->guest_watch);
	if (now < session->next_second)
		return;
	session->next_second = whole_second(now);
	do_second(session, now);
	vp_map_deinit(&session->no_vms); /* pids are reused */
	vp_session_check_vms(session, ++session->seconds % CLOSELY_S == 0);
	if (!session->flight && vp_session_needs_names(session))
		vp_session_put_away_vms(session);
	vp_error_free(write_vms(session)); /* retried in a second */
	vp_session_write_names_meanwhile(session, now);
}

/* Limits the time to what is left of the second. */
static int until_second(const struct vp_session *session, int timeout_ms)
{
	uint64_t now = vp_clock_monotonic();
	uint64_t left = session->next_second > now ? session->next_second - now : 0;
	uint64_t left_ms = left / 1000000 + (left % 1000000 != 0);

	return (uint64_t)timeout_ms < left_ms ? timeout_ms : (int)left_ms;
}

/* Waits until an instrument has much data, at most for this time. */
static struct vp_error *wait_for_records(const struct vp_session *session, int timeout_ms)
{
	struct pollfd fds[VP_STREAM_CLASSES + VP_FLIGHT_FDS + 2];
	int own[VP_FLIGHT_FDS];
	size_t n_own = 0;
	nfds_t count = 0;

	vp_vec_each (&session->instruments, instrument) {
		const struct vp_instrument_ops *ops = (*instrument)->ops;
		if (ops->often && timeout_ms > OFTEN_MS)
			timeout_ms = OFTEN_MS;
		if (ops->fd && count < VP_STREAM_CLASSES)
			fds[count++] =
			    (struct pollfd){.fd = ops->fd(*instrument), .events = POLLIN};
	}
	if (session->guest_watch && vp_guest_watch_has_runtimes(session->guest_watch) &&
	    timeout_ms > SOON_MS)
		timeout_ms = SOON_MS;
	timeout_ms = vp_session_flight_wait(session, timeout_ms, own, &n_own);
	timeout_ms = until_second(session, timeout_ms);
	for (size_t i = 0; i < n_own; i++)
		fds[count++] = (struct pollfd){.fd = own[i], .events = POLLIN};
	fds[count++] = (struct pollfd){.fd = session->cpu_hotplug, .events = POLLIN};
	fds[count++] = (struct pollfd){.fd = session->wake, .events = POLLIN};
	return vp_poll_or_signal(fds, count, timeout_ms) < 0
		   ? vp_error_errno(errno, "cannot wait for records")
		   : NULL;
}

void vp_session_wake_on(struct vp_session *session, int fd)
{
	session->wake = fd;
}

struct vp_error *vp_session_step(struct vp_session *session, int timeout_ms)
{
	VP_TRY(wait_for_records(session, timeout_ms));
	vp_session_watch_pcpus(session);
	struct vp_error *error = session_drain(session);
	do_slow_work(session);
	flush_all(session);
	vp_session_flight_step(session);
	return error;
}

uint64_t vp_session_gather(struct vp_session *session)
{
	vp_error_free(session_drain(session)); /* the next step reports the error, too */
	uint64_t now = vp_clock_monotonic();
	do_second(session, now);
	flush_all(session);
	return now;
}

static struct vp_error *write_end(struct vp_session *session)
{
	const char *directory = session->dir.now;
	struct vp_recording *info = &session->info;

	for (int kind = 0; !session->flight && kind < VP_STREAM_CLASSES; kind++) {
		info->records[kind] = vp_trace_written(session->trace, VP_STREAMS(kind));
		info->lost[kind] = lost_records(session, kind);
	}
	struct vp_error *error = vp_session_flight_finish(session);
	error = vp_session_first_of(error, vp_recording_write(directory, info));
	return vp_session_first_of(error, vp_vms_write(directory, &session->vms));
}

/* Stores the outcome of reading each guest's memory with its VM. */
void vp_session_note_guests(struct vp_session *session)
{
	if (!session->guest_watch)
		return;
	vp_vec_each (&session->vms, vm) {
		struct vp_memory_outcome outcome;

		if (vp_guest_watch_outcome(session->guest_watch, vm, &outcome))
			vp_vm_set_memory_outcome(vm, &outcome);
	}
	session->vms_changed = true;
}

static struct vp_error *stop_all(struct vp_session *session)
{
	struct vp_error *error = NULL;

	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->stop)
			error = vp_session_first_of(error, (*instrument)->ops->stop(*instrument));
	session->info.end = vp_clock_monotonic();
	return error;
}

struct vp_error *vp_session_finish(struct vp_session *session)
{
	vp_session_watch_pcpus(session); /* events of them may exist already */
	struct vp_error *error = stop_all(session);

	error = vp_session_first_of(error, session_drain(session));
	append_clocks(session);
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->finish)
			error = vp_session_first_of(
			    error, (*instrument)->ops->finish(*instrument, session->info.end));
	flush_all(session);
	vp_session_check_vms(session, true);
	vp_vec_each (&session->vms, vm)
		if (!vm->end)
			vp_vm_read_tsc(vm);
	session->hypervisor->read_placements(&session->vms);
	/* Small files first: the disk may become full with the maps. */
	error = vp_session_first_of(error, write_end(session));
	bool names = vp_session_needs_names(session);
	if (names)
		error = vp_session_first_of(
		    error, vp_session_write_maps(session, session->dir.now,
						 session->flight ? session->info.start : 0));
	vp_session_note_guests(session);
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->conclude)
			(*instrument)->ops->conclude(*instrument);
	error = vp_session_first_of(error, write_vms(session));
	if (names && session->options.ask_agents)
		vp_session_ask_agents(session);
	return vp_session_first_of(error, write_vms(session));
}
