/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf diff: improvements and regressions of each VM between two recordings. */
#include <string.h>

#include "analyze/account/account_diff.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_diff.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_diff(void)
{
	return &verb;
}

struct diff {
	const char *vm;
	struct vp_format_words words;
	uint64_t limit;
	struct vp_texts operands;
};

static struct vp_error *diff_with(void *context)
{
	const struct diff *diff = context;
	struct vp_buffer out = {0};
	struct vp_diff result;
	const char *format;

	VP_TRY(vp_choose_table_format(&diff->words, &format));
	if (diff->operands.count != 2)
		return vp_error_usage("expected two recordings, BEFORE and AFTER, not %zu",
				      diff->operands.count);
	const char *before = diff->operands.at[0], *after = diff->operands.at[1];
	VP_TRY(vp_diff_make(before, after, diff->vm, &result));
	while (diff->limit && result.rows.count > diff->limit)
		free(result.rows.at[--result.rows.count].vm);
	if (!strcmp(format, "json"))
		vp_render_diff_json(&result, before, after, &out);
	else if (!strcmp(format, "csv"))
		vp_render_diff_csv(&result, &out);
	else
		vp_render_diff_text(&result, before, after, vp_terminal_width(), &out);
	struct vp_error *error =
	    strcmp(format, "text") != 0 ? vp_verb_print(&out) : vp_verb_print_text(&out, false);
	vp_buffer_deinit(&out);
	vp_diff_deinit(&result);
	return error;
}

static int run_diff(int argc, char **argv)
{
	struct diff diff = {0};
	const struct vp_option options[] = {
	    {0, "vm", VP_OPTION_NAMES, &diff.vm, "NAME",
	     "only this VM (name, or pid of its VMM); can be repeated"},
	    VP_FORMAT_OPTIONS(&diff.words, "json", "csv", "text, json or csv"),
	    {0, "limit", VP_OPTION_COUNT, &diff.limit, "N", "print only the first N rows"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &diff.operands,
			   diff_with, &diff);
}

static const struct vp_verb verb = {
    .name = "diff",
    .usage = "[--vm NAME] [--format FORMAT] BEFORE AFTER",
    .summary = "compare two recordings, VM by VM",
    .run = run_diff,
};
