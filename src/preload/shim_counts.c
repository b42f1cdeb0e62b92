/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of events, from the host-provided counters of their threads. */
#include "preload/shim_counts.h"

#include <errno.h>
#include <stdlib.h>

#include "counters/set.h"

/* Sources of this process; protected by the lock of its events. */
static struct vp_shim_source *sources;

int vp_shim_source_get(pid_t tid, bool inherits, struct vp_shim_source **ret)
{
	for (*ret = sources; *ret; *ret = (*ret)->next)
		if ((*ret)->tid == tid && (*ret)->inherits == inherits) {
			(*ret)->users++;
			return 0;
		}
	struct vp_shim_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	if (vp_counters_lent_attach(tid, inherits, &source->lent, NULL)) {
		free(source);
		return -ENODEV;
	}
	source->tid = tid;
	source->inherits = inherits;
	source->users = 1;
	source->next = sources;
	sources = *ret = source;
	return 0;
}

void vp_shim_source_put(struct vp_shim_source *source)
{
	struct vp_shim_source **at = &sources;

	if (--source->users)
		return;
	while (*at != source)
		at = &(*at)->next;
	*at = source->next;
	vp_counters_lent_close(source->lent);
	free(source);
}

void vp_shim_reading_take(const struct vp_shim_source *source, struct vp_shim_reading *ret)
{
	*ret = (struct vp_shim_reading){.source = source};
	ret->is_good = !vp_counters_lent_read_state(source->lent, &ret->state);
	if (ret->is_good && source->inherits && ret->state.n_children)
		ret->is_good = !vp_counters_lent_children(source->lent, ret->children, &ret->live);
}

uint64_t vp_shim_reading_value(const struct vp_shim_reading *reading,
			       const struct vp_shim_event *event)
{
	return reading->state.counts[event->index] +
	       (event->inherits ? reading->children[event->index] : 0);
}

/* Updates the event's count and its start. */
static void update_count(struct vp_shim_event *event, const struct vp_shim_reading *reading,
			 bool begins)
{
	const struct vp_counters_lent_state *state = &reading->state;
	uint64_t now = vp_shim_reading_value(reading, event);

	if (event->waits_for_exec && state->executed) {
		event->waits_for_exec = false;
		event->is_on = begins = true;
	}
	if (begins) {
		event->since = state->at_exec[event->index] + event->children;
		/* Counts of earlier children are not kept. */
		event->is_lost |= event->inherits && state->children_at_exec != event->n_children;
	}
	if (event->is_on && event->leader->is_on)
		event->count += now - event->since;
	event->since = now;
}

void vp_shim_update_counts(struct vp_shim_event *leader)
{
	struct vp_shim_reading reading = {0};
	bool begins = false;

	for (struct vp_shim_event *event = leader; event; event = event->next) {
		if (vp_shim_is_kernels(event))
			continue;
		if (reading.source != event->source)
			vp_shim_reading_take(event->source, &reading);
		event->is_lost |= !reading.is_good;
		if (!reading.is_good)
			continue;
		if (leader->waits_for_exec && reading.state.executed) {
			leader->waits_for_exec = false;
			leader->is_on = begins = true;
		}
		update_count(event, &reading, begins);
	}
}
