/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/instrument_trace.h"

#include <inttypes.h>

#include "collect/tracer.h"
#include "recording/instrument.h"

struct instrument {
	struct vp_instrument base;
	struct vp_instrument_trace_options options;
	struct vp_tracer *tracer;
	uint64_t n_events;
};

static struct instrument *trace_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

/* Code of VMs that were not asked for is not looked at. */
static void hide_place(struct vp_session *session, struct vp_trace_kvm_exit *exit)
{
	const struct vp_vm *vm =
	    session->options.n_vm_names ? vp_session_vm(session, exit->vm) : NULL;

	if (session->options.n_vm_names && (!vm || !vp_session_is_chosen(session, vm)))
		exit->guest_rip = 0;
}

static void see_vcpu(struct vp_session *session, const struct vp_trace_kvm_entry *entry)
{
	struct vp_vm *vm = vp_session_vm(session, entry->vm);

	if (vm && entry->vcpu != VP_VCPU_UNKNOWN)
		vp_session_vcpu(session, vm, entry->vcpu, entry->tid);
}

/* The programs know a VM by its process; it may be one that was not known. */
static void number_vm(struct vp_session *session, char *record)
{
	union {
		struct vp_record_header header;
		struct vp_trace_kvm_entry entry;
		struct vp_trace_kvm_exit exit;
		struct vp_trace_kvm_inj_virq injection;
	} *event = (void *)record;

	switch (event->header.id) {
	case VP_TRACE_ID_kvm_entry:
		event->entry.vm = vp_session_vm_id(session, event->entry.vm, event->entry.tid);
		see_vcpu(session, &event->entry);
		break;
	case VP_TRACE_ID_kvm_exit:
		event->exit.vm = vp_session_vm_id(session, event->exit.vm, event->exit.tid);
		hide_place(session, &event->exit);
		break;
	case VP_TRACE_ID_kvm_inj_virq:
		event->injection.vm =
		    vp_session_vm_id(session, event->injection.vm, event->injection.tid);
		break;
	}
}

void vp_instrument_trace_take(void *instrument, uint32_t pcpu, char *record, size_t size)
{
	struct instrument *own = instrument;
	const struct vp_record_header *header = (const void *)record;

	own->n_events += header->id >= VP_ID_DEFINED;
	number_vm(own->base.session, record);
	vp_trace_append(own->base.session->trace, (struct vp_stream_id){VP_STREAM_TRACE, pcpu},
			record);
}

static struct vp_error *trace_open(struct vp_instrument *base)
{
	struct instrument *own = trace_of(base);
	const struct vp_tracer_options how = {.sets = own->options.sets,
					      .ring_bytes = own->options.ring_bytes,
					      .take = vp_instrument_trace_take,
					      .context = own};

	bool knows_rip = !(how.sets & VP_TRACE_SET_kvm) || vp_session_knows_rip(base->session);
	VP_TRY(vp_tracer_open(&how, &own->tracer));
	if (!knows_rip)
		VP_NOTICE(base->session, "VM exits have no guest_rip: the kernel has no event "
					 "'kvm:kvm_exit'");
	if (vp_tracer_missing(own->tracer))
		VP_NOTICE(base->session, "the trace is limited on this machine: %s",
			  vp_tracer_missing(own->tracer));
	return NULL;
}

static struct vp_error *trace_prepare(struct vp_instrument *base)
{
	vp_event_classes classes = {0};
	struct vp_error *error = vp_trace_event_classes(&classes);

	if (!error)
		error = vp_trace_writer_define(base->session->trace, &classes);
	vp_event_classes_deinit(&classes);
	return error;
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

static void trace_conclude(struct vp_instrument *base)
{
	const struct instrument *own = trace_of(base);
	uint64_t untold = vp_tracer_untold(own->tracer);

	vp_vec_each (&base->session->pcpus, pcpu) {
		uint64_t lost = vp_tracer_lost(own->tracer, (uint32_t)*pcpu);
		if (lost)
			VP_NOTICE(base->session,
				  "pCPU %d: %" PRIu64 " events were lost: its buffer was full",
				  *pcpu, lost);
	}
	if (untold)
		VP_NOTICE(base->session,
			  "%" PRIu64 " events were not told by the kernel: the same event came "
			  "while one was being written",
			  untold);
}

static uint64_t trace_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	const struct instrument *own = trace_of(base);

	return own->tracer ? vp_tracer_lost(own->tracer, id.pcpu) : 0;
}

static void trace_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " events, ", trace_of(base)->n_events);
}

static void trace_free(struct vp_instrument *base)
{
	vp_tracer_free(trace_of(base)->tracer);
	free(base);
}

struct vp_instrument *vp_instrument_trace(const struct vp_instrument_trace_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "trace",
	    .classes = VP_STREAMS(VP_STREAM_TRACE),
	    .needs_names = true,
	    .open = trace_open,
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
	struct instrument *own = vp_alloc(sizeof(*own));

	own->base.ops = &ops;
	own->options = *options;
	return &own->base;
}
