/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/store_options.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/common/recording_parts.h"
#include "analyze/common/window.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "store/history.h"

#define SECOND 1000000000ULL

static bool is_usable(const struct vp_kept *kept)
{
	return kept->kind == VP_KEPT_RECORDING && !kept->problem && kept->end > kept->start;
}

/* Start of the first recording and end of the last one, CLOCK_REALTIME. */
static struct vp_error *store_reach(const char *store, const vp_history *history, uint64_t *first,
				    uint64_t *last)
{
	*first = UINT64_MAX;
	*last = 0;
	vp_vec_each (history, kept) {
		if (!is_usable(kept))
			continue;
		if (vp_kept_start(kept) < *first)
			*first = vp_kept_start(kept);
		if (vp_kept_end(kept) > *last)
			*last = vp_kept_end(kept);
	}
	return *last ? NULL : vp_error_new("store '%s' has no recording that can be read", store);
}

/* The part of the recording between two moments of CLOCK_REALTIME. */
static struct vp_window window_in(const struct vp_kept *kept, uint64_t from, uint64_t to)
{
	uint64_t start = vp_kept_start(kept), end = vp_kept_end(kept);

	from = from > start ? from : start;
	to = to < end ? to : end;
	return (struct vp_window){from - (uint64_t)kept->realtime_offset,
				  to > from ? to - (uint64_t)kept->realtime_offset : 0};
}

static void add_part(const struct vp_kept *kept, uint64_t from, uint64_t to,
		     const struct vp_kept **before, vp_recording_parts *ret)
{
	struct vp_window window = window_in(kept, from, to);

	/* A recording starts before the previous one ends. */
	if (*before && vp_kept_is_same_boot(*before, kept) && window.from < (*before)->end)
		window.from = (*before)->end;
	if (window.to <= window.from)
		return;
	vp_vec_push(ret, ((struct vp_recording_part){vp_strdup(kept->path), window}));
	*before = kept;
}

static struct vp_error *parts_of(const char *store, const char *time, const vp_history *history,
				 vp_recording_parts *ret)
{
	const struct vp_kept *before = NULL;
	uint64_t first, last, from, to;

	VP_TRY(store_reach(store, history, &first, &last));
	VP_TRY(vp_time_option_of_store(time, first, last, &from, &to));
	if (!time) { /* the newest */
		vp_vec_each (history, kept)
			if (is_usable(kept))
				from = vp_kept_start(kept);
	}
	vp_vec_each (history, kept)
		if (is_usable(kept) && (time || vp_kept_start(kept) == from))
			add_part(kept, from, to, &before, ret);
	return ret->count ? NULL
			  : vp_error_new("store '%s' has no recording of that time: a gap "
					 "('vperf store' lists them)",
					 store);
}

struct vp_error *vp_store_options_parts(const char *store, const char *time,
					vp_recording_parts *ret)
{
	vp_history history;

	*ret = (vp_recording_parts){0};
	VP_TRY(vp_history_read(store, &history));
	struct vp_error *error = parts_of(store, time, &history, ret);
	vp_history_deinit(&history);
	if (error)
		vp_recording_parts_deinit(ret);
	return error;
}

static void say_choice(const vp_recording_parts *parts, const struct vp_recording_part *chosen)
{
	VP_AUTO_FREE char *sentence = vp_format(
	    "that time is in %zu recordings, and this command reads one: '%s', which has %.0f s "
	    "of it",
	    parts->count, chosen->path, (double)(chosen->window.to - chosen->window.from) / SECOND);

	vp_verb_say("--store", sentence);
}

/* Takes the longest part. */
static void take_longest(struct vp_store_options *options, const char **time,
			 const char **directory)
{
	const struct vp_recording_part *chosen = options->parts.at;

	vp_vec_each (&options->parts, part)
		if (part->window.to - part->window.from > chosen->window.to - chosen->window.from)
			chosen = part;
	if (vp_store_options_has_several(options))
		say_choice(&options->parts, chosen);
	*directory = options->directory = vp_strdup(chosen->path);
	if (!time || !*time)
		return;
	*time = options->time = vp_format(
	    "%" PRIu64 ".%09" PRIu64 ",%" PRIu64 ".%09" PRIu64,
	    (uint64_t)(chosen->window.from / SECOND), (uint64_t)(chosen->window.from % SECOND),
	    (uint64_t)(chosen->window.to / SECOND), (uint64_t)(chosen->window.to % SECOND));
}

struct vp_error *vp_store_options_choose_parts(struct vp_store_options *options,
					       const struct vp_texts *operands, const char *input,
					       const char *otherwise, const char **time,
					       const char **directory)
{
	if (!options->store)
		return vp_verb_recording(operands, input, otherwise, directory);
	if (operands->count || input)
		return vp_error_usage("--store and the recording '%s' are mutually exclusive",
				      operands->count ? operands->at[0] : input);
	VP_TRY(vp_store_options_parts(options->store, time ? *time : NULL, &options->parts));
	if (vp_store_options_has_several(options))
		*directory = options->parts.at[0].path;
	else
		take_longest(options, time, directory);
	return NULL;
}

struct vp_error *vp_store_options_choose(struct vp_store_options *options,
					 const struct vp_texts *operands, const char *input,
					 const char *otherwise, const char **time,
					 const char **directory)
{
	VP_TRY(vp_store_options_choose_parts(options, operands, input, otherwise, time, directory));
	if (vp_store_options_has_several(options))
		take_longest(options, time, directory);
	return NULL;
}

void vp_store_options_deinit(struct vp_store_options *options)
{
	vp_recording_parts_deinit(&options->parts);
	free(options->directory);
	free(options->time);
}

char *vp_store_options_arguments(const struct vp_store_options *options, const char *time)
{
	struct vp_buffer words = {0};

	vp_buffer_string(&words, " --store");
	vp_text_put_word(options->store, &words);
	vp_buffer_string(&words, " --time");
	vp_text_put_word(time ? time : ",", &words);
	char *ret = vp_strdup(vp_buffer_text(&words));
	vp_buffer_deinit(&words);
	return ret;
}
