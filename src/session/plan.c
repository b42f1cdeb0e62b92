/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/plan.h"

#include <unistd.h>

enum {
	GUEST_FREQUENCY = 97,       /* if guests are sampled separately */
	INTERRUPTS_FREQUENCY = 997, /* … at interrupts, too, at no cost for guests */
	SAMPLE_PAGES = 512,
	INTERVAL_PAGES = 256,
	TRACE_PAGES = 1024,
	SECOND = 1000000000
};

/* Separate sampling pauses the guest, so the default frequency is lower. The host has the same
 * frequency, so that shares are comparable, unless a period is given. */
static uint64_t plan_frequency(const struct vp_plan_request *request, bool apart)
{
	if (!apart || request->frequency || request->period)
		return request->frequency;
	return request->at_interrupts ? INTERRUPTS_FREQUENCY : GUEST_FREQUENCY;
}

/* A hardware counter may also count in separately sampled guests; the clock does not. */
static const char *plan_trigger(const struct vp_plan_request *request, bool apart)
{
	return request->trigger || !apart ? request->trigger : "cpu-clock";
}

static size_t ring_bytes(size_t pages, size_t usual)
{
	return (pages ? pages : usual) * (size_t)getpagesize();
}

struct vp_plan vp_plan_make(const struct vp_plan_request *request,
			    const struct vp_hypervisor *hypervisor)
{
	const bool apart = hypervisor->guest_sampler != NULL;
	const uint64_t frequency = plan_frequency(request, apart);
	const uint64_t usual_ns = SECOND / GUEST_FREQUENCY;
	const uint64_t period_ns = SECOND / (frequency ? frequency : GUEST_FREQUENCY);

	return (struct vp_plan){
	    .trigger = {.event = plan_trigger(request, apart),
			.frequency = frequency,
			.period = request->period,
			.stagger = request->stagger},
	    .samples_guests_apart = apart,
	    .guest_period_ns = period_ns,
	    /* At interrupts, no polling is needed. */
	    .guest_poll_ns = request->at_interrupts && period_ns < usual_ns ? usual_ns : period_ns,
	    .samples_read_memory = !request->no_memory && !apart,
	    /* If VMs are not processes, events of the host's scheduler do not show their vCPUs. */
	    .states = request->states || (request->trace && !hypervisor->has_processes),
	    .sample_pages = request->pages ? request->pages : SAMPLE_PAGES,
	    .interval_bytes = ring_bytes(request->pages, INTERVAL_PAGES),
	    .trace_bytes = ring_bytes(request->pages, TRACE_PAGES)};
}
