/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/io.h"

static volatile sig_atomic_t stop_wanted, snapshot_wanted;
static struct rlimit files_before; /* the limit of open descriptors … */
static bool files_raised;          /* … until it was raised */

static void on_signal(int signal)
{
	stop_wanted = 1;
}

static void on_child(int signal)
{
}

void vp_command_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* nohup has it ignored. */
	struct sigaction before;
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* The end of COMMAND, too, cuts a wait short. */
	action.sa_handler = on_child;
	sigaction(SIGCHLD, &action, NULL);
}

static void on_snapshot_signal(int signal)
{
	snapshot_wanted = 1;
}

void vp_command_catch_snapshot_signal(void)
{
	struct sigaction action = {.sa_handler = on_snapshot_signal};

	sigaction(SIGUSR2, &action, NULL);
}

bool vp_command_take_snapshot_wanted(void)
{
	bool wanted = snapshot_wanted;

	snapshot_wanted = 0;
	return wanted;
}

bool vp_command_stop_wanted(void)
{
	return stop_wanted;
}

void vp_command_raise_file_limit(void)
{
	vp_raise_file_limit(&files_before);
	files_raised = true;
}

/* Waits for a byte and becomes the command: as little as can be is done here, since it counts as
 * the command's. */
static noreturn void become(const char *verb, const char **argv, int go)
{
	char byte;

	if (vp_read(go, &byte, 1) != 1)
		_exit(0);
	signal(SIGPIPE, SIG_DFL);
	if (files_raised)
		(void)!setrlimit(RLIMIT_NOFILE, &files_before);
	execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "vperf %s: cannot run '%s': %s\n", verb, argv[0], strerror(errno));
	_exit(127);
}

struct vp_error *vp_command_prepare(const char *verb, const struct vp_texts *words,
				    struct vp_command *ret)
{
	VP_AUTO_FREE const char **argv =
	    vp_alloc((words->count + 1) * sizeof(*argv)); /* a NULL behind the last */
	int go[2];

	memcpy(argv, words->at, words->count * sizeof(*argv));
	if (pipe2(go, O_CLOEXEC))
		return vp_error_errno(errno, "cannot make a pipe");
	ret->pid = fork();
	if (ret->pid < 0)
		return vp_error_errno(errno, "cannot start a process");
	if (ret->pid == 0) {
		close(go[1]);
		become(verb, argv, go[0]);
	}
	close(go[0]);
	ret->go = go[1];
	return NULL;
}

void vp_command_go(struct vp_command *command)
{
	if (command->pid && vp_write(command->go, "", 1) != 1)
		stop_wanted = 1;
	if (command->pid)
		close(command->go);
}

bool vp_command_ended(struct vp_command *command, int *status)
{
	if (!command->pid || vp_waitpid(command->pid, status, WNOHANG) != command->pid)
		return false;
	command->pid = 0;
	return true;
}

char *vp_command_text(const struct vp_texts *words)
{
	struct vp_buffer text = {0};

	for (size_t i = 0; i < words->count; i++)
		vp_buffer_printf(&text, "%s%s", i ? " " : "", words->at[i]);
	char *joined = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return joined;
}
