/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/event_options.h"

#include <string.h>

#include "analyze/common/recording_parts.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"

static struct vp_error *event_options_choose_cpus(struct vp_event_options *options)
{
	if (!options->cpus)
		return NULL;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_pcpus_parse(options->cpus, "option --cpu", &options->pcpus);
	if (error || !options->pcpus.count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'",
		    options->cpus);
	return NULL;
}

struct vp_error *vp_event_options_check(struct vp_event_options *options)
{
	VP_TRY(event_options_choose_cpus(options));
	VP_TRY((options->joins ? vp_store_options_choose_parts : vp_store_options_choose)(
	    &options->store, &options->operands, options->input, "vperf.data", &options->time,
	    &options->directory));
	if (options->joins && vp_store_options_has_several(&options->store))
		return NULL;
	VP_TRY(vp_clock_option_parse(options->clock_form, options->directory, &options->clock));
	return vp_time_option_parse(options->time, options->directory, &options->from,
				    &options->to);
}

static bool event_options_is_joined(const struct vp_event_options *options)
{
	return options->joins && vp_store_options_has_several(&options->store);
}

size_t vp_event_options_count(const struct vp_event_options *options)
{
	return event_options_is_joined(options) ? options->store.parts.count : 1;
}

/* Times after the start count from the start of the first recording. */
static void set_first_start(struct vp_event_options *options, size_t index)
{
	struct vp_clock_text *clock = &options->clock;

	if (!index) {
		options->first_start = clock->start;
		options->first_offset = clock->realtime_offset;
	}
	clock->start = options->first_start;
	if (options->store.parts.at[index].boot != options->store.parts.at[0].boot)
		clock->start += (uint64_t)(options->first_offset - clock->realtime_offset);
}

struct vp_error *vp_event_options_part(struct vp_event_options *options, size_t index)
{
	const struct vp_recording_part *part;

	if (!event_options_is_joined(options))
		return NULL;
	part = &options->store.parts.at[index];
	options->directory = part->path;
	options->from = part->window.from;
	options->to = part->window.to;
	VP_TRY(vp_clock_option_parse(options->clock_form, options->directory, &options->clock));
	set_first_start(options, index);
	/* The end of a window is within it: an event at that time is read once. */
	if (index && part[-1].boot == part->boot && part[-1].window.to == part->window.from)
		options->from++;
	return NULL;
}

void vp_event_options_note_boots(const struct vp_event_options *options, vp_sentences *notes)
{
	const vp_recording_parts *parts = &options->store.parts;

	if (options->clock.form == VP_CLOCK_FORM_HOST && parts->at[parts->count - 1].boot)
		vp_vec_push(notes, vp_strdup("times are those of the host's clock, which starts "
					     "again when the host does: --clock rfc3339 prints "
					     "dates"));
}

struct vp_error *vp_event_options_each(struct vp_event_options *options,
				       struct vp_error *(*one)(void *context, vp_sentences *notes),
				       void *context, vp_sentences *notes)
{
	size_t count = vp_event_options_count(options);
	struct vp_part_notes all = {0};
	struct vp_error *error = NULL, *first = NULL;

	if (count == 1)
		return one(context, notes);
	for (size_t i = 0; i < count && !error; i++) {
		vp_sentences own = {0};
		error = vp_event_options_part(options, i);
		struct vp_error *unread = error ? NULL : one(context, &own);
		if (unread && vp_error_kind(unread) == VP_ERROR_USAGE)
			error = VP_TAKE(unread);
		if (unread) {
			vp_part_notes_take(&all,
					   vp_format("'%s' is left out: %s", options->directory,
						     vp_error_message(unread)));
			first = first ? (vp_error_free(unread), first) : unread;
		} else if (!error) {
			vp_part_notes_add(&all, options->directory, &own);
		}
		vp_event_notes_deinit(&own);
	}
	if (!error && !all.parts)
		error = VP_TAKE(first);
	vp_error_free(first);
	vp_recording_parts_note(&options->store.parts, notes);
	vp_event_options_note_boots(options, notes);
	vp_part_notes_finish(&all, notes);
	return error;
}

void vp_event_notes_add(vp_sentences *notes, const vp_sentences *from)
{
	vp_vec_each (from, note) {
		bool is_known = false;
		vp_vec_each (notes, known)
			is_known |= !strcmp(*known, *note);
		if (!is_known)
			vp_vec_push(notes, vp_strdup(*note));
	}
}

void vp_event_notes_say(const char *verb, const vp_sentences *notes)
{
	vp_vec_each (notes, note)
		vp_verb_say(verb, *note);
}

void vp_event_notes_deinit(vp_sentences *notes)
{
	vp_vec_each (notes, note)
		free(*note);
	vp_vec_deinit(notes);
}

void vp_event_options_deinit(struct vp_event_options *options)
{
	vp_vec_deinit(&options->pcpus);
	vp_store_options_deinit(&options->store);
}
