/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

static pid_t pager; /* 0: none */

static const char *pager_command(void)
{
	const char *own = getenv("VPERF_PAGER"), *usual = getenv("PAGER");
	const char *command = own ? own : usual ? usual : "less";

	return command[0] && strcmp(command, "cat") != 0 ? command : NULL;
}

/* Waits for the pager: it must restore the terminal before vperf exits. */
static void wait_for_pager(void)
{
	int status;

	fflush(stdout);
	close(STDOUT_FILENO);
	signal(SIGINT, SIG_IGN);
	vp_waitpid(pager, &status, 0);
}

static void become_pager(const char *command, const int *ends)
{
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	setenv("LESS", "FRX", 0); /* exits at once if everything fits on the screen */
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void vp_pager_begin(void)
{
	const char *command = pager_command();
	int ends[2];

	if (pager || !command || !isatty(STDOUT_FILENO) || pipe2(ends, O_CLOEXEC))
		return;
	fflush(stdout);
	pager = fork();
	if (!pager)
		become_pager(command, ends);
	if (pager > 0) {
		dup2(ends[1], STDOUT_FILENO);
		atexit(wait_for_pager);
	} else {
		pager = 0;
	}
	close(ends[0]);
	close(ends[1]);
}
