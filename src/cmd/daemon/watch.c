/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the accounting of the open recording, evaluates rules, and starts what they trigger. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/account/account.h"
#include "analyze/account/account_counters.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/daemon/vperfd.h"
#include "daemon/account_tail.h"
#include "daemon/child.h"
#include "daemon/daemon_config.h"
#include "daemon/recent_hour.h"
#include "daemon/rotation.h"
#include "daemon/rules.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/history.h"
#include "store/kept_findings.h"

#define SECOND 1000000000ULL
/* Time after which a failed flight recorder is restarted. */
#define FLIGHT_RETRY_NS (30 * SECOND)

static void watch_take(void *context, const struct vp_record_header *record)
{
	struct vperfd *daemon = context;

	daemon->has_second |= record->id == VP_ID_vcpu_account;
	vp_account_take(&daemon->second, record);
	vp_account_take(&daemon->rules, record);
}

static void begin_account(struct vperfd *daemon, struct vp_account *account)
{
	vp_account_init(account, &daemon->tail.vms);
	account->grade = daemon->tail.grade;
	account->overcommit.pcpus = daemon->tail.pcpus;
}

void vperfd_watch_begin(struct vperfd *daemon, uint64_t now)
{
	daemon->tail.take = watch_take;
	daemon->tail.context = daemon;
	daemon->snapshot.output = daemon->samples.output = -1;
	begin_account(daemon, &daemon->rules);
	daemon->rules_at = now + daemon->config.rules_ns;
}

static char *store_path(const struct vperfd *daemon, const char *suffix)
{
	char name[VP_KEPT_NAME_SIZE];

	vp_history_name(daemon->config.directory, vp_clock_read().realtime, suffix, name);
	return vp_format("%s/%s", daemon->config.directory, name);
}

static const char *name_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : "";
}

/* Removes files of an earlier flight recorder and, unless it is off, starts a new one. */
static void start_flight(struct vperfd *daemon, uint64_t now)
{
	struct vp_daemon_words words;

	VP_AUTO_FREE char *path = vp_format("%s/" VP_HISTORY_FLIGHT, daemon->config.directory);
	if (vp_kept_is_locked(path))
		return;
	vp_file_remove_all(path);
	daemon->flight_retry_at = now + FLIGHT_RETRY_NS;
	if (!daemon->config.flight_bytes) {
		daemon->flight_retry_at = UINT64_MAX; /* until the configuration is read again */
		return;
	}
	vp_daemon_flight_words(&daemon->config, daemon->program, path, vperfd_pcpus(), &words);
	VP_AUTO_ERROR struct vp_error *error = vp_child_start(&words, -1, &daemon->flight.process);
	if (error) {
		VPERFD_SAY("no flight recorder: %s", vp_error_message(error));
		daemon->flight.process = 0;
		return;
	}
	daemon->flight.path = VP_TAKE(path);
}

static void watch_flight(struct vperfd *daemon, uint64_t now)
{
	struct vp_recorder *flight = &daemon->flight;

	if (flight->process && vp_child_has_ended(flight->process, NULL)) {
		vperfd_say("the flight recorder has ended");
		free(flight->path);
		*flight = (struct vp_recorder){0};
	}
	if (!flight->process && now >= daemon->flight_retry_at)
		start_flight(daemon, now);
}

static void forget_job(struct vperfd_job *job)
{
	if (job->output >= 0)
		close(job->output);
	free(job->path);
	*job = (struct vperfd_job){.output = -1};
}

/* Renames the snapshot, whose path 'vperf snapshot' printed, within the store. */
static void name_snapshot(struct vperfd *daemon)
{
	char text[4096];
	ssize_t size = vp_read(daemon->snapshot.output, text, sizeof(text) - 1);

	text[size > 0 ? size : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (!text[0])
		VPERFD_SAY("no snapshot '%s': the flight recorder did not write one",
			   name_of(daemon->snapshot.path));
	else if (rename(text, daemon->snapshot.path))
		VPERFD_SAY("cannot rename '%s': %s", text, strerror(errno));
}

static void watch_jobs(struct vperfd *daemon)
{
	if (daemon->snapshot.process && vp_child_has_ended(daemon->snapshot.process, NULL)) {
		name_snapshot(daemon);
		forget_job(&daemon->snapshot);
		vperfd_reread_store(daemon);
	}
	if (daemon->samples.process && vp_child_has_ended(daemon->samples.process, NULL)) {
		vperfd_recording_closed(daemon, daemon->samples.path);
		forget_job(&daemon->samples);
		vperfd_reread_store(daemon);
	}
}

static void start_job(struct vperfd *daemon, const struct vp_daemon_words *words, int output,
		      struct vperfd_job *job, char *path)
{
	VP_AUTO_ERROR struct vp_error *error = vp_child_start(words, output, &job->process);

	if (error) {
		vperfd_say(vp_error_message(error));
		job->process = 0;
		free(path);
		return;
	}
	job->path = path;
	vperfd_reread_store(daemon);
}

/* Starts a snapshot unless one is in progress: simultaneous findings share it. */
static void start_snapshot(struct vperfd *daemon)
{
	struct vp_daemon_words words;
	int ends[2];

	if (!daemon->flight.process || daemon->snapshot.process || pipe2(ends, O_CLOEXEC))
		return;
	vp_daemon_snapshot_words(daemon->program, daemon->flight.path, &words);
	start_job(daemon, &words, ends[1], &daemon->snapshot,
		  store_path(daemon, VP_KEPT_FLIGHT_SUFFIX));
	close(ends[1]);
	daemon->snapshot.output = ends[0];
	if (!daemon->snapshot.process)
		forget_job(&daemon->snapshot);
}

static void start_samples(struct vperfd *daemon)
{
	struct vp_daemon_words words;

	if (!daemon->config.samples_ns || daemon->samples.process)
		return;
	char *path = store_path(daemon, VP_KEPT_SAMPLES_SUFFIX);
	vp_daemon_samples_words(&daemon->config, daemon->program, path, vperfd_pcpus(), &words);
	start_job(daemon, &words, -1, &daemon->samples, path);
}

static void keep_finding(struct vperfd *daemon, const struct vp_held_rule *held,
			 const struct vp_vm *vm)
{
	const char *texts[VP_KEPT_TEXTS] = {[VP_KEPT_RULE] = held->rule,
					    [VP_KEPT_VM] = vm->name,
					    [VP_KEPT_UUID] = vm->uuid,
					    [VP_KEPT_WHO] = held->who,
					    [VP_KEPT_IN] = name_of(daemon->tail.path),
					    [VP_KEPT_TRACE] = name_of(daemon->snapshot.path),
					    [VP_KEPT_PROFILE] = name_of(daemon->samples.path),
					    [VP_KEPT_SENTENCE] = held->sentence};
	struct vp_buffer line = {0};

	vp_kept_finding_put(vp_clock_read().realtime, (uint64_t)(held->percent * 100), texts,
			    &line);
	VP_AUTO_ERROR struct vp_error *error =
	    vp_kept_finding_append(daemon->config.directory, &line);
	if (error)
		vperfd_say(vp_error_message(error));
	vp_buffer_deinit(&line);
	VPERFD_SAY("finding %s: %s", held->rule, held->sentence);
}

static void evaluate(struct vperfd *daemon, uint64_t now)
{
	vp_held_rules_deinit(&daemon->held);
	vp_rules_evaluate(&daemon->rules, &daemon->config, &daemon->held);
	vp_vec_each (&daemon->held, held) {
		const struct vp_vm *vm = vp_vms_find(&daemon->tail.vms, held->vm);
		if (!vm || !vp_rules_may_fire(&daemon->fired, &daemon->config, held, vm, now))
			continue;
		start_snapshot(daemon);
		start_samples(daemon);
		keep_finding(daemon, held, vm);
		daemon->n_fired++;
	}
}

static bool is_counted(void *context, uint32_t id)
{
	const struct vperfd *daemon = context;

	vp_vec_each (&daemon->counters.vms, vm)
		if (vm->id == id)
			return true;
	return false;
}

/* Accounts refer to VMs by index, so VMs are removed only between two accounts. */
static void end_rules(struct vperfd *daemon, uint64_t now)
{
	if (daemon->config.rules_ns)
		evaluate(daemon, now);
	vp_account_deinit(&daemon->rules);
	vp_account_tail_forget(&daemon->tail, is_counted, daemon);
	begin_account(daemon, &daemon->rules);
	daemon->rules_at = now + (daemon->config.rules_ns ? daemon->config.rules_ns : 5 * SECOND);
}

/* A VM that never ran has no records. */
static void note_running(struct vperfd *daemon)
{
	if (!daemon->rotation.open.process)
		return;
	vp_vec_each (&daemon->tail.vms, vm)
		if (vp_account_tail_has(&daemon->tail, vm))
			vp_account_counters_note(&daemon->counters, vp_vm_id(vm));
}

/* Between two recordings, seconds may pass without records, although the VMs exist. After a while
 * without records the last VMs have ended, and their counters are dropped. */
static void count_second(struct vperfd *daemon, uint64_t now)
{
	struct vp_clock_reading clock = vp_clock_read();

	if (daemon->has_second) {
		daemon->counted_at = now;
		daemon->counters.recording = name_of(daemon->tail.path);
		daemon->counters.realtime =
		    clock.realtime - (clock.monotonic - daemon->tail.reached);
	}
	if (daemon->has_second || now - daemon->counted_at > VP_TAIL_PATIENCE_S * SECOND)
		vp_account_counters_add(&daemon->counters, &daemon->second);
	note_running(daemon);
	vp_hour_add(&daemon->hour, &daemon->counters, &daemon->tail.vms,
		    daemon->has_second ? daemon->counters.realtime : clock.realtime);
}

void vperfd_watch(struct vperfd *daemon, uint64_t now)
{
	watch_flight(daemon, now);
	watch_jobs(daemon);
	if (daemon->rotation.open.path)
		vp_account_tail_follow(&daemon->tail, daemon->rotation.open.path, now);
	daemon->has_second = false;
	begin_account(daemon, &daemon->second);
	vp_account_tail_read(&daemon->tail, now);
	daemon->rules.grade = daemon->tail.grade;
	daemon->rules.overcommit.pcpus = daemon->tail.pcpus;
	count_second(daemon, now);
	vp_account_deinit(&daemon->second);
	if (now >= daemon->rules_at)
		end_rules(daemon, now);
}

static void stop_job(const struct vperfd_job *job)
{
	if (job->process)
		kill(job->process, SIGTERM);
}

void vperfd_watch_stop(struct vperfd *daemon)
{
	if (daemon->flight.process)
		kill(daemon->flight.process, SIGTERM);
	stop_job(&daemon->samples);
	stop_job(&daemon->snapshot);
}

bool vperfd_watch_has_stopped(struct vperfd *daemon)
{
	watch_jobs(daemon);
	if (daemon->flight.process && vp_child_has_ended(daemon->flight.process, NULL))
		daemon->flight.process = 0;
	return !daemon->flight.process && !daemon->samples.process && !daemon->snapshot.process;
}

void vperfd_watch_end(struct vperfd *daemon)
{
	vp_account_deinit(&daemon->rules);
	vp_account_tail_deinit(&daemon->tail);
	vp_account_counters_deinit(&daemon->counters);
	vp_hour_deinit(&daemon->hour);
	vp_held_rules_deinit(&daemon->held);
	vp_vec_deinit(&daemon->fired);
	forget_job(&daemon->snapshot);
	forget_job(&daemon->samples);
	free(daemon->flight.path);
}
