/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf import: converts traces of other programs to a recording. */
#include <stdio.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/notices.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/options.h"
#include "cmd/common/unfinished.h"
#include "cmd/common/verb.h"
#include "import/common/import_channel.h"
#include "import/common/importer.h"
#include "import/recording/import.h"
#include "import/recording/importers.h"
#include "store/directory.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_import(void)
{
	return &verb;
}

struct import {
	const char *output;
	bool list, shared;
	struct vp_import_options options;
	struct vp_texts operands;
};

static struct vp_error *cmd_import_list_formats(void)
{
	const struct vp_importer *importer;

	for (size_t i = 0; (importer = vp_importer_at(i)); i++)
		printf("%-11s %s\n", importer->name, importer->summary);
	return NULL;
}

static struct vp_error *import_with(void *context)
{
	const struct import *import = context;
	vp_notices notes = {0};
	struct vp_recording_dir dir;

	if (import->list)
		return cmd_import_list_formats();
	if (!import->operands.count)
		return vp_error_usage("expected the recording of the host, then those of its "
				      "guests: 'vperf import --list' lists the formats");
	vp_command_keep_private(import->shared);
	vp_unfinished_hold();
	struct vp_error *error = vp_recording_dir_claim(import->output, &dir);
	vp_unfinished_begin(error ? NULL : dir.now);
	if (error)
		return error;
	error = vp_import(import->operands.at, import->operands.count, &import->options, dir.now,
			  &notes);
	if (!error)
		error = vp_recording_dir_publish(&dir);
	vp_unfinished_end();
	vp_vec_each (&notes, note)
		vp_verb_say(verb.name, *note);
	vp_notices_deinit(&notes);
	vp_recording_dir_leave(&dir);
	return error;
}

static int run_import(int argc, char **argv)
{
	struct import import = {.output = "vperf.data"};
	const struct vp_option options[] = {
	    {'o', "output", VP_OPTION_TEXT, &import.output, "DIR",
	     "the recording (default: vperf.data)"},
	    {0, "shared", VP_OPTION_FLAG, &import.shared, NULL,
	     "let others read the recording, as the umask allows (default: only you)"},
	    {'e', "event", VP_OPTION_TEXT, &import.options.event, "NAME",
	     "perf.data: import the samples of this event (default: the first event with samples)"},
	    {0, "list", VP_OPTION_FLAG, &import.list, NULL, "list the formats"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &import.operands,
			   import_with, &import);
}

static const struct vp_verb verb = {
    .name = "import",
    .usage = "[-o DIR] [-e EVENT] HOST [[NAME[@PID]:]GUEST]...",
    .summary = "convert a trace-cmd, LTTng or perf recording",
    .run = run_import,
};
