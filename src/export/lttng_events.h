/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events with the names and fields of LTTng's kernel tracer (lttng-modules 2.13), as expected by
 * Trace Compass and lttng-analyses. Exit reasons are converted to VMX's, the only ones with names
 * in Trace Compass.
 */
#ifndef VP_EXPORT_LTTNG_EVENTS_H
#define VP_EXPORT_LTTNG_EVENTS_H

#include "analyze/trace/script.h"
#include "base/macros.h"
#include "schema/event_class.h"

/* Events synthesized by an exporter: thread descriptions, and marks that pair a guest with its
 * VM. */
enum vp_lttng_synthetic { VP_LTTNG_PROCESS, VP_LTTNG_GUEST_MARK, VP_LTTNG_HOST_MARK };

/* The classes of all events. */
struct vp_error *vp_lttng_classes(vp_event_classes *ret) VP_MUST_CHECK;
/* Appends the record of an event; false: LTTng has no such event. */
bool vp_lttng_convert(const vp_event_classes *classes, const struct vp_script_event *event,
		      struct vp_buffer *out);

/* Appends the description of thread `tid` of process `pid`. */
void vp_lttng_put_process(const vp_event_classes *classes, uint64_t time, uint32_t tid,
			  uint32_t pid, const char *name, struct vp_buffer *out);
/* Appends a message from guest to host, as sent or as received; a pair has the same number. */
void vp_lttng_put_mark(const vp_event_classes *classes, enum vp_lttng_synthetic side, uint64_t time,
		       uint32_t number, uint64_t vm, struct vp_buffer *out);
struct vp_lttng_thread {
	uint32_t tid;
	const char *comm;
};
/* Appends a context switch of a pCPU. */
void vp_lttng_put_switch(const vp_event_classes *classes, uint64_t time,
			 const struct vp_lttng_thread *prev, const struct vp_lttng_thread *next,
			 struct vp_buffer *out);
/* Appends a VM entry or exit of the thread. */
void vp_lttng_put_entry(const vp_event_classes *classes, uint64_t time, uint32_t vcpu,
			struct vp_buffer *out);
void vp_lttng_put_exit(const vp_event_classes *classes, uint64_t time, uint32_t vcpu,
		       struct vp_buffer *out);

#endif
