/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_guest_samples.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/guest_watch.h"
#include "schema/guest_sampling.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "session/admit.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/sample_counts.h"
#include "store/trace_writer.h"

struct instrument {
	struct vp_instrument base;
	struct vp_instrument_guest_samples_options options;
	const struct vp_guest_sampler_ops *ops;
	struct vp_guest_sampler *sampler;
	struct vp_admission admission;
	uint64_t samples;
};

static const struct vp_stream_id stream = {VP_STREAM_GUESTS, VP_NO_PCPU};

static struct instrument *guest_samples_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

bool vp_guest_samples_needed(void)
{
	return vp_hypervisor_here()->guest_sampler != NULL;
}

static struct vp_error *samples_open(struct vp_instrument *base, struct vp_services *services)
{
	struct instrument *self = guest_samples_of(base);
	const struct vp_guest_sampler_options options = {.period_ns = self->options.period_ns,
							 .poll_ns = self->options.poll_ns,
							 .interrupts = self->options.interrupts};

	self->ops = vp_session_hypervisor(base->session)->guest_sampler();
	VP_TRY(self->ops->open(&options, &self->sampler));
	services->guest_sampler = self->sampler;
	return NULL;
}

/* Without other samples, the recording's fields describe these. */
static void samples_describe(const struct vp_instrument *base, struct vp_recording *info)
{
	if (vp_recording_has_instrument(info, "profile"))
		return;
	info->period_ns = guest_samples_of(base)->options.period_ns;
}

static struct vp_error *samples_identify(void *context, uint32_t number,
					 const struct vp_guest_state *state,
					 const struct vp_guest_finding *finding)
{
	const struct instrument *self = context;

	return self->ops->identify(self->sampler, state, finding);
}

static void samples_forget(void *context, uint32_t pid)
{
	const struct instrument *self = context;

	self->ops->forget(self->sampler, pid);
}

static void samples_outcome(void *context, uint32_t pid, const struct vp_guest_finding *finding,
			    struct vp_memory_outcome *ret)
{
	const struct instrument *self = context;
	struct vp_guest_sampler_counts counts = self->ops->counts(self->sampler, pid);

	vp_memory_outcome_count(ret, VP_MEMORY_SAMPLES, counts.named, counts.unnamed);
}

static void samples_watch_guests(struct vp_instrument *base)
{
	const struct vp_guest_watch_client user = {.context = base,
						   .name = "samples",
						   .check_s = 1,
						   .identify = samples_identify,
						   .forget = samples_forget,
						   .outcome = samples_outcome};

	if (guest_samples_of(base)->options.read_memory)
		vp_session_watch_guests(base->session, &user);
}

static struct vp_error *samples_start(struct vp_instrument *base, uint64_t now)
{
	return guest_samples_of(base)->ops->begin(guest_samples_of(base)->sampler);
}

static void instrument_guest_samples_take(void *context, union vp_any_record *record)
{
	struct instrument *self = context;
	struct vp_session *session = self->base.session;

	self->samples += record->header.id == VP_ID_guest_sample;
	if (!vp_admit(session, &self->admission, record))
		return;
	vp_sample_counts_add(vp_session_sample_counts(session), record, 1);
	if (record->header.id == VP_ID_guest_task && vp_session_guest_watch(session) &&
	    record->guest_task.flags & VP_IN_USER)
		vp_guest_watch_note_task(vp_session_guest_watch(session), &record->guest_task);
	vp_trace_append(vp_session_trace(session), stream, record);
}

static struct vp_error *samples_drain(struct vp_instrument *base)
{
	struct instrument *self = guest_samples_of(base);

	self->ops->drain(self->sampler, instrument_guest_samples_take, self);
	return NULL;
}

static struct vp_error *samples_stop(struct vp_instrument *base)
{
	return guest_samples_of(base)->ops->end(guest_samples_of(base)->sampler);
}

/* Writes the cost of the samples to the recording. */
static struct vp_error *samples_finish(struct vp_instrument *base, uint64_t end)
{
	struct instrument *self = guest_samples_of(base);
	VP_TRY(samples_drain(base)); /* the accounting's last data */
	struct vp_recording *info = vp_session_recording(base->session);
	struct vp_guest_sampler_totals totals = self->ops->totals(self->sampler);
	if (totals.problem)
		VP_NOTICE(base->session, "samples of PV guests have no processes: %s",
			  totals.problem);
	static const uint32_t exits[] = {[VP_INTERRUPTS_NONE] = VP_GUEST_SAMPLING_NO_EXITS,
					 [VP_INTERRUPTS_EXITS] = VP_GUEST_SAMPLING_INTERRUPTS,
					 [VP_INTERRUPTS_COUNTERS] = VP_GUEST_SAMPLING_COUNTERS};
	info->guests =
	    (struct vp_guest_sampling){.method = self->ops->method,
				       .exits = exits[self->options.interrupts],
				       .period_ns = self->options.period_ns,
				       .duration_ns = end > info->start ? end - info->start : 0,
				       .contexts = totals.samples,
				       .pause_ns = totals.pause,
				       .max_pause_ns = totals.max_ns,
				       .unsampled_ns = totals.unsampled_ns,
				       .periods = self->samples,
				       .exit_periods = totals.exit_periods,
				       .unknown_periods = totals.unknown_periods,
				       .exit_samples = totals.exits,
				       .pcpus = totals.pcpus,
				       .own = totals.own,
				       .hypervisor = totals.hypervisor};
	return NULL;
}

static uint64_t samples_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	const struct instrument *self = guest_samples_of(base);

	return self->sampler ? self->ops->totals(self->sampler).lost : 0;
}

static void samples_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " samples of guests, ", guest_samples_of(base)->samples);
}

static void samples_free(struct vp_instrument *base)
{
	struct instrument *self = guest_samples_of(base);

	if (self->sampler)
		self->ops->free(self->sampler);
	free(self);
}

struct vp_instrument *
vp_instrument_guest_samples(const struct vp_instrument_guest_samples_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "guest-samples",
	    .classes = VP_STREAMS(VP_STREAM_GUESTS),
	    .needs_names = true,
	    .provides = VP_SERVICE_GUEST_SAMPLER,
	    .open = samples_open,
	    .describe = samples_describe,
	    .watch_guests = samples_watch_guests,
	    .start = samples_start,
	    .drain = samples_drain,
	    .stop = samples_stop,
	    .finish = samples_finish,
	    .lost = samples_lost,
	    .put_total = samples_put_total,
	    .free = samples_free,
	};
	struct instrument *self = vp_alloc(sizeof(*self));

	self->base.ops = &ops;
	self->options = *options;
	return &self->base;
}
