/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/store_options.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/common/recording_parts.h"
#include "analyze/common/window.h"
#include "analyze/trace/trace_feed.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "store/history.h"
#include "store/recording.h"

#define SECOND 1000000000ULL

static bool is_usable(const struct vp_kept *kept, enum vp_kept_kind kind)
{
	return kept->kind == kind && !kept->problem && kept->end > kept->start;
}

/* Start of the first and end of the last one that may be read, CLOCK_REALTIME. */
static struct vp_error *store_reach(const char *store, const vp_history *history,
				    enum vp_store_reads reads, uint64_t *first, uint64_t *last)
{
	*first = UINT64_MAX;
	*last = 0;
	vp_vec_each (history, kept) {
		if (!is_usable(kept, VP_KEPT_RECORDING) &&
		    (reads == VP_STORE_RECORDINGS || !is_usable(kept, VP_KEPT_SNAPSHOT)))
			continue;
		if (vp_kept_start(kept) < *first)
			*first = vp_kept_start(kept);
		if (vp_kept_end(kept) > *last)
			*last = vp_kept_end(kept);
	}
	return *last ? NULL : vp_error_new("store '%s' has no recording that can be read", store);
}

static bool has_events(const struct vp_kept *kept)
{
	struct vp_recording about;
	VP_AUTO_ERROR struct vp_error *error = vp_recording_read(kept->path, &about);

	if (error)
		return false;
	bool ret = vp_feed_is_recorded(kept->path, &about, &kept->vms);
	vp_recording_deinit(&about);
	return ret;
}

static bool is_wanted(const struct vp_kept *kept, enum vp_store_reads reads)
{
	if (is_usable(kept, VP_KEPT_RECORDING))
		return reads != VP_STORE_EVENTS || has_events(kept);
	return reads != VP_STORE_RECORDINGS && is_usable(kept, VP_KEPT_SNAPSHOT) &&
	       (reads != VP_STORE_EVENTS || has_events(kept));
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

/* The parts of a store, as they are found. */
struct part_list {
	enum vp_store_reads reads;
	uint64_t from, to;                            /* CLOCK_REALTIME */
	const struct vp_kept *of_kind[VP_KEPT_KINDS]; /* the previous one of each kind */
	const struct vp_kept *before;
	uint32_t boot;
	vp_recording_parts *parts;
};

/* Moves the last part before those of its boot that begin later: a snapshot may have begun before
 * the recording. */
static void sort_last(vp_recording_parts *parts)
{
	for (size_t i = parts->count - 1; i; i--) {
		struct vp_recording_part *one = &parts->at[i - 1], swapped = *one;
		if (one->boot != one[1].boot || one->window.from <= one[1].window.from)
			return;
		*one = one[1];
		one[1] = swapped;
	}
}

static void add_part(struct part_list *list, const struct vp_kept *kept)
{
	/* A trace is the same in a recording and in a snapshot. */
	const struct vp_kept **before =
	    &list->of_kind[list->reads == VP_STORE_EVENTS ? VP_KEPT_RECORDING : kept->kind];
	struct vp_window window = window_in(kept, list->from, list->to);

	/* A recording starts before the previous one ends. */
	if (*before && vp_kept_is_same_boot(*before, kept) && window.from < (*before)->end)
		window.from = (*before)->end;
	if (window.to <= window.from)
		return;
	list->boot += list->before && !vp_kept_is_same_boot(list->before, kept);
	vp_vec_push(list->parts,
		    ((struct vp_recording_part){vp_strdup(kept->path), window, list->boot}));
	sort_last(list->parts);
	*before = list->before = kept;
}

/* The error names what is missing, and where it may be. */
static struct vp_error *nothing_found(const char *store, enum vp_store_reads reads)
{
	if (reads == VP_STORE_EVENTS)
		return vp_error_new("store '%s' has no events of the host of that time: vperfd "
				    "keeps them in snapshots of its flight recorder ('size' in "
				    "[flight]), which findings cause ('vperf store' lists them)",
				    store);
	return vp_error_new("store '%s' has no recording of that time: a gap ('vperf store' lists "
			    "them)",
			    store);
}

static struct vp_error *parts_of(const char *store, enum vp_store_reads reads, const char *time,
				 const vp_history *history, vp_recording_parts *ret)
{
	struct part_list list = {.reads = reads, .parts = ret};
	const struct vp_kept *newest = NULL;
	uint64_t first, last;

	VP_TRY(store_reach(store, history, reads, &first, &last));
	VP_TRY(vp_time_option_of_store(time, first, last, &list.from, &list.to));
	if (!time) {
		list.from = 0;
		list.to = UINT64_MAX;
	}
	vp_vec_each (history, kept)
		if (is_wanted(kept, reads)) {
			newest = kept;
			if (time)
				add_part(&list, kept);
		}
	if (!time && newest)
		add_part(&list, newest);
	return ret->count ? NULL : nothing_found(store, reads);
}

struct vp_error *vp_store_options_parts(const char *store, enum vp_store_reads reads,
					const char *time, vp_recording_parts *ret)
{
	vp_history history;

	*ret = (vp_recording_parts){0};
	VP_TRY(vp_history_read(store, &history));
	struct vp_error *error = parts_of(store, reads, time, &history, ret);
	vp_history_deinit(&history);
	if (error)
		vp_recording_parts_deinit(ret);
	return error;
}

enum { NAMED_PARTS = 8 };

/* Lists the recordings that have the time. */
static struct vp_error *several_found(const struct vp_store_options *options)
{
	struct vp_buffer names = {0};
	size_t count = options->parts.count;

	for (size_t i = 0; i < count && i < NAMED_PARTS; i++)
		vp_buffer_printf(
		    &names, "%s%s (%.0f s)", i ? ", " : "", options->parts.at[i].path,
		    (double)(options->parts.at[i].window.to - options->parts.at[i].window.from) /
			SECOND);
	if (count > NAMED_PARTS)
		vp_buffer_printf(&names, " and %zu more ('vperf store' lists them)",
				 count - NAMED_PARTS);
	struct vp_error *error =
	    vp_error_new("that time is in %zu recordings, and this output is of one: name one in "
			 "place of --store, or choose a part of the time: %s",
			 count, vp_buffer_text(&names));
	vp_buffer_deinit(&names);
	return error;
}

static void take_only(struct vp_store_options *options, const char **time, const char **directory)
{
	const struct vp_recording_part *chosen = options->parts.at;

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
	VP_TRY(vp_store_options_parts(options->store, options->reads, time ? *time : NULL,
				      &options->parts));
	if (vp_store_options_has_several(options))
		*directory = options->parts.at[0].path;
	else
		take_only(options, time, directory);
	return NULL;
}

struct vp_error *vp_store_options_choose(struct vp_store_options *options,
					 const struct vp_texts *operands, const char *input,
					 const char *otherwise, const char **time,
					 const char **directory)
{
	VP_TRY(vp_store_options_choose_parts(options, operands, input, otherwise, time, directory));
	return vp_store_options_has_several(options) ? several_found(options) : NULL;
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
