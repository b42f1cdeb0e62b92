/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perf_choice.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "import/perf/perfdata_record.h"

enum { MAX_LISTED = 50 };
#define MODIFIERS ":ukhpPGHSDIWe"

static bool perf_choice_is_chosen(const struct vp_perf_choice *choice,
				  const struct vp_perfdata_attr *attr)
{
	return choice->chosen.at[attr - choice->file->events.attrs.at];
}

/* "cycles" also matches "cycles:ppp" and cpu_core/cycles/, and vice versa. */
static bool perf_choice_is_called(const struct vp_perfdata *file,
				  const struct vp_perfdata_attr *attr, const char *wanted)
{
	VP_AUTO_FREE char *name = vp_perfdata_event_name(file, attr);
	VP_AUTO_FREE char *hybrid = vp_perfdata_hybrid_name(file, attr);
	size_t size = strlen(wanted);
	const char *modifiers = strrchr(wanted, ':');

	/* perf adds modifiers to names that are not in the file. */
	if (modifiers && !attr->name.size && !modifiers[strspn(modifiers, MODIFIERS)] &&
	    strlen(name) == (size_t)(modifiers - wanted) && !strncmp(name, wanted, strlen(name)))
		return true;
	return !strcmp(name, wanted) || (hybrid && !strcmp(hybrid, wanted)) ||
	       (!strncmp(name, wanted, size) && name[size] == ':') ||
	       (hybrid && !strncmp(hybrid, wanted, size) && hybrid[size] == ':');
}

/* Whether an event has exactly this name: then no other one matches. */
static bool has_exactly(const struct vp_perfdata *file, const char *wanted)
{
	bool found = false;

	vp_vec_each (&file->events.attrs, attr) {
		VP_AUTO_FREE char *name = vp_perfdata_event_name(file, attr);
		found |= !strcmp(name, wanted);
	}
	return found;
}

static void choose_named(struct vp_perf_choice *choice, const char *wanted)
{
	const struct vp_perfdata *file = choice->file;
	bool exactly = has_exactly(file, wanted);

	for (size_t i = 0; i < file->events.attrs.count; i++) {
		const struct vp_perfdata_attr *attr = &file->events.attrs.at[i];
		VP_AUTO_FREE char *name = vp_perfdata_event_name(file, attr);
		choice->chosen.at[i] =
		    attr->samples &&
		    (exactly ? !strcmp(name, wanted) : perf_choice_is_called(file, attr, wanted));
	}
}

/* Chooses the first event with samples, and the same event of other core types. */
static void perf_choice_choose_first(struct vp_perf_choice *choice)
{
	const struct vp_perfdata *file = choice->file;
	const struct vp_perfdata_attr *first = NULL;

	vp_vec_each (&file->events.attrs, attr)
		if (!first && attr->samples && attr->type != PERF_TYPE_TRACEPOINT)
			first = attr;
	if (!first)
		return;
	VP_AUTO_FREE char *hybrid = vp_perfdata_hybrid_name(file, first);
	for (size_t i = 0; i < file->events.attrs.count; i++) {
		const struct vp_perfdata_attr *attr = &file->events.attrs.at[i];
		VP_AUTO_FREE char *its = hybrid ? vp_perfdata_hybrid_name(file, attr) : NULL;
		bool is_other_core = attr->type != first->type || attr->config != first->config;
		choice->chosen.at[i] = attr == first || (attr->samples && its && is_other_core &&
							 !strcmp(its, hybrid));
	}
}

static bool is_clock(const struct vp_perfdata_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Describes it, without the PMU's name if there are several. */
static void perf_choice_describe(struct vp_perf_choice *choice)
{
	const struct vp_perfdata *file = choice->file;
	const struct vp_perfdata_attr *first = NULL;
	size_t count = 0;

	choice->is_clock = true;
	for (size_t i = 0; i < choice->chosen.count; i++) {
		const struct vp_perfdata_attr *attr = &file->events.attrs.at[i];
		if (!choice->chosen.at[i])
			continue;
		choice->is_clock &= is_clock(attr);
		first = first ? first : attr;
		count++;
	}
	if (!first)
		return;
	char *hybrid = count > 1 ? vp_perfdata_hybrid_name(file, first) : NULL;
	choice->name = hybrid ? hybrid : vp_perfdata_event_name(file, first);
}

/* "cycles (20 samples), …" */
static void perf_choice_list_events(const struct vp_perf_choice *choice, bool chosen_too,
				    struct vp_buffer *out)
{
	size_t listed = 0;

	vp_vec_each (&choice->file->events.attrs, attr) {
		if (!attr->samples || (!chosen_too && perf_choice_is_chosen(choice, attr)))
			continue;
		VP_AUTO_FREE char *name = vp_perfdata_event_name(choice->file, attr);
		if (listed++ == MAX_LISTED) {
			vp_buffer_string(out, ", …");
			return;
		}
		vp_buffer_printf(out, "%s%s (%" PRIu64 " samples)", listed > 1 ? ", " : "", name,
				 attr->samples);
	}
}

struct vp_error *vp_perf_choice_make(const struct vp_perfdata *file, const char *name,
				     struct vp_perf_choice *ret)
{
	struct vp_buffer events = {0};

	*ret = (struct vp_perf_choice){.file = file};
	for (size_t i = 0; i < file->events.attrs.count; i++)
		vp_vec_push(&ret->chosen, (uint8_t)0);
	if (name)
		choose_named(ret, name);
	else
		perf_choice_choose_first(ret);
	perf_choice_describe(ret);
	if (!name || ret->name)
		return NULL;
	perf_choice_list_events(ret, true, &events);
	struct vp_error *error =
	    vp_error_new("option --event: '%s' has no samples of event '%s'; it has: %s",
			 file->source, name, events.size ? vp_buffer_text(&events) : "none");
	vp_buffer_deinit(&events);
	return error;
}

void vp_perf_choice_rewind(struct vp_perf_choice *choice)
{
	vp_map_deinit(&choice->index_of_id);
	choice->values.count = 0;
}

bool vp_perf_choice_has(const struct vp_perf_choice *choice,
			const struct vp_perfdata_record *record)
{
	return choice->name && (record->value_size || perf_choice_is_chosen(choice, record->attr));
}

/* Increase of the event's count since its value was last read. */
static uint64_t since_last(struct vp_perf_choice *choice, uint64_t id, uint64_t value)
{
	bool inserted;
	uint32_t index =
	    *vp_map_insert(&choice->index_of_id, id, (uint32_t)choice->values.count, &inserted);

	if (inserted)
		vp_vec_push(&choice->values, (uint64_t)0);
	uint64_t before = choice->values.at[index];
	choice->values.at[index] = value;
	return value - before;
}

/* A sample of a group has a value for each event of the group. */
static bool next_value(struct vp_perf_choice *choice, const struct vp_perfdata_record *record,
		       size_t *from, uint64_t *period)
{
	while (record->values.size - *from >= record->value_size) {
		const struct vp_slice rest = {record->values.bytes + *from, record->value_size};
		struct vp_cursor cursor = vp_perfdata_cursor(record, rest);
		uint64_t value = vp_cursor_u64(&cursor), id = vp_cursor_u64(&cursor);
		const uint32_t *attr = vp_map_find(&choice->file->events.attr_of_id, id);
		*from += record->value_size;
		if (!attr || !choice->chosen.at[*attr])
			continue;
		*period = since_last(choice, id, value);
		if (*period)
			return true;
	}
	return false;
}

bool vp_perf_choice_next(struct vp_perf_choice *choice, const struct vp_perfdata_record *record,
			 size_t *from, uint64_t *period)
{
	if (record->values.size && record->value_size)
		return next_value(choice, record, from, period);
	*period = record->period;
	return !(*from)++ && perf_choice_is_chosen(choice, record->attr);
}

char *vp_perf_choice_others(const struct vp_perf_choice *choice)
{
	struct vp_buffer events = {0};
	uint64_t samples = 0;
	char *text = NULL;

	vp_vec_each (&choice->file->events.attrs, attr)
		if (attr->type != PERF_TYPE_TRACEPOINT && !perf_choice_is_chosen(choice, attr))
			samples += attr->samples;
	perf_choice_list_events(choice, false, &events);
	if (samples)
		text = vp_format("%" PRIu64
				 " samples of other events were left out: a recording has samples "
				 "of one event. Choose it by 'vperf import --event NAME': %s",
				 samples, vp_buffer_text(&events));
	vp_buffer_deinit(&events);
	return text;
}
