/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Closed recordings: sends their profiles and moves them to the spool. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "cmd/daemon/vperfd.h"
#include "daemon/child.h"
#include "daemon/daemon_config.h"
#include "daemon/push_queue.h"
#include "store/recording.h"
#include "store/spool.h"

#define SECOND UINT64_C(1000000000)

static struct vp_error *closed_start_push(void *context, const struct vp_push *push, pid_t *ret)
{
	const struct vperfd *daemon = context;
	VP_AUTO_FREE char *pusher = vp_format("%s-push", daemon->program);
	struct vp_daemon_words words;

	vp_daemon_push_words(&daemon->config, pusher, daemon->program, push, &words);
	return vp_child_start(&words, -1, ret);
}

static bool closed_push_has_ended(void *context, pid_t process, enum vp_push_outcome *outcome)
{
	int status = 0;

	if (vp_waitpid(process, &status, WNOHANG) == 0)
		return false;
	*outcome = WIFEXITED(status) && !WEXITSTATUS(status)                 ? VP_PUSH_SENT
		   : WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL ? VP_PUSH_LATER
									     : VP_PUSH_REFUSED;
	return true;
}

void vperfd_closed_begin(struct vperfd *daemon)
{
	static const struct vp_push_ops ops = {closed_start_push, closed_push_has_ended};

	daemon->pushes.ops = &ops;
	daemon->pushes.context = daemon;
	daemon->pushes.notices = &daemon->notices;
}

static void queue_profiles(struct vperfd *daemon, const char *path)
{
	struct vp_recording about;
	VP_AUTO_ERROR struct vp_error *error = vp_recording_read(path, &about);

	if (error) {
		VPERFD_SAY("no profile of '%s': %s", path, vp_error_message(error));
		return;
	}
	/* A killed recorder wrote no end time: assume the maximum length. */
	uint64_t length = about.end ? about.end - about.start : daemon->config.window_ns;
	vp_push_queue_add(&daemon->pushes, path, (length + SECOND - 1) / SECOND,
			  daemon->config.window_ns / SECOND);
	vp_recording_deinit(&about);
}

void vperfd_recording_closed(struct vperfd *daemon, const char *path)
{
	const struct vp_daemon_config *config = &daemon->config;
	const char *slash = strrchr(path, '/');
	uint64_t dropped;

	if (strcmp(config->profiles_url, "off") != 0)
		queue_profiles(daemon, path);
	if (!config->spool_bytes || !slash)
		return;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_spool_add(config->directory, slash + 1, config->spool_bytes, &dropped);
	if (error) {
		vperfd_say(vp_error_message(error));
		return;
	}
	if (dropped)
		VPERFD_SAY("the spool is full: %llu of the oldest were dropped",
			   (unsigned long long)dropped);
	daemon->spool_dropped += dropped;
	daemon->spooled++;
}

void vperfd_closed_step(struct vperfd *daemon, uint64_t now)
{
	vp_push_queue_step(&daemon->pushes, now);
}

void vperfd_closed_end(struct vperfd *daemon)
{
	if (daemon->pushes.process) {
		kill(daemon->pushes.process, SIGTERM);
		vp_waitpid(daemon->pushes.process, NULL, 0);
	}
	if (daemon->pushes.waiting.count)
		VPERFD_SAY("%zu profiles were not sent", daemon->pushes.waiting.count);
	vp_push_queue_deinit(&daemon->pushes);
}
