/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf metrics, vperf fleet: execute vperf-metrics and vperf-fleet from the same directory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/verb.h"

static const struct vp_verb verb, fleet_verb;

const struct vp_verb *vp_verb_metrics(void)
{
	return &verb;
}

const struct vp_verb *vp_verb_fleet(void)
{
	return &fleet_verb;
}

/* The path of vperf-NAME; NULL: the path of this program is unknown. */
static char *find_program(const char *name)
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
	return vp_format("%s/vperf-%s", own, name);
}

static int become(const char *name, const char *package, char **argv)
{
	VP_AUTO_FREE char *program = find_program(name);

	if (program)
		execv(program, argv);
	VP_AUTO_FREE char *sentence =
	    vp_format("cannot run %s: %s%s%s%s", program ? program : name, strerror(errno),
		      errno == ENOENT ? " (package " : "", errno == ENOENT ? package : "",
		      errno == ENOENT ? ")" : "");
	vp_verb_say(name, sentence);
	return VP_ERROR_FAILURE;
}

static int run_metrics(int argc, char **argv)
{
	return become(verb.name, "vperf-metrics", argv);
}

static int run_fleet(int argc, char **argv)
{
	return become(fleet_verb.name, "vperf-fleet", argv);
}

static const struct vp_verb verb = {
    .name = "metrics",
    .summary = "serve counters of vCPU time, VM exits and steal to Prometheus",
    .run = run_metrics,
};

static const struct vp_verb fleet_verb = {
    .name = "fleet",
    .summary = "find the hosts and VMs that need attention, from the metrics of many hosts",
    .run = run_fleet,
};
