/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf info: contents of a recording, and missing data. */
#include <stdio.h>
#include <string.h>

#include "analyze/report/summary.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
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
	const char *input, *format, *time;
	struct vp_store_options store;
	bool json, verbose;
	struct vp_texts operands;
};

static struct vp_error *put_summary(const struct info *info, const char *directory, bool is_json,
				    struct vp_buffer *out)
{
	struct vp_summary summary;

	VP_TRY(vp_summary_make(directory, &summary));
	if (is_json)
		vp_render_summary_json(&summary, out);
	else
		vp_render_summary_text(&summary, vp_terminal_width(), info->verbose, out);
	vp_summary_deinit(&summary);
	return NULL;
}

/* Each recording of several; JSON is an array. One that cannot be read is named. */
static struct vp_error *put_summaries(const struct info *info, bool is_json, struct vp_buffer *out)
{
	bool any = false;

	vp_vec_each (&info->store.parts, part) {
		size_t start = out->size;
		vp_buffer_string(out, any ? is_json ? ",\n" : "\n" : is_json ? "[" : "");
		VP_AUTO_ERROR struct vp_error *error = put_summary(info, part->path, is_json, out);
		any |= !error;
		if (!error)
			continue;
		out->size = start;
		vp_verb_say(verb.name, vp_error_message(error));
	}
	if (!any)
		return vp_error_new("no recording of that time can be read");
	vp_buffer_string(out, is_json ? "]\n" : "");
	return NULL;
}

static struct vp_error *info_with(void *context)
{
	struct info *info = context;
	struct vp_buffer out = {0};
	const char *directory, *format;

	const struct vp_format_words words = {info->format, info->json, false};
	VP_TRY(vp_choose_text_or_json(&words, &format));
	if (info->time && !info->store.store)
		return vp_error_usage(
		    "option --time: '%s' chooses recordings of a store: expected --store, too",
		    info->time);
	bool is_json = !strcmp(format, "json");
	info->store.reads = VP_STORE_WITH_SNAPSHOTS;
	VP_TRY(vp_store_options_choose_parts(&info->store, &info->operands, info->input,
					     "vperf.data", &info->time, &directory));
	struct vp_error *error = vp_store_options_has_several(&info->store)
				     ? put_summaries(info, is_json, &out)
				     : put_summary(info, directory, is_json, &out);
	if (!error)
		error = is_json ? vp_verb_print(&out) : vp_verb_print_text(&out, true);
	vp_buffer_deinit(&out);
	return error;
}

static int run_info(int argc, char **argv)
{
	struct info info = {0};
	const struct vp_option options[] = {
	    {'i', "input", VP_OPTION_TEXT, &info.input, "DIR",
	     "recording directory (default: vperf.data)"},
	    VP_STORE_OPTION(&info.store),
	    {0, "time", VP_OPTION_TEXT, &info.time, "FROM,TO",
	     "with --store: all recordings and snapshots that have a part of this time"},
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
    .usage = "[-v] [--json] [--store DIR [--time FROM,TO]] [DIR]",
    .summary = "print what a recording contains, and what it lost",
    .run = run_info,
};
