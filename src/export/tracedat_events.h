/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts events to the layout of ftrace's ring buffer, and writes the formats with their field
 * offsets. */
#ifndef VP_EXPORT_TRACEDAT_EVENTS_H
#define VP_EXPORT_TRACEDAT_EVENTS_H

#include "analyze/trace/script.h"
#include "base/buffer.h"
#include "base/vec.h"

enum vp_ftrace_shape { VP_FTRACE_NUMBER, VP_FTRACE_ARRAY, VP_FTRACE_DYNAMIC };

struct vp_ftrace_field {
	char *name;
	enum vp_ftrace_shape shape;
	uint16_t size; /* bytes of a number, or of an element */
	uint16_t count;
	uint16_t offset;
	bool is_signed, is_hex, is_text;
	uint32_t from; /* offset in the event, or in the table of vperf's own events */
};

/* Layout of the events of a class. */
struct vp_ftrace_format {
	char *name; /* "sched:sched_switch" */
	uint16_t id;
	uint16_t size;                   /* size of the part with fixed offsets */
	const struct vp_ftrace_own *own; /* NULL: a tracepoint of the kernel, with its own fields */
	VP_VEC(struct vp_ftrace_field) fields;
};

/* Makes the format for events like this one. */
void vp_ftrace_format_make(const struct vp_script_event *event, uint16_t id,
			   struct vp_ftrace_format *ret);
void vp_ftrace_format_deinit(struct vp_ftrace_format *format);
/* Whether the event has that format. */
bool vp_ftrace_format_is_of(const struct vp_ftrace_format *format,
			    const struct vp_script_event *event);
/* Text as in tracefs: events/SYSTEM/NAME/format. */
void vp_ftrace_format_text(const struct vp_ftrace_format *format, struct vp_buffer *out);
/* Appends the event's bytes. */
void vp_ftrace_put(const struct vp_ftrace_format *format, const struct vp_script_event *event,
		   struct vp_buffer *out);

#endif
