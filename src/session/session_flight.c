/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/session_flight.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "bpf/conditions_abi.h"
#include "collect/programs/conditions.h"
#include "host/host_maps.h"
#include "host/vm_scan.h"
#include "schema/condition.h"
#include "schema/exit_reason.h"
#include "schema/records.h"
#include "schema/snapshot_cause.h"
#include "schema/vm.h"
#include "session/control.h"
#include "session/session.h"
#include "session/session_private.h"
#include "session/snapshot_limits.h"
#include "store/flight.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_writer.h"

/* Maximum number of snapshot names tried within a hundredth of a second. */
enum { MAX_NAMES = 1000 };

struct vp_session_flight {
	int listener;
	const struct vp_condition_ops *ops;
	struct vp_condition_watch *watch; /* NULL: no trigger */
	size_t n_watched;                 /* number of VMs added to it */
	struct vp_fired fired;            /* the trigger of the next snapshot */
	uint64_t due;                     /* its time; 0: none */
	uint64_t arm_at;                  /* time of arming triggers again; 0: armed */
	struct vp_snapshots by_condition;
	uint64_t without_room;  /* triggers without a snapshot because of the disk limit */
	VP_VEC(uint64_t) marks; /* times in memory up to which the accounting was written */
};

static bool has_conditions(const struct vp_session *session)
{
	for (int i = 0; i < VP_CONDITIONS; i++)
		if (session->options.flight->conditions.wanted[i])
			return true;
	return false;
}

/* With --vm: watches matching VMs as they appear. */
static void watch_chosen(struct vp_session *session)
{
	struct vp_session_flight *flight = session->flight;

	for (; flight->watch && flight->n_watched < session->vms.count; flight->n_watched++)
		if (vp_session_is_chosen(session, &session->vms.at[flight->n_watched]))
			flight->ops->add(flight->watch, session->vms.at[flight->n_watched].pid);
}

struct vp_error *vp_session_flight_open(struct vp_session *session)
{
	const struct vp_flight_options *options = session->options.flight;

	if (!options)
		return NULL;
	session->flight = vp_alloc(sizeof(*session->flight));
	session->flight->listener = -1;
	session->flight->ops = session->hypervisor->conditions();
	return has_conditions(session)
		   ? session->flight->ops->open(&options->conditions, !session->options.n_vm_names,
						&session->flight->watch)
		   : NULL;
}

struct vp_condition_watch *vp_session_condition_watch(const struct vp_session *session)
{
	return session->flight ? session->flight->watch : NULL;
}

struct vp_error *vp_session_flight_listen(struct vp_session *session)
{
	const struct vp_session_flight *flight = session->flight;

	if (!flight)
		return NULL;
	free(session->info.mode);
	session->info.mode = vp_strdup("flight");
	if (flight->watch && flight->ops->check)
		VP_TRY(flight->ops->check(flight->watch));
	const char *missing = flight->watch && flight->ops->missing
				  ? flight->ops->missing(&session->options.flight->conditions)
				  : NULL;
	if (missing)
		VP_NOTICE(session, "%s", missing);
	VP_TRY(vp_trace_writer_keep(session->trace, session->options.flight->bytes));
	/* Some file systems do not support sockets. */
	VP_AUTO_ERROR struct vp_error *error =
	    vp_control_listen(session->dir.now, &session->flight->listener);
	if (error)
		VP_NOTICE(session, "%s: snapshots are possible by SIGUSR2 only",
			  vp_error_message(error));
	return NULL;
}

void vp_session_flight_free(struct vp_session *session)
{
	struct vp_session_flight *flight = session->flight;

	if (!flight)
		return;
	vp_control_close(session->dir.now, flight->listener);
	if (flight->watch)
		flight->ops->free(flight->watch);
	vp_vec_deinit(&flight->marks);
	free(flight);
	session->flight = NULL;
}

void vp_session_flight_start(struct vp_session *session)
{
	if (!session->flight)
		return;
	session->info.begun = session->info.start;
	watch_chosen(session);
	if (session->flight->watch)
		session->flight->ops->arm(session->flight->watch);
}

int vp_session_flight_wait(const struct vp_session *session, int timeout_ms, int fds[VP_FLIGHT_FDS],
			   size_t *n_fds)
{
	const struct vp_session_flight *flight = session->flight;
	uint64_t next = UINT64_MAX, now = vp_clock_monotonic();

	if (!flight)
		return timeout_ms;
	if (flight->listener >= 0)
		fds[(*n_fds)++] = flight->listener;
	int fd = flight->watch ? flight->ops->fd(flight->watch) : -1;
	if (fd >= 0)
		fds[(*n_fds)++] = fd;
	if (flight->due)
		next = flight->due;
	else if (flight->arm_at)
		next = flight->arm_at;
	if (next <= now)
		return 0;
	uint64_t left = (next - now) / 1000000 + 1;
	return left < (uint64_t)timeout_ms ? (int)left : timeout_ms;
}

void vp_session_flight_mark(struct vp_session *session, uint64_t now)
{
	struct vp_session_flight *flight = session->flight;

	if (!flight)
		return;
	uint64_t reach = vp_trace_writer_reach(session->trace);
	size_t gone = 0;
	vp_host_maps_forget(session->host_maps, reach);
	while (gone < flight->marks.count && flight->marks.at[gone] < reach)
		gone++;
	if (gone)
		memmove(flight->marks.at, flight->marks.at + gone,
			(flight->marks.count - gone) * sizeof(*flight->marks.at));
	flight->marks.count -= gone;
	vp_vec_push(&flight->marks, now);
	watch_chosen(session);
	vp_session_forget_vms(session, reach);
	flight->n_watched = flight->watch ? session->vms.count : 0;
}

static bool has_account(const struct vp_session *session)
{
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->classes & VP_STREAMS(VP_STREAM_ACCOUNT))
			return true;
	return false;
}

/*
 * Time from which all records are in memory. The accounting is written once a second, about the
 * time before: a snapshot starts at such a time, if possible, so that its accounting is complete.
 */
static uint64_t session_flight_reach_of(const struct vp_session *session)
{
	uint64_t reach = vp_trace_writer_reach(session->trace);

	if (!reach)
		return session->info.begun;
	for (size_t i = 0; has_account(session) && i + 1 < session->flight->marks.count; i++)
		if (session->flight->marks.at[i] > reach)
			return session->flight->marks.at[i];
	return reach + 1;
}

/* Creates DIR.YYYYMMDDhhmmss and hundredths, as perf's --switch-output; the name must be free. */
static struct vp_error *session_flight_make_directory(const struct vp_session *session, char **ret)
{
	const char *directory = session->options.directory;
	size_t size = strlen(directory);
	struct timespec now;
	struct tm parts;
	char text[32];

	while (size > 1 && directory[size - 1] == '/')
		size--;
	clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i < MAX_NAMES; i++, now.tv_nsec += 10000000) {
		now.tv_sec += now.tv_nsec / 1000000000;
		now.tv_nsec %= 1000000000;
		localtime_r(&now.tv_sec, &parts);
		strftime(text, sizeof(text), "%Y%m%d%H%M%S", &parts);
		VP_AUTO_FREE char *path =
		    vp_format("%.*s.%s%02ld", (int)size, directory, text, now.tv_nsec / 10000000);
		if (!mkdir(path, 0755)) {
			*ret = VP_TAKE(path);
			return NULL;
		}
		if (errno != EEXIST)
			return vp_error_errno(errno, "cannot create directory '%s'", path);
	}
	return vp_error_new(
	    "cannot create a directory for a snapshot next to '%s': all names are taken",
	    directory);
}

/* Sets the fields of `about`, and writes its streams. */
static struct vp_error *write_streams(const struct vp_session *session, const char *directory,
				      struct vp_recording *info)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	struct vp_trace_counts counts = {0};
	struct vp_error *error =
	    vp_trace_writer_snapshot(session->trace, host, info->start, &counts);

	memcpy(info->records, counts.records, sizeof(info->records));
	memcpy(info->lost, counts.lost, sizeof(info->lost));
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->put_streams)
			error = vp_session_first_of(
			    error,
			    (*instrument)->ops->put_streams(*instrument, directory, info->start));
	return error;
}

static struct vp_error *put_files(struct vp_session *session, const char *directory)
{
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->put_files)
			VP_TRY((*instrument)->ops->put_files(*instrument, directory));
	return NULL;
}

/* On a full disk, the part that fits is a valid recording; the first error is returned. */
static struct vp_error *session_flight_write_all(struct vp_session *session, const char *directory,
						 struct vp_recording *info)
{
	struct vp_error *error = write_streams(session, directory, info);

	vp_vec_each (&session->vms, vm)
		if (!vm->end)
			vp_vm_read_tsc(vm);
	session->hypervisor->read_placements(&session->vms);
	error = vp_session_first_of(error, vp_recording_write(directory, info));
	error = vp_session_first_of(error, vp_vms_write(directory, &session->vms));
	error = vp_session_first_of(error, put_files(session, directory));
	if (error || !vp_session_needs_names(session))
		return error;
	error = vp_session_write_maps(session, directory, info->start);
	vp_session_note_guests(session);
	return vp_session_first_of(error, vp_vms_write(directory, &session->vms));
}

/* *ret: the directory, also of a failed snapshot, or NULL. */
static struct vp_error *snapshot(struct vp_session *session, const struct vp_snapshot_cause *cause,
				 char **ret)
{
	struct vp_recording info = session->info;

	*ret = NULL;
	if (!session->flight)
		return vp_error_new("only a flight recorder takes snapshots");
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->request_flush)
			(*instrument)->ops->request_flush(*instrument);
	info.end = vp_session_gather(session);
	info.start = session_flight_reach_of(session);
	info.snapshot_cause = *cause;
	VP_TRY(session_flight_make_directory(session, ret));
	return session_flight_write_all(session, *ret, &info);
}

struct vp_error *vp_session_snapshot(struct vp_session *session,
				     const struct vp_snapshot_cause *cause, char **ret)
{
	struct vp_error *error = snapshot(session, cause, ret);

	if (error) {
		free(*ret);
		*ret = NULL;
	}
	return error;
}

struct vp_error *vp_session_flight_finish(struct vp_session *session)
{
	if (!session->flight)
		return NULL;
	session->info.start = session_flight_reach_of(session);
	session->info.snapshot_cause = (struct vp_snapshot_cause){.kind = VP_CAUSE_END};
	uint64_t dropped =
	    session->flight->watch ? session->flight->ops->dropped(session->flight->watch) : 0;
	if (dropped)
		VP_NOTICE(session,
			  "%llu snapshot triggers suppressed: too soon after the previous snapshot "
			  "(--snapshot-every)",
			  (unsigned long long)dropped);
	return write_streams(session, session->dir.now, &session->info);
}

static struct vp_snapshot_cause session_flight_cause_of(struct vp_session *session,
							const struct vp_fired *fired)
{
	struct vp_snapshot_cause cause = {.kind = VP_CAUSE_TRIGGER,
					  .condition = fired->kind,
					  .limit_ns =
					      session->options.flight->conditions.ns[fired->kind],
					  .vm = vp_session_vm_id(session, fired->pid, fired->tid),
					  .vcpu = fired->vcpu,
					  .tid = fired->tid,
					  .ns = fired->ns,
					  .pcpu = fired->cpu,
					  .vendor = session->hypervisor->vendor(),
					  .reason = fired->reason,
					  .thief_tid = fired->thief_tid,
					  .thief_ns = fired->thief_ns};

	memcpy(cause.thief_comm, fired->thief_comm, VP_CAUSE_COMM);
	return cause;
}

/* Takes a snapshot; the remains of a failed one count towards the limits, too. */
static void session_flight_take_snapshot(struct vp_session *session,
					 const struct vp_snapshot_cause *cause, const char *text)
{
	struct vp_session_flight *flight = session->flight;
	VP_AUTO_FREE char *path = NULL;
	VP_AUTO_ERROR struct vp_error *error = snapshot(session, cause, &path);

	if (path)
		vp_snapshots_add(&flight->by_condition, path);
	if (error)
		VP_NOTICE(session, "%s; no snapshot: %s", text, vp_error_message(error));
	else
		VP_NOTICE(session, "%s; snapshot in '%s'", text, path);
	flight->without_room = 0;
}

/* Only the first of several in a row is reported: the disk may stay full for weeks. */
static void skip_snapshot(struct vp_session *session, const char *cause, const char *why)
{
	if (!session->flight->without_room++)
		VP_NOTICE(session, "%s; no snapshot: %s", cause, why);
}

static void snapshot_by_condition(struct vp_session *session)
{
	struct vp_session_flight *flight = session->flight;
	const struct vp_snapshot_limits *limits = &session->options.flight->limits;
	const struct vp_snapshot_cause cause = session_flight_cause_of(session, &flight->fired);
	VP_AUTO_FREE char *text = vp_snapshot_cause_text(&cause, &session->vms);
	VP_AUTO_FREE char *no_room =
	    vp_snapshots_no_room(&flight->by_condition, limits, session->options.directory);

	flight->due = 0;
	if (no_room)
		skip_snapshot(session, text, no_room);
	else
		session_flight_take_snapshot(session, &cause, text);
	flight->arm_at = flight->fired.time + session->options.flight->every_ns;
	VP_AUTO_FREE char *used_up = vp_snapshots_used_up(&flight->by_condition, limits);
	if (!used_up)
		return;
	VP_NOTICE(session, "no further triggered snapshots: %s", used_up);
	flight->ops->free(flight->watch);
	flight->watch = NULL;
}

static void step_conditions(struct vp_session *session)
{
	struct vp_session_flight *flight = session->flight;
	uint64_t now = vp_clock_monotonic();

	if (flight->ops->take(flight->watch, &flight->fired))
		flight->due = flight->fired.time + session->options.flight->after_ns;
	if (flight->due && now >= flight->due) {
		snapshot_by_condition(session);
	} else if (flight->arm_at && now >= flight->arm_at) {
		flight->arm_at = 0;
		flight->ops->arm(flight->watch);
	}
}

static void answer_one(struct vp_session *session)
{
	int connection = vp_control_accept(session->flight->listener);
	const struct vp_snapshot_cause cause = {.kind = VP_CAUSE_MANUAL};
	VP_AUTO_FREE char *path = NULL;

	if (connection < 0)
		return;
	VP_AUTO_ERROR struct vp_error *error = vp_session_snapshot(session, &cause, &path);
	if (error)
		VP_NOTICE(session, "no snapshot: %s", vp_error_message(error));
	else
		VP_NOTICE(session, "snapshot in '%s'", path);
	vp_control_answer(connection, path, error);
}

void vp_session_flight_step(struct vp_session *session)
{
	if (!session->flight)
		return;
	if (session->flight->listener >= 0)
		answer_one(session);
	if (session->flight->watch)
		step_conditions(session);
}
