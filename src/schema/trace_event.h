/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of schema/trace_records.h as data: their sets, and their classes in a recording. */
#ifndef VP_SCHEMA_TRACE_EVENT_H
#define VP_SCHEMA_TRACE_EVENT_H

#include "base/macros.h"
#include "schema/event_class.h"
#include "schema/trace_records.h"

/* Bits. */
enum vp_trace_set {
	VP_TRACE_SET_sched = 1,
	VP_TRACE_SET_kvm = 2,
	VP_TRACE_SET_irq = 4,
	VP_TRACE_SET_guest = 8,
	VP_TRACE_SETS_ALL = 15, /* … that programs of vperf's write; others are tracepoints */
	VP_TRACE_SET_block = 16,
	VP_TRACE_SET_net = 32,
	VP_TRACE_SET_syscalls = 64,
	VP_TRACE_SET_timer = 128
};

/* Names of sets, separated by commas; "" means VP_TRACE_SETS_ALL. Stretches of a guest's threads
 * begin and end with those in the guest: `guest` brings `kvm` along. Errors: there is no such set.
 */
struct vp_error *vp_trace_sets_parse(const char *text, unsigned *ret) VP_MUST_CHECK;
/* The tracepoints of sets, one after another: the first is number 0; NULL: there are no more. */
const char *vp_trace_set_tracepoint(unsigned sets, size_t number);
/* The set that the tracepoint of that name ("kvm_exit") is in; 0: it is in none. */
unsigned vp_trace_set_of(const char *tracepoint);
/* The classes of all events, whatever sets are recorded: their ids are those of the programs. */
struct vp_error *vp_trace_event_classes(vp_event_classes *ret) VP_MUST_CHECK;
/* Appends the events' chapter of docs/format.md. */
void vp_trace_event_document(struct vp_buffer *out);

#endif
