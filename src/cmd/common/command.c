/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "cmd/common/options.h"

static volatile sig_atomic_t stop_wanted, snapshot_wanted;
static struct rlimit files_before; /* original limit of open descriptors, … */
static bool files_raised;          /* … if it was raised */
static mode_t users_umask;
static bool has_own_umask;

static void command_on_signal(int signal)
{
	stop_wanted = 1;
}

static void on_child(int signal)
{
}

void vp_command_catch_signals(void)
{
	struct sigaction action = {.sa_handler = command_on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* ignored under nohup */
	struct sigaction before;
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* The end of COMMAND also interrupts waits. */
	action.sa_handler = on_child;
	sigaction(SIGCHLD, &action, NULL);
}

void vp_command_keep_private(bool shared)
{
	if (shared)
		return;
	users_umask = umask(077);
	has_own_umask = true;
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

/* In the child: waits for a byte, then executes the command. Anything else here would be counted as
 * the command's. */
static noreturn void become(const char **argv, int go, int result)
{
	char byte;

	signal(SIGPIPE, SIG_DFL);
	if (files_raised)
		(void)!setrlimit(RLIMIT_NOFILE, &files_before);
	if (has_own_umask)
		umask(users_umask);
	if (vp_read(go, &byte, 1) != 1)
		_exit(0);
	execvp(argv[0], (char *const *)argv);
	int errnum = errno;
	(void)!vp_write(result, &errnum, sizeof(errnum));
	_exit(127);
}

static bool is_executable(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

/* Looks for the program like execvp(3): a name without a slash is searched in PATH. */
static struct vp_error *expect_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return is_executable(name)
			   ? NULL
			   : vp_error_errno(errno ? errno : EACCES, "cannot run '%s'", name);
	for (const char *at = path ? path : "/bin:/usr/bin";; at++) {
		size_t size = strcspn(at, ":");
		VP_AUTO_FREE char *file =
		    vp_format("%.*s/%s", size ? (int)size : 1, size ? at : ".", name);
		if (is_executable(file))
			return NULL;
		at += size;
		if (!*at)
			return vp_error_new("cannot run '%s': no such program in PATH", name);
	}
}

struct vp_error *vp_command_prepare(const struct vp_texts *words, struct vp_command *ret)
{
	VP_AUTO_FREE const char **argv =
	    vp_alloc((words->count + 1) * sizeof(*argv)); /* NULL-terminated */
	int go[2], result[2];

	VP_TRY(expect_program(words->at[0]));
	memcpy(argv, words->at, words->count * sizeof(*argv));
	if (pipe2(go, O_CLOEXEC) || pipe2(result, O_CLOEXEC))
		return vp_error_errno(errno, "cannot make a pipe");
	ret->pid = fork();
	if (ret->pid < 0)
		return vp_error_errno(errno, "cannot start a process");
	if (ret->pid == 0) {
		close(go[1]);
		close(result[0]);
		become(argv, go[0], result[1]);
	}
	close(go[0]);
	close(result[1]);
	ret->go = go[1];
	ret->result = result[0];
	ret->name = words->at[0];
	return NULL;
}

struct vp_error *vp_command_go(struct vp_command *command)
{
	int errnum = 0;

	if (!command->pid)
		return NULL;
	if (vp_write(command->go, "", 1) != 1)
		errnum = errno;
	close(command->go);
	(void)!vp_read(command->result, &errnum,
		       sizeof(errnum)); /* end of file: execution succeeded */
	close(command->result);
	return errnum ? vp_error_errno(errnum, "cannot run '%s'", command->name) : NULL;
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
