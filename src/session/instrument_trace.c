/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_trace.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/identity.h"
#include "collect/programs/tracer.h"
#include "schema/event_class.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/trace_event.h"
#include "schema/vm.h"
#include "session/admit.h"
#include "session/instrument.h"
#include "store/packet.h"
#include "store/trace_writer.h"

struct instrument {
	struct vp_instrument base;
	struct vp_instrument_trace_options options;
	struct vp_tracer *tracer;
	struct vp_admission admission;
	uint64_t n_events;
	VP_VEC(bool) has_stream; /* by pCPU */
};

static struct instrument *trace_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

static bool *has_stream_of(struct instrument *self, uint32_t pcpu)
{
	while (self->has_stream.count <= pcpu)
		vp_vec_push(&self->has_stream, false);
	return &self->has_stream.at[pcpu];
}

/* Collects records for a packet; their times continue from the previous run. */
static struct vp_run look_through(struct instrument *self, char *records, size_t size)
{
	struct vp_run run = {.bytes = records};

	while (run.size < size) {
		struct vp_record_header *header = (void *)(records + run.size);
		size_t length = vp_record_length(header);
		if (run.size + length > VP_RUN_MAX)
			break;
		self->n_events += header->id >= VP_ID_DEFINED;
		/* Names of threads come only from the memory of selected guests. */
		(void)vp_admit(self->base.session, &self->admission, header);
		if (header->time < run.last)
			header->time = run.last;
		if (!run.n++)
			run.first = header->time;
		run.last = header->time;
		run.size += length;
	}
	return run;
}

void vp_instrument_trace_ingest(void *instrument, uint32_t pcpu, char *records, size_t size)
{
	struct instrument *self = instrument;
	struct vp_session *session = self->base.session;

	if (pcpu >= self->has_stream.count || !self->has_stream.at[pcpu]) {
		*has_stream_of(self, pcpu) = true;
		vp_session_add_pcpu(session, pcpu, VP_STREAMS(VP_STREAM_TRACE));
	}
	while (size) {
		struct vp_run run = look_through(self, records, size);
		records += run.size;
		size -= run.size;
		vp_trace_append_run(vp_session_trace(session),
				    (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, &run);
	}
}

static struct vp_error *trace_open(struct vp_instrument *base, struct vp_services *services)
{
	struct instrument *self = trace_of(base);
	bool has_rip =
	    !(self->options.sets & VP_TRACE_SET_kvm) || vp_session_enable_exit_rip(base->session);
	const struct vp_tracer_options how = {.sets = self->options.sets,
					      .ring_bytes = self->options.ring_bytes,
					      .take = vp_instrument_trace_ingest,
					      .context = self,
					      .exit_event = services->exit_event,
					      .kernel = vp_session_kernel_btf(base->session)};

	VP_TRY(vp_tracer_open(&how, &self->tracer));
	if (!has_rip)
		VP_NOTICE(base->session, "VM exits have no guest_rip: the kernel has no event "
					 "'kvm:kvm_exit'");
	if (vp_tracer_missing(self->tracer))
		VP_NOTICE(base->session, "the trace is limited on this machine: %s",
			  vp_tracer_missing(self->tracer));
	return NULL;
}

/* Without it, names and guest switches are missing; the rest of the trace is recorded. */
static struct vp_error *trace_identify(void *context, uint32_t number,
				       const struct vp_guest_state *state,
				       const struct vp_guest_finding *finding)
{
	struct instrument *self = context;

	if (vp_tracer_can_see(finding))
		return vp_tracer_identify(self->tracer, number, state, finding);
	const struct vp_vm *vm = vp_vms_latest(vp_session_vms(self->base.session), state->pid);
	VP_NOTICE(self->base.session,
		  "VM '%s': guest thread switches are not recorded: the address of its kernel's "
		  "switch counter is unknown",
		  vm ? vm->name : "?");
	return NULL;
}

static void trace_forget(void *context, uint32_t pid)
{
	struct instrument *self = context;

	vp_tracer_forget(self->tracer, pid);
}

static uint64_t instrument_trace_count_nowhere(void *context, uint32_t pid,
					       const struct vp_guest_finding *finding)
{
	struct instrument *self = context;

	return vp_identity_counts(vp_tracer_identity(self->tracer), pid, finding).nowhere;
}

static struct vp_error *instrument_trace_change_memory(void *context, uint32_t number,
						       const struct vp_guest_state *state,
						       const struct vp_guest_finding *finding)
{
	struct instrument *self = context;

	return vp_identity_set_memory(vp_tracer_identity(self->tracer), number, state, finding);
}

static void instrument_trace_count_switches(void *context, uint32_t pid,
					    const struct vp_guest_finding *finding,
					    struct vp_memory_outcome *ret)
{
	struct instrument *self = context;
	struct vp_identity_counts counts =
	    vp_identity_counts(vp_tracer_identity(self->tracer), pid, finding);

	vp_memory_outcome_count(ret, VP_MEMORY_SWITCHES, counts.good, counts.failed);
}

static void trace_watch_guests(struct vp_instrument *base)
{
	struct instrument *self = trace_of(base);
	const struct vp_guest_watch_client user = {.context = self,
						   .name = "the trace",
						   .check_s = 1,
						   .identify = trace_identify,
						   .forget = trace_forget,
						   .count_nowhere = instrument_trace_count_nowhere,
						   .change_memory = instrument_trace_change_memory,
						   .outcome = instrument_trace_count_switches};

	if (self->options.sets & VP_TRACE_SET_guest)
		vp_session_watch_guests(base->session, &user);
}

static struct vp_error *trace_prepare(struct vp_instrument *base)
{
	vp_vec_each (vp_session_pcpus(base->session), pcpu)
		*has_stream_of(trace_of(base), (uint32_t)*pcpu) = true;
	return vp_trace_event_classes(vp_session_event_classes(base->session));
}

static struct vp_error *trace_start(struct vp_instrument *base, uint64_t now)
{
	vp_tracer_begin(trace_of(base)->tracer);
	return NULL;
}

static int trace_fd(const struct vp_instrument *base)
{
	return vp_tracer_fd(trace_of(base)->tracer);
}

static struct vp_error *trace_drain(struct vp_instrument *base)
{
	return vp_tracer_drain(trace_of(base)->tracer);
}

static struct vp_error *trace_stop(struct vp_instrument *base)
{
	vp_tracer_end(trace_of(base)->tracer);
	return NULL;
}

static void instrument_trace_say_lost(struct vp_instrument *base, uint32_t pcpu, const char *why)
{
	uint64_t lost = vp_tracer_lost(trace_of(base)->tracer, pcpu);

	if (lost)
		VP_NOTICE(base->session, "pCPU %u: %" PRIu64 " events were lost: %s", pcpu, lost,
			  why);
}

static void trace_conclude(struct vp_instrument *base)
{
	const struct instrument *self = trace_of(base);
	uint64_t missed = vp_tracer_missed(self->tracer);

	vp_vec_each (vp_session_pcpus(base->session), pcpu)
		instrument_trace_say_lost(base, (uint32_t)*pcpu, "its buffer was full");
	vp_vec_each (vp_session_late_pcpus(base->session), late)
		instrument_trace_say_lost(base, late->pcpu, "it had no buffer yet, or it was full");
	if (missed)
		VP_NOTICE(
		    base->session,
		    "%" PRIu64
		    " events missed: they came while the same BPF program was running (nmissed)",
		    missed);
}

static uint64_t trace_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	const struct instrument *self = trace_of(base);

	return self->tracer ? vp_tracer_lost(self->tracer, id.pcpu) : 0;
}

static void trace_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " events, ", trace_of(base)->n_events);
}

static void trace_free(struct vp_instrument *base)
{
	vp_tracer_free(trace_of(base)->tracer);
	vp_vec_deinit(&trace_of(base)->has_stream);
	free(base);
}

struct vp_instrument *vp_instrument_trace(const struct vp_instrument_trace_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "trace",
	    .classes = VP_STREAMS(VP_STREAM_TRACE),
	    .needs_names = true,
	    .open = trace_open,
	    .watch_guests = trace_watch_guests,
	    .prepare = trace_prepare,
	    .start = trace_start,
	    .fd = trace_fd,
	    .drain = trace_drain,
	    .stop = trace_stop,
	    .conclude = trace_conclude,
	    .lost = trace_lost,
	    .put_total = trace_put_total,
	    .free = trace_free,
	};
	struct instrument *self = vp_alloc(sizeof(*self));

	self->base.ops = &ops;
	self->options = *options;
	return &self->base;
}
