/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/record_events.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/nearest.h"
#include "collect/programs/hypervisor.h"
#include "collect/tracefs/probe_definition.h"
#include "protocol/events_protocol.h"
#include "schema/trace_event.h"
#include "session/hypervisor_choice.h"

/* Length up to the next comma that is not within PMU/TERM,.../; a probe may contain commas. */
static size_t name_size(const char *text)
{
	bool in_pmu = false;
	size_t size = 0;

	if (vp_probe_is_definition(text))
		return strlen(text);
	for (; text[size] && (in_pmu || text[size] != ','); size++)
		in_pmu ^= text[size] == '/';
	return size;
}

/* The name after "SYSTEM:" if the hypervisor has events of that system; otherwise NULL. */
static const char *name_in_hypervisor(const char *name)
{
	const struct vp_hypervisor *here = vp_hypervisor_here();
	const char *system = here->events ? here->events()->system : "";
	size_t size = strlen(system);

	return size && !strncmp(name, system, size) && name[size] == ':' ? name + size + 1 : NULL;
}

static struct vp_error *record_events_add_name(struct vp_record_events *events, const char *name,
					       const char *filter)
{
	const char *in_hypervisor = name_in_hypervisor(name);

	if (in_hypervisor && filter)
		return vp_error_usage("option --filter: events of the hypervisor, such as '%s', "
				      "have none",
				      name);
	if (in_hypervisor) {
		vp_vec_push(&events->of_hypervisor, in_hypervisor);
		return NULL;
	}
	if (vp_tracepoints_is_name(name)) {
		vp_vec_push(&events->specs,
			    ((struct vp_tracepoint_spec){.name = name, .filter = filter}));
		return NULL;
	}
	if (filter)
		return vp_error_usage("option --filter: '%s' is not a tracepoint: expected "
				      "-e SYSTEM:EVENT before it",
				      name);
	if (events->trigger)
		return vp_error_usage("option --event: expected one event to sample on and any "
				      "number of tracepoints (SYSTEM:EVENT), not '%s' and '%s'",
				      events->trigger, name);
	events->trigger = name;
	return NULL;
}

struct vp_error *vp_record_events_choose(struct vp_record_events *events)
{
	for (size_t i = 0; i < events->words.count; i++) {
		const char *filter = i < events->filters.count ? events->filters.at[i] : NULL;
		const char *word = events->words.at[i];
		for (;;) {
			size_t size = name_size(word);
			vp_vec_push(&events->names, vp_strndup(word, size));
			VP_TRY(record_events_add_name(
			    events, events->names.at[events->names.count - 1], filter));
			if (!word[size])
				break;
			word += size + 1;
		}
	}
	return NULL;
}

void vp_record_events_add_sets(struct vp_record_events *events, unsigned sets)
{
	const char *name;

	for (size_t i = 0; (name = vp_trace_set_tracepoint(sets, i)); i++)
		vp_vec_push(&events->specs,
			    ((struct vp_tracepoint_spec){.name = name, .optional = true}));
}

static struct vp_error *no_guest_set(struct vp_slice word)
{
	struct vp_nearest nearest;
	const char *name;

	vp_nearest_init(&nearest, word);
	for (size_t i = 0; (name = vp_events_set_name(i)); i++)
		vp_nearest_add(&nearest, name);
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_error_usage("option --trace-guests: expected sched, irq, block, net, syscalls "
			      "and timer, separated by commas, not '%.*s'%s",
			      (int)word.size, word.bytes, near);
}

struct vp_error *vp_record_guest_sets_parse(const char *text, unsigned *sets)
{
	*sets = text[0] ? 0 : VP_EVENTS_SET_sched | VP_EVENTS_SET_irq;
	while (text[0]) {
		struct vp_slice word = {text, strcspn(text, ",")};
		unsigned bit = vp_events_set_named(word);
		if (!bit)
			return no_guest_set(word);
		*sets |= bit;
		text += word.size + (text[word.size] == ',');
	}
	return NULL;
}

void vp_record_events_deinit(struct vp_record_events *events)
{
	vp_vec_each (&events->names, name)
		free(*name);
	vp_vec_deinit(&events->names);
	vp_vec_deinit(&events->specs);
	vp_vec_deinit(&events->of_hypervisor);
	vp_vec_deinit(&events->words);
	vp_vec_deinit(&events->filters);
}
