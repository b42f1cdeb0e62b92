/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf snapshot: requests a snapshot from a flight recorder. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "session/control.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_snapshot(void)
{
	return &verb;
}

struct snapshot {
	uint64_t pid;
	struct vp_texts operands;
};

static struct vp_error *find_directory(const struct snapshot *snapshot, char **ret)
{
	if (snapshot->operands.count + (snapshot->pid != 0) > 1)
		return vp_error_usage("expected one recorder: a directory or --pid PID");
	if (snapshot->pid > INT32_MAX)
		return vp_error_usage("option --pid: expected a process id");
	if (snapshot->pid)
		return vp_control_find((pid_t)snapshot->pid, ret);
	*ret = vp_strdup(snapshot->operands.count ? snapshot->operands.at[0] : "vperf.data");
	return NULL;
}

static struct vp_error *snapshot_with(void *context)
{
	VP_AUTO_FREE char *directory = NULL;
	VP_AUTO_FREE char *path = NULL;
	struct vp_buffer out = {0};

	VP_TRY(find_directory(context, &directory));
	VP_TRY(vp_control_ask(directory, &path));
	vp_buffer_printf(&out, "%s\n", path);
	struct vp_error *error = vp_verb_print(&out);
	vp_buffer_deinit(&out);
	return error;
}

static int run_snapshot(int argc, char **argv)
{
	struct snapshot snapshot = {0};
	const struct vp_option options[] = {
	    {'p', "pid", VP_OPTION_COUNT, &snapshot.pid, "PID",
	     "pid of the recorder, instead of its directory"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &snapshot.operands,
			   snapshot_with, &snapshot);
}

static const struct vp_verb verb = {
    .name = "snapshot",
    .usage = "[DIR | --pid PID]",
    .summary = "dump the buffer of a running flight recorder",
    .run = run_snapshot,
};
