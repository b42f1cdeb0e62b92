/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_tracepoints.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "session/instrument.h"
#include "store/packet.h"
#include "store/trace_writer.h"

struct instrument {
	struct vp_instrument base;
	struct vp_instrument_tracepoints_options options;
	struct vp_tracepoints *tracepoints;
	uint64_t n_events;
};

static struct instrument *tracepoints_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

static void take_tracepoints(void *context, uint32_t pcpu, const struct vp_tracepoints_batch *batch)
{
	struct instrument *self = context;
	struct vp_trace_writer *writer = vp_session_trace(self->base.session);
	const struct vp_stream_id stream = {VP_STREAM_TRACEPOINTS, pcpu};
	struct vp_run run = {batch->bytes, batch->size, batch->n, batch->first, batch->last};

	self->n_events += batch->n_events;
	if (run.size <= VP_RUN_MAX)
		vp_trace_append_run(writer, stream, &run);
	else
		vp_trace_append_records(writer, stream, batch->bytes, batch->size);
}

static struct vp_error *tracepoints_open(struct vp_instrument *base, struct vp_services *services)
{
	struct instrument *self = tracepoints_of(base);
	const struct vp_tracepoints_options how = {.specs = self->options.specs,
						   .n_specs = self->options.n_specs,
						   .ring_bytes = self->options.ring_bytes,
						   .take = take_tracepoints,
						   .context = self};

	VP_TRY(vp_tracepoints_open(&how, &self->tracepoints));
	if (vp_tracepoints_missing(self->tracepoints))
		VP_NOTICE(base->session, "the trace is limited on this machine: %s",
			  vp_tracepoints_missing(self->tracepoints));
	if (vp_tracepoints_by_perf(self->tracepoints))
		VP_NOTICE(
		    base->session,
		    "tracepoints are recorded by perf's buffers, which cost more than ftrace's: "
		    "%s",
		    vp_tracepoints_by_perf(self->tracepoints));
	if (vp_tracepoints_leftover(self->tracepoints))
		VP_NOTICE(base->session,
			  "%u probes of a killed recorder were removed from the kernel",
			  vp_tracepoints_leftover(self->tracepoints));
	return NULL;
}

static struct vp_error *tracepoints_prepare(struct vp_instrument *base)
{
	return vp_tracepoints_define(tracepoints_of(base)->tracepoints,
				     vp_session_event_classes(base->session));
}

static struct vp_error *tracepoints_start(struct vp_instrument *base, uint64_t now)
{
	return vp_tracepoints_begin(tracepoints_of(base)->tracepoints);
}

static int tracepoints_fd(const struct vp_instrument *base)
{
	return vp_tracepoints_fd(tracepoints_of(base)->tracepoints);
}

static struct vp_error *tracepoints_drain(struct vp_instrument *base)
{
	return vp_tracepoints_drain(tracepoints_of(base)->tracepoints);
}

static struct vp_error *tracepoints_add_pcpu(struct vp_instrument *base, uint32_t pcpu)
{
	VP_TRY(vp_tracepoints_add_pcpu(tracepoints_of(base)->tracepoints, pcpu));
	vp_session_add_pcpu(base->session, pcpu, VP_STREAMS(VP_STREAM_TRACEPOINTS));
	return NULL;
}

static struct vp_error *tracepoints_stop(struct vp_instrument *base)
{
	return vp_tracepoints_end(tracepoints_of(base)->tracepoints);
}

static uint64_t tracepoints_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	const struct instrument *self = tracepoints_of(base);

	return self->tracepoints ? vp_tracepoints_lost(self->tracepoints, id.pcpu).events : 0;
}

static void instrument_tracepoints_say_lost(struct vp_instrument *base, uint32_t pcpu)
{
	struct vp_tracepoints_loss lost =
	    vp_tracepoints_lost(tracepoints_of(base)->tracepoints, pcpu);

	if (lost.events)
		VP_NOTICE(base->session,
			  "pCPU %" PRIu32 ": of %" PRIu64 " tracepoint events, %" PRIu64
			  " were lost, %" PRIu64 " of them because the buffer was full (-m)",
			  pcpu, lost.all, lost.events, lost.full);
}

static void tracepoints_conclude(struct vp_instrument *base)
{
	vp_vec_each (vp_session_pcpus(base->session), pcpu)
		instrument_tracepoints_say_lost(base, (uint32_t)*pcpu);
	vp_vec_each (vp_session_late_pcpus(base->session), late)
		instrument_tracepoints_say_lost(base, late->pcpu);
}

static void tracepoints_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " events of tracepoints, ",
			 tracepoints_of(base)->n_events);
}

static void tracepoints_free(struct vp_instrument *base)
{
	vp_tracepoints_free(tracepoints_of(base)->tracepoints);
	free(base);
}

struct vp_instrument *
vp_instrument_tracepoints(const struct vp_instrument_tracepoints_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "tracepoints",
	    .classes = VP_STREAMS(VP_STREAM_TRACEPOINTS),
	    .open = tracepoints_open,
	    .prepare = tracepoints_prepare,
	    .start = tracepoints_start,
	    .fd = tracepoints_fd,
	    .drain = tracepoints_drain,
	    .add_pcpu = tracepoints_add_pcpu,
	    .stop = tracepoints_stop,
	    .conclude = tracepoints_conclude,
	    .lost = tracepoints_lost,
	    .put_total = tracepoints_put_total,
	    .free = tracepoints_free,
	};
	struct instrument *self = vp_alloc(sizeof(*self));

	self->base.ops = &ops;
	self->options = *options;
	return &self->base;
}
