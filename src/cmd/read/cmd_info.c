/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf info: contents of a recording, and missing data. */
#include <stdio.h>
#include <string.h>

#include "analyze/report/summary.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_summary.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_info(void)
{
	return &verb;
}

struct info {
	const char *input, *format;
	struct vp_store_options store;
	bool json, verbose;
	struct vp_texts operands;
};

static struct vp_error *info_with(void *context)
{
	struct info *info = context;
	struct vp_summary summary;
	struct vp_buffer out = {0};
	const char *directory, *format;

	const struct vp_format_words words = {info->format, info->json, false};
	VP_TRY(vp_choose_text_or_json(&words, &format));
	VP_TRY(vp_store_options_choose(&info->store, &info->operands, info->input, "vperf.data",
				       NULL, &directory));
	VP_TRY(vp_summary_make(directory, &summary));
	if (!strcmp(format, "json"))
		vp_render_summary_json(&summary, &out);
	else
		vp_render_summary_text(&summary, vp_terminal_width(), info->verbose, &out);
	struct vp_error *error =
	    strcmp(format, "json") ? vp_verb_print_text(&out, true) : vp_verb_print(&out);
	vp_buffer_deinit(&out);
	vp_summary_deinit(&summary);
	return error;
}

static int run_info(int argc, char **argv)
{
	struct info info = {0};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &info.input, "DIR",
	     "recording directory (default: vperf.data)"},
	    VP_STORE_OPTION(&info.store),
	    {0, "format", VP_OPTION_TEXT, &info.format, "FORMAT", "text or json (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &info.json, NULL, "same as --format json"},
	    {'v', "verbose", VP_OPTION_FLAG, &info.verbose, NULL, "print all notes"},
	};

	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &info.operands,
				 info_with, &info);

	vp_store_options_deinit(&info.store);
	return status;
}

static const struct vp_verb verb = {
    .name = "info",
    .usage = "[-v] [--json] [DIR]",
    .summary = "print what a recording contains, and what it lost",
    .run = run_info,
};
