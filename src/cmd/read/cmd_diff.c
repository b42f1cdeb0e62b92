/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf diff: improvements and regressions of each VM between two recordings. */
#include <string.h>

#include "analyze/account/account_diff.h"
#include "analyze/account/account_joined.h"
#include "analyze/account/account_recording.h"
#include "analyze/common/recording_parts.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_diff.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_diff(void)
{
	return &verb;
}

struct diff {
	const char *vm, *store, *times;
	struct vp_format_words words;
	uint64_t limit;
	struct vp_texts operands;
};

/* All recordings of the store that have a part of a time. */
struct time_side {
	vp_recording_parts parts;
	struct vp_account_recording rec;
};

static void time_side_deinit(struct time_side *side)
{
	vp_recording_parts_deinit(&side->parts);
	vp_account_recording_close(&side->rec);
}

static struct vp_error *open_time(const struct diff *diff, const char *time, struct time_side *ret)
{
	*ret = (struct time_side){0};
	VP_TRY(vp_store_options_parts(diff->store, VP_STORE_RECORDINGS, time, &ret->parts));
	struct vp_error *error = vp_account_joined_open(time, &ret->parts, NULL, &ret->rec);
	if (error)
		vp_recording_parts_deinit(&ret->parts);
	return error;
}

static struct vp_error *compare_times(const struct diff *diff, const char *before,
				      const char *after, struct vp_diff *result)
{
	struct time_side one, other;

	VP_TRY(open_time(diff, before, &one));
	struct vp_error *error = open_time(diff, after, &other);
	if (!error) {
		error = vp_diff_compare(&(struct vp_diff_side){&one.rec, &one.parts},
					&(struct vp_diff_side){&other.rec, &other.parts}, diff->vm,
					result);
		time_side_deinit(&other);
	}
	time_side_deinit(&one);
	return error;
}

/* The two times of --time, in *words, which the caller frees. */
static struct vp_error *choose_times(const struct diff *diff, char **words, const char **before,
				     const char **after)
{
	*words = vp_strdup(diff->times ? diff->times : "");
	char *second = strchr(*words, '\n');

	if (diff->operands.count)
		return vp_error_usage("--store and the recording '%s' are mutually exclusive",
				      diff->operands.at[0]);
	if (!second || strchr(second + 1, '\n'))
		return vp_error_usage("with --store, expected --time twice: before and after");
	*second = '\0';
	*before = *words;
	*after = second + 1;
	return NULL;
}

static struct vp_error *diff_compare(const struct diff *diff, char **words, const char **before,
				     const char **after, struct vp_diff *result)
{
	if (diff->store) {
		VP_TRY(choose_times(diff, words, before, after));
		return compare_times(diff, *before, *after, result);
	}
	if (diff->times)
		return vp_error_usage(
		    "option --time: '%s' chooses recordings of a store: expected --store, too",
		    diff->times);
	if (diff->operands.count != 2)
		return vp_error_usage("expected two recordings, BEFORE and AFTER, not %zu",
				      diff->operands.count);
	*before = diff->operands.at[0];
	*after = diff->operands.at[1];
	return vp_diff_make(*before, *after, diff->vm, result);
}

static struct vp_error *diff_with(void *context)
{
	const struct diff *diff = context;
	VP_AUTO_FREE char *words = NULL;
	const char *before = NULL, *after = NULL;
	struct vp_buffer out = {0};
	struct vp_diff result;
	const char *format;

	VP_TRY(vp_choose_table_format(&diff->words, &format));
	VP_TRY(diff_compare(diff, &words, &before, &after, &result));
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
	    {0, "store", VP_OPTION_TEXT, &diff.store, "DIR",
	     "a store of vperfd: compare its recordings of two times"},
	    {0, "time", VP_OPTION_NAMES, &diff.times, "FROM,TO",
	     "with --store, twice: the time before, and after"},
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
    .usage = "[--vm NAME] [--format FORMAT] BEFORE AFTER | --store DIR --time FROM,TO --time "
	     "FROM,TO",
    .summary = "compare two recordings, VM by VM",
    .run = run_diff,
};
