/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf metrics: runs vperf-metrics, which is in the same directory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/verb.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_metrics(void)
{
	return &verb;
}

/* The path of vperf-metrics; NULL: the path of this program is unknown. */
static char *find_program(void)
{
	char own[4096];
	ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (size <= 0)
		return NULL;
	own[size] = 0;
	char *slash = strrchr(own, '/');
	if (!slash)
		return NULL;
	*slash = 0;
	return vp_format("%s/vperf-metrics", own);
}

static int run_metrics(int argc, char **argv)
{
	VP_AUTO_FREE char *program = find_program();

	if (program)
		execv(program, argv);
	VP_AUTO_FREE char *sentence =
	    vp_format("cannot run %s: %s%s", program ? program : "vperf-metrics", strerror(errno),
		      errno == ENOENT ? " (package vperf-metrics)" : "");
	vp_verb_say(verb.name, sentence);
	return VP_ERROR_FAILURE;
}

static const struct vp_verb verb = {
    .name = "metrics",
    .summary = "serve counters of vCPU time, VM exits and steal to Prometheus",
    .run = run_metrics,
};
