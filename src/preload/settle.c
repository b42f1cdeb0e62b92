/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of events, from the host-provided counters of their threads. */
#include "preload/settle.h"

#include <errno.h>
#include <stdlib.h>

#include "counters/set.h"

/* A program's, under the lock of its events. */
static struct vp_shim_source *sources;

int vp_shim_source_get(pid_t tid, bool adopts, struct vp_shim_source **ret)
{
	for (*ret = sources; *ret; *ret = (*ret)->next)
		if ((*ret)->tid == tid && (*ret)->adopts == adopts) {
			(*ret)->users++;
			return 0;
		}
	struct vp_shim_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	if (vp_counters_lent_attach(tid, adopts, &source->lent, NULL)) {
		free(source);
		return -ENODEV;
	}
	source->tid = tid;
	source->adopts = adopts;
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

void vp_shim_sight_take(const struct vp_shim_source *source, struct vp_shim_sight *ret)
{
	*ret = (struct vp_shim_sight){.source = source};
	ret->is_good = !vp_counters_lent_look(source->lent, &ret->state);
	if (ret->is_good && source->adopts && ret->state.made)
		ret->is_good = !vp_counters_lent_family(source->lent, ret->family, &ret->live);
}

uint64_t vp_shim_sight_shows(const struct vp_shim_sight *sight, const struct vp_shim_event *event)
{
	return sight->state.counts[event->place] +
	       (event->inherits ? sight->family[event->place] : 0);
}

/* The part of these that an event counted, and its start. */
static void settle_one(struct vp_shim_event *event, const struct vp_shim_sight *sight, bool begins)
{
	const struct vp_counters_lent_state *state = &sight->state;
	uint64_t now = vp_shim_sight_shows(sight, event);

	if (event->waits_for_exec && state->executed) {
		event->waits_for_exec = false;
		event->is_on = begins = true;
	}
	if (begins) {
		event->since = state->at_exec[event->place] + event->family;
		/* Counts of earlier children are not kept. */
		event->is_lost |= event->inherits && state->made_at_exec != event->made;
	}
	if (event->is_on && event->leader->is_on)
		event->count += now - event->since;
	event->since = now;
}

void vp_shim_settle(struct vp_shim_event *leader)
{
	struct vp_shim_sight sight = {0};
	bool begins = false;

	for (struct vp_shim_event *event = leader; event; event = event->next) {
		if (vp_shim_is_kernels(event))
			continue;
		if (sight.source != event->source)
			vp_shim_sight_take(event->source, &sight);
		event->is_lost |= !sight.is_good;
		if (!sight.is_good)
			continue;
		if (leader->waits_for_exec && sight.state.executed) {
			leader->waits_for_exec = false;
			leader->is_on = begins = true;
		}
		settle_one(event, &sight, begins);
	}
}
