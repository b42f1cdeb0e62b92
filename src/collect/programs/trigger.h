/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event whose overflow takes a sample: a hardware counter, or the clock of each pCPU. */
#ifndef VP_COLLECT_PROGRAMS_TRIGGER_H
#define VP_COLLECT_PROGRAMS_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/weighting.h"

/* Hz, a prime: 1000 runs in lockstep with the ticks of guests and hosts, so samples may hit the
 * same few instructions each time. */
enum { VP_USUAL_FREQUENCY = 997 };

struct vp_trigger_options {
	const char *event; /* a counter's name (schema/event.h); NULL: the best there is */
	/*
	 * Samples per second and pCPU, or, in units of the event (ns for cpu-clock), the period.
	 * Both 0: VP_USUAL_FREQUENCY, or what the kernel allows, if that is less.
	 */
	uint64_t frequency, period;
	const struct vp_pcpus *pcpus; /* only these, which are online; NULL or none: all */
};

struct perf_event_attr;

struct vp_trigger {
	char *name;
	bool gives_way_to_vms; /* it is no hardware counter, since that would keep VMs from starting
				*/
	bool by_time;          /* ticks with wall time, idle or not */
	uint64_t frequency;    /* 0 for a fixed period */
	uint64_t period_ns; /* wanted time between samples; an estimate of 1 ms for a fixed count */
	enum vp_weighting weighting;
	uint64_t events; /* per sample, where that is fixed; else 0: each sample gives its own */
	struct perf_event_attr *attr;
	VP_VEC(int) fds; /* one event per pCPU of `pcpus`, disabled at first */
	VP_VEC(int) pcpus;
	VP_VEC(uint64_t)
	enabled_at; /* per event, just before: the clock ticks in periods from here */
};

/* Opens the event on every online pCPU, disabled. Errors: an unknown event, one that this machine
 * cannot sample on, a rate that the kernel does not allow, no permission. */
struct vp_error *vp_trigger_open(const struct vp_trigger_options *options,
				 struct vp_trigger *ret) VP_MUST_CHECK;
void vp_trigger_close(struct vp_trigger *trigger);
/* Opens the event, disabled, on a pCPU that came online: perf ends an event when its pCPU goes
 * offline, for good. *ret is its index in `fds`. */
struct vp_error *vp_trigger_add(struct vp_trigger *trigger, int pcpu, size_t *ret) VP_MUST_CHECK;
/* Enables or disables the events on all pCPUs. */
struct vp_error *vp_trigger_enable(struct vp_trigger *trigger, bool on) VP_MUST_CHECK;
/* Events so far on all pCPUs that are online, by perf's own count. */
uint64_t vp_trigger_count(const struct vp_trigger *trigger);
/* Enables that one event. */
struct vp_error *vp_trigger_enable_one(struct vp_trigger *trigger, size_t index) VP_MUST_CHECK;
/* Whether a hardware counter can be sampled on. */
bool vp_trigger_has_hardware(void);

#endif
