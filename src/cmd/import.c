/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf import: what another program traced, as a recording. */
#include <unistd.h>

#include "cmd/verb.h"
#include "recording/import.h"
#include "recording/place.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_import(void)
{
	return &verb;
}

struct import {
	const char *output;
	struct vp_texts operands;
};

static struct vp_error *import_with(void *context)
{
	const struct import *import = context;
	vp_notices notes = {0};
	int lock;

	if (!import->operands.count)
		return vp_error_usage("expected the host's trace.dat, and those of its guests");
	VP_TRY(vp_recording_place(import->output, &lock));
	struct vp_error *error =
	    vp_import_tracedat(import->operands.at, import->operands.count, import->output, &notes);
	if (error)
		rmdir(import->output); /* unless something was written */
	vp_vec_each (&notes, note)
		vp_verb_say(verb.name, *note);
	vp_notices_deinit(&notes);
	close(lock);
	return error;
}

static int run_import(int argc, char **argv)
{
	struct import import = {.output = "vperf.data"};
	const struct vp_option options[] = {
	    {'o', "output", VP_OPTION_TEXT, &import.output, "DIR",
	     "the recording (default: vperf.data)"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &import.operands,
			   import_with, &import);
}

static const struct vp_verb verb = {
    .name = "import",
    .usage = "[-o DIR] HOST.dat [GUEST.dat]...",
    .summary = "make a recording of what trace-cmd traced",
    .run = run_import,
};
