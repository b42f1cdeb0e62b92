/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperfd: records continuously, keeps the last days, and stores more details about moments with
 * findings. It runs 'vperf record' and similar commands, and loads no BPF programs itself. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/notices.h"
#include "base/pcpus.h"
#include "base/stagger.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/options.h"
#include "cmd/daemon/vperfd.h"
#include "daemon/child.h"
#include "daemon/daemon_config.h"
#include "daemon/notify.h"
#include "daemon/rotation.h"
#include "serve/http_server.h"
#include "store/boot.h"
#include "store/history.h"

enum { STEP_MS = 1000, LAST_S = 80 };

static volatile sig_atomic_t stop_wanted, reload_wanted;

void vperfd_say(const char *sentence)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(sentence);

	fprintf(stderr, "vperfd: %s\n", clean);
}

/* Declared in base/alloc.h. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperfd: out of memory\n";
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(VP_ERROR_FAILURE);
}

static void on_stop(int signal)
{
	stop_wanted = 1;
}

static void on_reload(int signal)
{
	reload_wanted = 1;
}

/* Interrupts waits. */
static void on_child_end(int signal)
{
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_stop};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = on_reload;
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = on_child_end;
	sigaction(SIGCHLD, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

uint32_t vperfd_pcpus(void)
{
	uint32_t count = 1;

	vp_error_free(vp_pcpus_present(&count));
	return count;
}

static struct vp_error *start_recorder(void *context, const char *path, pid_t *ret)
{
	const struct vperfd *daemon = context;
	struct vp_daemon_words words;

	vp_daemon_record_words(&daemon->config, daemon->program, path, vperfd_pcpus(), &words);
	return vp_child_start(&words, -1, ret);
}

static void stop_recorder(void *context, pid_t recorder, bool kills)
{
	kill(recorder, kills ? SIGKILL : SIGTERM);
}

static bool recorder_has_ended(void *context, pid_t recorder, bool *failed)
{
	return vp_child_has_ended(recorder, failed);
}

/* A recording directory appears when its recorder has started. */
static bool is_recorded(void *context, const char *path)
{
	VP_AUTO_FREE char *file = vp_format("%s/recording", path);

	return !access(file, F_OK);
}

static uint64_t recording_bytes(void *context, const char *path)
{
	return vp_disk_bytes(path);
}

static char *recording_path(void *context, uint64_t realtime)
{
	const struct vperfd *daemon = context;
	char name[VP_KEPT_NAME_SIZE];

	vp_history_name(daemon->config.directory, realtime, "", name);
	return vp_format("%s/%s", daemon->config.directory, name);
}

static void recording_closed(void *context, const char *path)
{
	vperfd_recording_closed(context, path);
}

static const struct vp_rotation_ops rotation_ops = {.start = start_recorder,
						    .stop = stop_recorder,
						    .has_ended = recorder_has_ended,
						    .is_recorded = is_recorded,
						    .bytes = recording_bytes,
						    .closed = recording_closed,
						    .path = recording_path};

/* The path of vperf, which is in the same directory as vperfd. */
static struct vp_error *find_vperf(struct vperfd *daemon)
{
	char own[4096];
	ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash = size > 0 ? (own[size] = 0, strrchr(own, '/')) : NULL;

	if (!slash)
		return vp_error_errno(errno, "cannot find the path of this program");
	*slash = 0;
	daemon->program = vp_format("%s/vperf", own);
	return access(daemon->program, X_OK)
		   ? vp_error_errno(errno, "cannot run '%s'", daemon->program)
		   : NULL;
}

static struct vp_error *lock_store(struct vperfd *daemon)
{
	const char *directory = daemon->config.directory;
	VP_AUTO_FREE char *path = vp_format("%s/" VP_HISTORY_LOCK, directory);

	if (mkdir(directory, 0700) && errno != EEXIST)
		return vp_error_errno(errno, "cannot create store '%s'", directory);
	daemon->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (daemon->lock < 0)
		return vp_error_errno(errno, "cannot open '%s'", path);
	return flock(daemon->lock, LOCK_EX | LOCK_NB)
		   ? vp_error_new("store '%s' is in use by another vperfd", directory)
		   : NULL;
}

static void apply_config(struct vperfd *daemon)
{
	daemon->rotation.rotate_ns = daemon->config.rotate_ns;
	daemon->rotation.rotate_bytes = daemon->config.rotate_bytes;
}

/* Starts a new recording, and a new flight recorder. */
static void begin_anew(struct vperfd *daemon)
{
	vp_rotation_ask(&daemon->rotation);
	if (daemon->flight.process)
		kill(daemon->flight.process, SIGTERM);
	daemon->flight_retry_at = 0;
}

/* An invalid configuration changes nothing. Settings that require a restart keep their values. */
static struct vp_error *reload(struct vperfd *daemon)
{
	struct vp_daemon_config config;
	VP_AUTO_ERROR struct vp_error *error = vp_daemon_config_read(daemon->config_path, &config);

	reload_wanted = 0;
	if (error) {
		VPERFD_SAY("configuration unchanged: %s", vp_error_message(error));
		return NULL;
	}
	if (strcmp(config.directory, daemon->config.directory) != 0 ||
	    strcmp(config.listen, daemon->config.listen) != 0) {
		vperfd_say("changes of 'directory' and 'listen' require a restart of vperfd");
		free(config.directory);
		free(config.listen);
		config.directory = vp_strdup(daemon->config.directory);
		config.listen = vp_strdup(daemon->config.listen);
	}
	vp_daemon_config_deinit(&daemon->config);
	daemon->config = config;
	apply_config(daemon);
	begin_anew(daemon);
	vperfd_say("configuration reloaded; a new recording starts");
	return vperfd_serve_again(daemon);
}

/* Dates of a recording are right as long as the clock is not set: the next one has the new time. */
static void watch_clock(struct vperfd *daemon)
{
	struct vp_clock_reading clock = vp_clock_read();
	int64_t jump = vp_clock_jump(&clock, &daemon->clock_offset);

	if (!jump)
		return;
	VPERFD_SAY("the clock was set by %+.0f s, or the host slept: a new recording starts",
		   (double)jump / 1e9);
	begin_anew(daemon);
}

static void say_notices(struct vperfd *daemon)
{
	for (char *notice; (notice = vp_notices_take(&daemon->notices)); free(notice))
		vperfd_say(notice);
}

static void report_ready(struct vperfd *daemon, bool *is_ready)
{
	if (daemon->rotation.open.process && !*is_ready) {
		vp_notify("READY=1");
		*is_ready = true;
	}
	VP_AUTO_FREE char *status =
	    daemon->rotation.open.path
		? vp_format("WATCHDOG=1\nSTATUS=recording to %s", daemon->rotation.open.path)
		: vp_strdup("WATCHDOG=1\nSTATUS=not recording");
	vp_notify(status);
}

/* Runs once a second, and when a child process has ended. */
static void step(struct vperfd *daemon)
{
	uint64_t now = vp_clock_monotonic();
	VP_AUTO_FREE char *open =
	    daemon->rotation.open.path ? vp_strdup(daemon->rotation.open.path) : NULL;

	watch_clock(daemon);
	vp_rotation_step(&daemon->rotation, now, vp_clock_read().realtime);
	const char *path = daemon->rotation.open.path;
	if ((path != NULL) != (open != NULL) || (path && strcmp(path, open) != 0))
		vperfd_reread_store(daemon);
	say_notices(daemon);
	vperfd_watch(daemon, now);
	vperfd_closed_step(daemon, now);
	vperfd_keep_store(daemon, now);
}

static struct vp_error *run(struct vperfd *daemon)
{
	struct vp_error *error = NULL;
	bool is_ready = false;

	vperfd_watch_begin(daemon, vp_clock_monotonic());
	vperfd_closed_begin(daemon);
	while (!stop_wanted && !error) {
		uint64_t next = vp_clock_monotonic() + STEP_MS * 1000000ULL;
		if (reload_wanted)
			error = reload(daemon);
		step(daemon);
		if (!error)
			error = vperfd_publish(daemon);
		report_ready(daemon, &is_ready);
		if (!error && !stop_wanted && !reload_wanted)
			error = vperfd_serve_until(daemon, next);
	}
	vp_notify("STOPPING=1");
	uint64_t stopped = vp_clock_monotonic();
	vp_rotation_stop(&daemon->rotation, stopped);
	vperfd_watch_stop(daemon);
	for (;;) {
		uint64_t now = vp_clock_monotonic();
		bool recorders = vp_rotation_has_stopped(&daemon->rotation, now);
		bool others = vperfd_watch_has_stopped(daemon);
		if ((recorders && others) || now - stopped > LAST_S * 1000000000ULL)
			break;
		(void)!vp_poll_or_signal(NULL, 0, STEP_MS / 10);
	}
	say_notices(daemon);
	return error;
}

static struct vp_error *start(struct vperfd *daemon)
{
	if (geteuid() != 0)
		return vp_error_new("recording the host requires root");
	VP_TRY(find_vperf(daemon));
	umask(077);
	VP_TRY(lock_store(daemon));
	/* Before signal handlers and child processes exist. */
	VP_TRY(vperfd_serve(daemon));
	catch_signals();
	apply_config(daemon);
	daemon->boot = vp_boot_id();
	daemon->rotation.early_ns = vp_stagger_here("rotation", daemon->rotation.rotate_ns / 2);
	return run(daemon);
}

static void help(const struct vp_option *options, size_t n_options)
{
	vp_options_wrap("vperfd:", "record this host continuously, and keep the last days");
	printf("\nUsage: vperfd [-c FILE] [--check]\n\nOptions:\n");
	vp_options_help(options, n_options);
}

static int fail(struct vp_error *error)
{
	int status = (int)vp_error_kind(error);

	vperfd_say(vp_error_message(error));
	vp_error_free(error);
	return status;
}

static void vperfd_deinit(struct vperfd *daemon)
{
	vp_http_server_stop(daemon->server);
	vperfd_closed_end(daemon);
	vperfd_watch_end(daemon);
	vp_rotation_deinit(&daemon->rotation);
	vp_history_deinit(&daemon->history);
	vp_notices_deinit(&daemon->notices);
	vp_daemon_config_deinit(&daemon->config);
	free(daemon->program);
	free(daemon->boot);
	if (daemon->lock >= 0)
		close(daemon->lock);
}

int main(int argc, char **argv)
{
	struct vperfd daemon = {.config_path = VP_DAEMON_CONFIG,
				.lock = -1,
				.snapshot = {.output = -1},
				.samples = {.output = -1},
				.rotation = {.ops = &rotation_ops}};
	bool wants_help = false, check = false;
	struct vp_texts operands = {0};
	const struct vp_option options[] = {
	    {'c', "config", VP_OPTION_TEXT, &daemon.config_path, "FILE",
	     "configuration (default: " VP_DAEMON_CONFIG ")"},
	    {0, "check", VP_OPTION_FLAG, &check, NULL, "check the configuration and exit"},
	};

	daemon.rotation.context = &daemon;
	daemon.rotation.notices = &daemon.notices;
	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	struct vp_error *error = vp_options_parse(options, VP_ARRAY_SIZE(options), argc, argv,
						  false, &operands, &wants_help);
	if (!error && operands.count)
		error = vp_error_usage("unexpected argument '%s'", operands.at[0]);
	vp_vec_deinit(&operands);
	if (error)
		return fail(error);
	if (wants_help) {
		help(options, VP_ARRAY_SIZE(options));
		return 0;
	}
	error = vp_daemon_config_read(daemon.config_path, &daemon.config);
	if (error)
		return fail(error);
	error = check ? vperfd_check_files(&daemon) : start(&daemon);
	vperfd_deinit(&daemon);
	return error ? fail(error) : 0;
}
