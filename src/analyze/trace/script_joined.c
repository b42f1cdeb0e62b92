/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/script_joined.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/vec.h"

/* A part of which the next event is known. */
struct active {
	size_t part;
	struct vp_script *script;
	const struct vp_script_event *event; /* NULL: the last event was returned */
};

struct vp_script_joined {
	const vp_recording_parts *parts;
	struct vp_script_options options;
	bool *unusable; /* by part */
	struct vp_intern columns;
	size_t next; /* part to open */
	VP_VEC(struct active) active;
	bool returned;                /* an event, … */
	size_t last;                  /* … of that one of `active` */
	struct vp_script_event event; /* the returned one, with its own fields */
	struct vp_part_notes notes;
};

/* An event at the end of the previous part was read with that. */
static struct vp_script_options script_joined_options(const struct vp_script_joined *joined,
						      size_t index)
{
	const struct vp_recording_part *part = &joined->parts->at[index];
	struct vp_script_options options = joined->options;

	options.from = part->window.from;
	options.to = part->window.to;
	for (size_t i = 0; i < index; i++) {
		const struct vp_recording_part *other = &joined->parts->at[i];
		if (other->boot == part->boot && other->window.to == part->window.from)
			options.from = part->window.from + 1;
	}
	return options;
}

static struct vp_error *script_joined_add_columns(struct vp_script_joined *joined, size_t part)
{
	const struct vp_script_options options = script_joined_options(joined, part);
	struct vp_script *script;

	VP_TRY(vp_script_open(joined->parts->at[part].path, &options, &script));
	vp_vec_each (&vp_script_columns(script)->strings, name)
		vp_intern_string(&joined->columns, *name);
	vp_script_close(script);
	return NULL;
}

/* Each part is opened and closed once: the columns must be known before the first event. */
static struct vp_error *script_joined_open_all(struct vp_script_joined *joined)
{
	struct vp_error *first = NULL;
	size_t unusable = 0, count = joined->parts->count;

	for (size_t i = 0; i < count; i++) {
		struct vp_error *error = script_joined_add_columns(joined, i);
		if (!error)
			continue;
		joined->unusable[i] = true;
		unusable++;
		vp_part_notes_take(&joined->notes,
				   vp_format("'%s' is left out: %s", joined->parts->at[i].path,
					     vp_error_message(error)));
		if (first)
			vp_error_free(error);
		else
			first = error;
	}
	if (unusable == count)
		return first;
	vp_error_free(first);
	return NULL;
}

struct vp_error *vp_script_joined_open(const vp_recording_parts *parts,
				       const struct vp_script_options *options,
				       struct vp_script_joined **ret)
{
	struct vp_script_joined *joined = vp_alloc(sizeof(*joined));

	joined->parts = parts;
	joined->options = *options;
	joined->unusable = vp_alloc(parts->count + 1);
	struct vp_error *error = script_joined_open_all(joined);
	if (error)
		vp_script_joined_close(joined);
	else
		*ret = joined;
	return error;
}

void vp_script_joined_close(struct vp_script_joined *joined)
{
	vp_sentences unsaid = {0};

	vp_vec_each (&joined->active, active)
		vp_script_close(active->script);
	vp_vec_deinit(&joined->active);
	vp_vec_deinit(&joined->event.fields);
	vp_intern_deinit(&joined->columns);
	vp_part_notes_finish(&joined->notes, &unsaid);
	vp_vec_each (&unsaid, note)
		free(*note);
	vp_vec_deinit(&unsaid);
	free(joined->unusable);
	free(joined);
}

/* The active part with the earliest event; NULL: none. */
static struct active *script_joined_first(struct vp_script_joined *joined)
{
	struct active *first = NULL;

	vp_vec_each (&joined->active, active)
		if (!first || active->event->time < first->event->time)
			first = active;
	return first;
}

static void script_joined_end(struct vp_script_joined *joined, size_t index)
{
	struct active *active = &joined->active.at[index];

	vp_part_notes_add(&joined->notes, joined->parts->at[active->part].path,
			  vp_script_notes(active->script));
	vp_script_close(active->script);
	*active = joined->active.at[--joined->active.count];
}

/* Reads the part's next event; at its end, it is closed. */
static void script_joined_advance(struct vp_script_joined *joined, size_t index)
{
	struct active *active = &joined->active.at[index];

	active->event = vp_script_next(active->script);
	if (!active->event)
		script_joined_end(joined, index);
}

static void script_joined_start(struct vp_script_joined *joined, size_t part)
{
	const struct vp_script_options options = script_joined_options(joined, part);
	struct active active = {.part = part};
	VP_AUTO_ERROR struct vp_error *error =
	    joined->unusable[part]
		? NULL
		: vp_script_open(joined->parts->at[part].path, &options, &active.script);

	if (!active.script)
		return; /* it was removed meanwhile */
	vp_vec_push(&joined->active, active);
	script_joined_advance(joined, joined->active.count - 1);
}

/* Whether the next part may have an event before that of `first`. */
static bool script_joined_is_due(const struct vp_script_joined *joined, const struct active *first)
{
	const struct vp_recording_part *next;

	if (joined->next == joined->parts->count)
		return false;
	next = &joined->parts->at[joined->next];
	return !first || (next->boot == joined->parts->at[first->part].boot &&
			  next->window.from <= first->event->time);
}

static void script_joined_take(struct vp_script_joined *joined, const struct active *active)
{
	const struct vp_intern *columns = vp_script_columns(active->script);
	__typeof__(joined->event.fields) own = joined->event.fields;

	own.count = 0;
	vp_vec_each (&active->event->fields, field) {
		struct vp_script_field *copy = vp_vec_push_slot(&own);
		*copy = *field;
		copy->column =
		    vp_intern_string(&joined->columns, vp_intern_text(columns, field->column));
	}
	joined->event = *active->event;
	joined->event.fields = own;
}

const struct vp_script_event *vp_script_joined_next(struct vp_script_joined *joined, size_t *part)
{
	struct active *first;

	if (joined->returned)
		script_joined_advance(joined, joined->last);
	joined->returned = false;
	first = script_joined_first(joined);
	while (script_joined_is_due(joined, first)) {
		script_joined_start(joined, joined->next++);
		first = script_joined_first(joined);
	}
	if (!first)
		return NULL;
	script_joined_take(joined, first);
	joined->returned = true;
	joined->last = (size_t)(first - joined->active.at);
	*part = first->part;
	return &joined->event;
}

const struct vp_intern *vp_script_joined_columns(const struct vp_script_joined *joined)
{
	return &joined->columns;
}

void vp_script_joined_notes(struct vp_script_joined *joined, vp_sentences *notes)
{
	vp_recording_parts_note(joined->parts, notes);
	vp_part_notes_finish(&joined->notes, notes);
}
