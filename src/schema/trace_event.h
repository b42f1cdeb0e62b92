/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of schema/trace_records.h as data: their sets, and their event classes. */
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
	VP_TRACE_SETS_ALL = 15, /* sets written by vperf's BPF programs; others are tracepoints */
	VP_TRACE_SET_block = 16,
	VP_TRACE_SET_net = 32,
	VP_TRACE_SET_syscalls = 64,
	VP_TRACE_SET_timer = 128
};

/* Parses names of sets, separated by commas; "" means VP_TRACE_SETS_ALL. `guest` implies `kvm`:
 * slices of guest threads start and end with time in the guest. Errors: unknown set. */
struct vp_error *vp_trace_sets_parse(const char *text, unsigned *ret) VP_MUST_CHECK;
/* Tracepoint `number` of the sets, counted from 0; NULL: no more. */
const char *vp_trace_set_tracepoint(unsigned sets, size_t number);
/* The set with the tracepoint of that name ("kvm_exit"); 0: none. */
unsigned vp_trace_set_of(const char *tracepoint);
/* The classes of all events, recorded or not, so that their ids equal those of the BPF programs.
 * Errors: other classes precede them. */
struct vp_error *vp_trace_event_classes(vp_event_classes *ret) VP_MUST_CHECK;
/* Appends the chapter on events of docs/format.md. */
void vp_trace_event_document(struct vp_buffer *out);

#endif
