/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_profile.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/identity.h"
#include "collect/programs/sampler.h"
#include "host/host.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/weighting.h"
#include "session/identity_user.h"
#include "session/instrument.h"
#include "session/instrument_profile_private.h"
#include "store/packet.h"
#include "store/recording.h"

#include <inttypes.h>

/* Minimum share of events without samples that is reported. */
#define MISSED_SHARE 0.02

static struct vp_profile_instrument *profile_of(const struct vp_instrument *instrument)
{
	return (struct vp_profile_instrument *)instrument;
}

static void note_low_frequency(const struct vp_profile_instrument *profile)
{
	uint64_t frequency = profile->trigger.frequency;

	if (!profile->options.trigger.frequency && frequency && frequency < VP_USUAL_FREQUENCY)
		VP_NOTICE(profile->base.session,
			  "sampling at %" PRIu64 " Hz instead of %d Hz: limited by the kernel "
			  "(kernel.perf_event_max_sample_rate)",
			  frequency, VP_USUAL_FREQUENCY);
}

static struct vp_error *profile_open(struct vp_instrument *instrument, struct vp_services *services)
{
	struct vp_profile_instrument *profile = profile_of(instrument);
	const struct vp_instrument_profile_options *options = &profile->options;

	VP_TRY(vp_trigger_open(&options->trigger, &profile->trigger));
	note_low_frequency(profile);
	if (profile->trigger.gives_way_to_vms)
		VP_NOTICE(instrument->session,
			  "sampling by cpu-clock instead of cycles: KVM passes the PMU to guests "
			  "(enable_mediated_pmu), and no VM could start while cycles are sampled");
	services->unwind_tables |= options->with_chains;
	if (profile->trigger.by_time || vp_host_vendor() == VP_VENDOR_ARM)
		vp_session_enable_exit_rip(instrument->session);
	struct vp_sampler_options sampling = {
	    .trigger = &profile->trigger,
	    .buffer_pages = options->buffer_pages,
	    .by_memory = options->read_memory,
	    .with_chains = options->with_chains,
	    .by_frame_pointers = options->by_frame_pointers,
	    .hits_no_guests = vp_session_hypervisor(instrument->session)->guest_sampler,
	    .exit_event = services->exit_event,
	    .kernel = vp_session_kernel_btf(instrument->session),
	    .take = vp_profile_ingest,
	    .context = profile};
	return vp_sampler_start(&sampling, &profile->sampler);
}

static void profile_describe(const struct vp_instrument *instrument, struct vp_recording *info)
{
	const struct vp_profile_instrument *profile = profile_of(instrument);

	free(info->trigger);
	info->trigger = vp_strdup(profile->trigger.name);
	info->period_ns = profile->trigger.period_ns;
	info->by_time = profile->trigger.by_time;
	info->weighting = profile->trigger.weighting;
	info->events = profile->trigger.events;
	info->chains = profile->options.with_chains;
	const struct vp_profile_targets *targets = profile->options.targets;
	info->selected |=
	    targets && (targets->pids.count || targets->tids.count || targets->pcpus.count);
}

static void instrument_profile_count_named(void *context, uint32_t pid,
					   const struct vp_guest_finding *finding,
					   struct vp_memory_outcome *ret)
{
	struct vp_identity_counts counts = vp_identity_counts(context, pid, finding);

	vp_memory_outcome_count(ret, VP_MEMORY_SAMPLES, counts.good, counts.failed);
}

static void profile_watch_guests(struct vp_instrument *instrument)
{
	struct vp_profile_instrument *profile = profile_of(instrument);
	const struct vp_guest_watch_client user = vp_identity_client(
	    vp_sampler_identity(profile->sampler), "samples", instrument_profile_count_named);

	if (profile->options.read_memory)
		vp_session_watch_guests(instrument->session, &user);
}

/* The event at that index was enabled: its clock ticks from now on. */
static void expect_ticks(struct vp_profile_instrument *profile, size_t index)
{
	const struct vp_trigger *trigger = &profile->trigger;

	if (trigger->by_time)
		vp_profile_stream(profile, (uint32_t)trigger->pcpus.at[index])->late_from =
		    trigger->enabled_at.at[index] + 2 * trigger->period_ns;
}

static struct vp_error *profile_start(struct vp_instrument *instrument, uint64_t now)
{
	struct vp_profile_instrument *profile = profile_of(instrument);

	VP_TRY(vp_trigger_enable(&profile->trigger, true));
	for (size_t index = 0; index < profile->trigger.pcpus.count; index++)
		expect_ticks(profile, index);
	return NULL;
}

/* Notes the losses so far: gaps in the next drain are filled only without losses. */
static void instrument_profile_note_losses(struct vp_profile_instrument *profile)
{
	vp_vec_each (&profile->trigger.pcpus, pcpu) {
		struct vp_profile_stream *stream = vp_profile_stream(profile, (uint32_t)*pcpu);
		uint64_t lost = vp_sampler_lost(profile->sampler, (uint32_t)*pcpu);
		stream->may_fill = lost == stream->lost;
		stream->lost = lost;
	}
}

static struct vp_error *profile_drain(struct vp_instrument *instrument)
{
	instrument_profile_note_losses(profile_of(instrument));
	return vp_sampler_drain(profile_of(instrument)->sampler);
}

static bool has_pcpu(const struct vp_pcpus *pcpus, uint32_t pcpu)
{
	vp_vec_each (pcpus, other)
		if (*other == (int)pcpu)
			return true;
	return false;
}

static struct vp_error *profile_add_pcpu(struct vp_instrument *instrument, uint32_t pcpu)
{
	struct vp_profile_instrument *profile = profile_of(instrument);
	size_t index;

	const struct vp_profile_targets *targets = profile->options.targets;
	if (targets && targets->pcpus.count && !has_pcpu(&targets->pcpus, pcpu))
		return NULL;
	VP_TRY(profile_drain(instrument)); /* earlier ticks belong to another clock */
	VP_TRY(vp_trigger_add(&profile->trigger, (int)pcpu, &index));
	VP_TRY(vp_sampler_add(profile->sampler, index));
	vp_session_add_pcpu(instrument->session, pcpu, VP_STREAMS(VP_STREAM_PCPU));
	VP_TRY(vp_trigger_enable_one(&profile->trigger, index));
	expect_ticks(profile, index);
	return NULL;
}

static int profile_fd(const struct vp_instrument *instrument)
{
	return vp_sampler_fd(profile_of(instrument)->sampler);
}

static struct vp_error *profile_stop(struct vp_instrument *instrument)
{
	return vp_trigger_enable(&profile_of(instrument)->trigger, false);
}

/* The kernel stops a counter that interrupts too often until its next tick, and there are no
 * samples meanwhile. If samples are weighted by time, that time belongs to the next sample. */
static struct vp_error *profile_finish(struct vp_instrument *instrument, uint64_t end)
{
	const struct vp_profile_instrument *profile = profile_of(instrument);
	struct vp_recording *info = vp_session_recording(instrument->session);
	uint64_t counted = vp_trigger_count(&profile->trigger);
	/* Events after the last sample of each pCPU are not lost. */
	uint64_t known = profile->events + profile->max_events * profile->trigger.fds.count;

	if (profile->trigger.weighting != VP_WEIGHTING_EVENTS ||
	    (double)known >= (1 - MISSED_SHARE) * (double)counted)
		return NULL;
	info->events_sampled = profile->events;
	info->events_counted = counted;
	VP_NOTICE(instrument->session,
		  "samples stand for %.1f%% of %" PRIu64
		  " '%s' events: the kernel throttled sampling, or samples were lost; a longer "
		  "period or a lower frequency avoids that",
		  100.0 * (double)profile->events / (double)counted, counted,
		  profile->trigger.name);
	return NULL;
}

static uint64_t profile_lost(const struct vp_instrument *instrument, struct vp_stream_id id)
{
	const struct vp_sampler *sampler = profile_of(instrument)->sampler;

	return sampler ? vp_sampler_lost(sampler, id.pcpu) : 0;
}

static void profile_put_total(const struct vp_instrument *instrument, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " samples, ", profile_of(instrument)->samples);
}

static void profile_free(struct vp_instrument *instrument)
{
	struct vp_profile_instrument *profile = profile_of(instrument);

	vp_sampler_free(profile->sampler);
	vp_trigger_close(&profile->trigger);
	vp_vec_deinit(&profile->streams);
	free(profile);
}

struct vp_instrument *vp_instrument_profile(const struct vp_instrument_profile_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "profile",
	    .classes = VP_STREAMS(VP_STREAM_PCPU),
	    .needs_names = true,
	    .open = profile_open,
	    .describe = profile_describe,
	    .watch_guests = profile_watch_guests,
	    .start = profile_start,
	    .fd = profile_fd,
	    .drain = profile_drain,
	    .add_pcpu = profile_add_pcpu,
	    .stop = profile_stop,
	    .finish = profile_finish,
	    .lost = profile_lost,
	    .put_total = profile_put_total,
	    .free = profile_free,
	};
	struct vp_profile_instrument *profile = vp_alloc(sizeof(*profile));

	profile->base.ops = &ops;
	profile->options = *options;
	return &profile->base;
}
