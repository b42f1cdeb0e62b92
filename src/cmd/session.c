/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cmd/verb.h"
#include "collect/clock.h"

#define SECOND 1000000000ULL
/* What a `kill -9` loses at most, in milliseconds. */
enum { STEP_MS = 1000 };

static bool shows_progress(const struct vp_session *session)
{
	return !session->quiet && isatty(STDERR_FILENO);
}

static void clear_progress(const struct vp_session *session)
{
	if (shows_progress(session))
		fputs("\r\033[K", stderr);
}

static void print_notices(const struct vp_session *session)
{
	for (char *notice; (notice = session->take_notice(session->recorder)); free(notice))
		vp_verb_say(session->verb, notice);
}

static void print_progress(const struct vp_session *session, uint64_t since)
{
	VP_AUTO_FREE char *totals = session->totals(session->recorder);

	fprintf(stderr, "\rrecording: %" PRIu64 " s, %s ",
		(uint64_t)((vp_clock_monotonic() - since) / SECOND), totals);
}

static void print_summary(const struct vp_session *session)
{
	VP_AUTO_FREE char *totals = session->totals(session->recorder);

	if (!session->quiet)
		fprintf(stderr, "[ vperf %s: %s, in '%s' ]\n", session->verb, totals,
			session->output);
}

/* A full buffer, a signal and the end of COMMAND cut the wait short: each step costs a wake-up. */
static int step_ms(const struct vp_session *session, uint64_t passed)
{
	uint64_t left = session->duration * SECOND - passed;
	bool ends_first = session->duration && left < STEP_MS * 1000000ULL;

	return ends_first ? (int)(left / 1000000) + 1 : STEP_MS;
}

static struct vp_error *run_until_end(const struct vp_session *session, struct vp_command *command,
				      int *status)
{
	uint64_t since = vp_clock_monotonic(), shown = since;

	while (!vp_command_stop_wanted() && !vp_command_ended(command, status)) {
		uint64_t now = vp_clock_monotonic();
		if (session->duration && now - since >= session->duration * SECOND)
			break;
		VP_TRY(session->step(session->recorder, step_ms(session, now - since)));
		print_notices(session);
		if (shows_progress(session) && now - shown >= SECOND) {
			print_progress(session, since);
			shown = now;
		}
	}
	signal(SIGCHLD, SIG_DFL); /* what follows need not expect it */
	clear_progress(session);
	return NULL;
}

struct vp_error *vp_session_record(const struct vp_session *session, struct vp_command *command,
				   int *status)
{
	clear_progress(session); /* of what was before */
	VP_TRY(session->start(session->recorder));
	print_notices(session);
	vp_command_go(command);
	struct vp_error *error = run_until_end(session, command, status);
	if (command->pid)
		kill(command->pid, SIGTERM);

	struct vp_error *end_error = session->finish(session->recorder);
	clear_progress(session);
	print_notices(session);
	print_summary(session);
	if (!error)
		return end_error;
	vp_error_free(end_error);
	return error;
}
