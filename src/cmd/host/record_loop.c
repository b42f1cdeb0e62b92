/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/record_loop.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cmd/common/verb.h"
#include "schema/snapshot_cause.h"

#define SECOND 1000000000ULL
/* STEP_MS: maximum data loss by `kill -9`. */
enum { FIRST_STEP_MS = 10, STEP_MS = 1000 };

static bool shows_progress(const struct vp_record_loop *loop)
{
	return !loop->quiet && isatty(STDERR_FILENO);
}

static void clear_progress(const struct vp_record_loop *loop)
{
	if (shows_progress(loop))
		fputs("\r\033[K", stderr);
}

void vp_record_loop_progress(const char *what, bool only_agents_left)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(what);

	if (only_agents_left) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s%s ", clean, only_agents_left ? ", Ctrl-C to skip" : "");
}

static void print_notices(const struct vp_record_loop *loop)
{
	for (char *notice; (notice = vp_session_take_notice(loop->session)); free(notice))
		vp_verb_say(loop->verb, notice);
}

static void print_progress(const struct vp_record_loop *loop, uint64_t since)
{
	VP_AUTO_FREE char *totals = vp_session_totals(loop->session);

	fprintf(stderr, "\rrecording: %" PRIu64 " s, %s ",
		(uint64_t)((vp_clock_monotonic() - since) / SECOND), totals);
}

static bool has_processes(const struct vp_record_targets *targets)
{
	return targets && (targets->pids || targets->tids);
}

static void print_summary(const struct vp_record_loop *loop)
{
	VP_AUTO_FREE char *totals = vp_session_totals(loop->session);

	if (!loop->quiet)
		fprintf(stderr, "[ vperf %s: %s, in '%s' ]\n", loop->verb, totals, loop->output);
	if (!loop->quiet && !has_processes(loop->targets) && !strcmp(loop->verb, "record") &&
	    !vp_session_had_vms(loop->session))
		vp_verb_say(loop->verb, "no VM ran: the recording has the host only ('vperf "
					"report', 'vperf html')");
}

/* Takes the snapshot requested by SIGUSR2; a failure does not end the recording. */
static void record_loop_take_snapshot(const struct vp_record_loop *loop)
{
	const struct vp_snapshot_cause cause = {.kind = VP_CAUSE_SIGNAL};
	VP_AUTO_FREE char *path = NULL;
	VP_AUTO_ERROR struct vp_error *error = vp_session_snapshot(loop->session, &cause, &path);
	VP_AUTO_FREE char *sentence = error ? vp_format("no snapshot: %s", vp_error_message(error))
					    : vp_format("snapshot in '%s'", path);

	clear_progress(loop);
	vp_verb_say(loop->verb, sentence);
}

/*
 * Timeout of a wait, which also ends early on a full buffer, a signal, or the end of COMMAND. Each
 * step costs a wakeup. The first steps are short, because mappings of a short COMMAND must be read
 * while it runs.
 */
static int step_ms(const struct vp_record_loop *loop, uint64_t passed)
{
	uint64_t left = loop->duration_ns - passed;
	uint64_t step = passed / 1000000;

	step = step < FIRST_STEP_MS ? FIRST_STEP_MS : step < STEP_MS ? step : STEP_MS;
	return loop->duration_ns && left < step * 1000000 ? (int)(left / 1000000) + 1 : (int)step;
}

static struct vp_error *run_until_end(const struct vp_record_loop *loop, struct vp_command *command,
				      int *status)
{
	uint64_t since = vp_clock_monotonic(), shown = since;

	while (!vp_command_stop_wanted() && !vp_command_ended(command, status) &&
	       !(loop->targets && vp_record_targets_ended(loop->targets))) {
		uint64_t now = vp_clock_monotonic();
		if (loop->duration_ns && now - since >= loop->duration_ns)
			break;
		VP_TRY(vp_session_step(loop->session, step_ms(loop, now - since)));
		print_notices(loop);
		if (vp_command_take_snapshot_wanted())
			record_loop_take_snapshot(loop);
		if (shows_progress(loop) && now - shown >= SECOND) {
			print_progress(loop, since);
			shown = now;
		}
	}
	signal(SIGCHLD, SIG_DFL); /* later code expects the default action */
	clear_progress(loop);
	return NULL;
}

struct vp_error *vp_record_loop_run(const struct vp_record_loop *loop, struct vp_command *command,
				    int *status)
{
	clear_progress(loop); /* removes the progress message of the previous step */
	VP_TRY(vp_session_start(loop->session));
	print_notices(loop);
	VP_TRY(vp_command_go(command));
	VP_TRY(vp_session_publish(loop->session));
	if (loop->targets && loop->targets->ends.epoll)
		vp_session_wake_on(loop->session, loop->targets->ends.epoll);
	struct vp_error *error = run_until_end(loop, command, status);
	if (command->pid)
		kill(command->pid, SIGTERM);

	struct vp_error *end_error = vp_session_finish(loop->session);
	clear_progress(loop);
	print_notices(loop);
	print_summary(loop);
	if (!error)
		return end_error;
	vp_error_free(end_error);
	return error;
}
