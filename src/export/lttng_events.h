/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events under the names and with the fields of LTTng's kernel tracer (lttng-modules 2.13), which
 * Trace Compass and lttng-analyses look for. Exit reasons become those of VMX, the only ones that
 * Trace Compass has names for.
 */
#ifndef VP_EXPORT_LTTNG_EVENTS_H
#define VP_EXPORT_LTTNG_EVENTS_H

#include "analyze/trace/script.h"
#include "base/macros.h"
#include "schema/event_class.h"

/* Synthetic events of an exporter: thread descriptions, and marks that pair a guest with its VM. */
enum vp_lttng_made { VP_LTTNG_PROCESS, VP_LTTNG_GUEST_MARK, VP_LTTNG_HOST_MARK };

/* The classes of all of them. */
struct vp_error *vp_lttng_classes(vp_event_classes *ret) VP_MUST_CHECK;
/* Appends the record of an event; false: LTTng's tracer has no such event. */
bool vp_lttng_convert(const vp_event_classes *classes, const struct vp_script_event *event,
		      struct vp_buffer *out);

/* A thread `tid` of process `pid`. */
void vp_lttng_put_process(const vp_event_classes *classes, uint64_t time, uint32_t tid,
			  uint32_t pid, const char *name, struct vp_buffer *out);
/* From guest to host, seen there and here; pairs have one number. */
void vp_lttng_put_mark(const vp_event_classes *classes, enum vp_lttng_made side, uint64_t time,
		       uint32_t number, uint64_t vm, struct vp_buffer *out);
struct vp_lttng_thread {
	uint32_t tid;
	const char *comm;
};
/* A pCPU changes from one thread to another. */
void vp_lttng_put_switch(const vp_event_classes *classes, uint64_t time,
			 const struct vp_lttng_thread *prev, const struct vp_lttng_thread *next,
			 struct vp_buffer *out);
/* The thread enters or leaves its guest. */
void vp_lttng_put_entry(const vp_event_classes *classes, uint64_t time, uint32_t vcpu,
			struct vp_buffer *out);
void vp_lttng_put_exit(const vp_event_classes *classes, uint64_t time, uint32_t vcpu,
		       struct vp_buffer *out);

#endif
