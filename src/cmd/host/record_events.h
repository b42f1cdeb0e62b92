/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of `vperf record -e`: the sampling event, and tracepoints to record. */
#ifndef VP_CMD_HOST_RECORD_EVENTS_H
#define VP_CMD_HOST_RECORD_EVENTS_H

#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/options.h"
#include "collect/tracefs/tracepoints.h"

struct vp_record_events {
	struct vp_texts words,
	    filters; /* of -e and --filter: a filter has the index of its event */
	/* Parsed values. */
	const char *trigger; /* NULL: none was given */
	VP_VEC(struct vp_tracepoint_spec) specs;
	struct vp_texts of_hypervisor; /* names of its own events, without their system's */
	VP_VEC(char *) names;          /* that the above are of */
};

/* Adds the tracepoints of sets (enum vp_trace_set), as far as the kernel has them. */
void vp_record_events_add_sets(struct vp_record_events *events, unsigned sets);
/* Splits the words at commas and separates tracepoints from others. Errors: two events to sample
 * on, a filter that is not of a tracepoint. */
struct vp_error *vp_record_events_choose(struct vp_record_events *events) VP_MUST_CHECK;
/* Names of guests' sets (bits of enum vp_events_set), separated by commas; "": sched and irq. */
struct vp_error *vp_record_guest_sets_parse(const char *text, unsigned *sets) VP_MUST_CHECK;
void vp_record_events_deinit(struct vp_record_events *events);

#endif
