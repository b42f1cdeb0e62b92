/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_hypervisor.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "store/packet.h"
#include "store/trace_writer.h"

struct instrument {
	struct vp_instrument base;
	const struct vp_hypervisor_events_ops *ops;
	struct vp_hypervisor_events *events;
	uint64_t n_events;
};

static const struct vp_stream_id stream = {VP_STREAM_HYPERVISOR, VP_NO_PCPU};

static struct instrument *hypervisor_instrument_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

static struct vp_error *instrument_hypervisor_events_open(struct vp_instrument *base,
							  struct vp_services *services)
{
	return NULL;
}

static struct vp_error *events_prepare(struct vp_instrument *base)
{
	return hypervisor_instrument_of(base)->ops->define(hypervisor_instrument_of(base)->events,
							   vp_session_event_classes(base->session));
}

static struct vp_error *events_drain(struct vp_instrument *base)
{
	struct instrument *self = hypervisor_instrument_of(base);
	struct vp_buffer *records = self->ops->take(self->events);

	self->n_events += vp_trace_append_records(vp_session_trace(base->session), stream,
						  records->bytes, records->size);
	return NULL;
}

static uint64_t instrument_hypervisor_events_lost(const struct vp_instrument *base,
						  struct vp_stream_id id)
{
	return hypervisor_instrument_of(base)->ops->lost(hypervisor_instrument_of(base)->events);
}

static void events_conclude(struct vp_instrument *base)
{
	uint64_t lost = instrument_hypervisor_events_lost(base, stream);

	if (lost)
		VP_NOTICE(base->session,
			  "%" PRIu64 " hypervisor events were lost: its buffers were full", lost);
}

static void events_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " events of the hypervisor, ",
			 hypervisor_instrument_of(base)->n_events);
}

static void instrument_hypervisor_events_free(struct vp_instrument *base)
{
	hypervisor_instrument_of(base)->ops->free(hypervisor_instrument_of(base)->events);
	free(base);
}

struct vp_instrument *vp_instrument_hypervisor(struct vp_hypervisor_events *events)
{
	static const struct vp_instrument_ops ops = {
	    .name = "hypervisor",
	    .classes = VP_STREAMS(VP_STREAM_HYPERVISOR),
	    .open = instrument_hypervisor_events_open,
	    .prepare = events_prepare,
	    .drain = events_drain,
	    .conclude = events_conclude,
	    .lost = instrument_hypervisor_events_lost,
	    .put_total = events_put_total,
	    .free = instrument_hypervisor_events_free,
	};
	struct instrument *self = vp_alloc(sizeof(*self));

	self->base.ops = &ops;
	self->ops = vp_hypervisor_here()->events();
	self->events = events;
	return &self->base;
}
