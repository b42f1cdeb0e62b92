/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options -e and --filter of 'vperf record': the sampling event, and tracepoints. */
#ifndef VP_CMD_HOST_RECORD_EVENTS_H
#define VP_CMD_HOST_RECORD_EVENTS_H

#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/options.h"
#include "collect/tracefs/tracepoints.h"

struct vp_record_events {
	struct vp_texts words,
	    filters; /* of -e and --filter: a filter is at the index of its event */
	/* Parsed values. */
	const char *trigger; /* NULL: not given */
	VP_VEC(struct vp_tracepoint_spec) specs;
	struct vp_texts of_hypervisor; /* names of the hypervisor's events, without their system */
	VP_VEC(char *) names;          /* owner of these names */
};

/* Adds the tracepoints of sets (enum vp_trace_set) that the kernel has. */
void vp_record_events_add_sets(struct vp_record_events *events, unsigned sets);
/* Splits the words at commas and classifies them. Errors: two sampling events, a filter for an
 * event that is not a tracepoint. */
struct vp_error *vp_record_events_choose(struct vp_record_events *events) VP_MUST_CHECK;
/* Parses names of guest event sets (bits of enum vp_events_set), separated by commas; "": sched and
 * irq. */
struct vp_error *vp_record_guest_sets_parse(const char *text, unsigned *sets) VP_MUST_CHECK;
void vp_record_events_deinit(struct vp_record_events *events);

#endif
