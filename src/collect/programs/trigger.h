/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampling event: a hardware counter, or the clock of each pCPU. */
#ifndef VP_COLLECT_PROGRAMS_TRIGGER_H
#define VP_COLLECT_PROGRAMS_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/weighting.h"

/* Hz, a prime: at 1000 Hz, samples would run in lockstep with timer ticks of guests and hosts, and
 * could hit the same few instructions each time. */
enum { VP_USUAL_FREQUENCY = 997 };

struct vp_trigger_options {
	const char *event; /* event name (schema/event.h); NULL: the best available */
	/* Samples per second and pCPU, or the period in units of the event (ns for cpu-clock). Both
	 * 0: VP_USUAL_FREQUENCY, or the kernel's limit if lower. */
	uint64_t frequency, period;
	const struct vp_pcpus *pcpus; /* only these, which are online; NULL or empty: all */
	/* Ticks of each pCPU's clock are at an own offset, derived from this host's identity.
	 * Hardware counters have no such offset. */
	bool stagger;
};

struct perf_event_attr;

struct vp_trigger {
	char *name;
	bool gives_way_to_vms; /* not a hardware counter: it would prevent VMs from starting */
	bool by_time;          /* ticks with wall time, idle or not */
	bool stagger;          /* each pCPU at its own offset */
	uint64_t frequency;    /* 0 for a fixed period */
	uint64_t period_ns;    /* requested time between samples; 1 ms for a fixed count */
	enum vp_weighting weighting;
	uint64_t events; /* events per sample, if fixed; 0: each sample has its own */
	struct perf_event_attr *attr;
	VP_VEC(int) fds; /* one event per pCPU of `pcpus`; disabled at first */
	VP_VEC(int) pcpus;
	VP_VEC(uint64_t)
	enabled_at; /* per event: time just before it was enabled; a clock's periods start then */
};

/* Opens the event on every online pCPU, disabled. Errors: an unknown event, or one that cannot be
 * sampled here; a rate above the kernel's limit; no permission. */
struct vp_error *vp_trigger_open(const struct vp_trigger_options *options,
				 struct vp_trigger *ret) VP_MUST_CHECK;
void vp_trigger_close(struct vp_trigger *trigger);
/* Opens the event, disabled, on a pCPU that came online: perf's events of a pCPU end when it goes
 * offline. *ret: its index in `fds`. */
struct vp_error *vp_trigger_add(struct vp_trigger *trigger, int pcpu, size_t *ret) VP_MUST_CHECK;
/* Enables or disables the events on all pCPUs; staggered ones within two periods. */
struct vp_error *vp_trigger_enable(struct vp_trigger *trigger, bool on) VP_MUST_CHECK;
/* Total of events so far on all online pCPUs, from perf. */
uint64_t vp_trigger_count(const struct vp_trigger *trigger);
/* Enables one event. */
struct vp_error *vp_trigger_enable_one(struct vp_trigger *trigger, size_t index) VP_MUST_CHECK;
/* Whether a hardware counter can be used for sampling. */
bool vp_trigger_has_hardware(void);

#endif
