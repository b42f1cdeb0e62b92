/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tracepoint's `format` (tracefs, Documentation/trace/events.rst) as an event class, and its raw
 * records as records of that class. Own code rather than libtraceevent: the fields alone are
 * wanted, which are one line each, not how they are printed.
 */
#ifndef VP_COLLECT_TRACEPOINT_FORMAT_H
#define VP_COLLECT_TRACEPOINT_FORMAT_H

#include "schema/event_class.h"

/* Where a field is in the raw record. */
struct vp_tracepoint_place {
	uint16_t offset, size;
	bool is_dynamic;  /* there is a u32 with the offset of the data and their size << 16 … */
	bool is_relative; /* … that offset is from behind it */
	/* Fields that the kernel's record has in a row as the recording's has, so that they are one
	 * copy: bytes of them, and how many fields beside this one. 0: it is converted alone. */
	uint16_t run, others;
	uint32_t
	    reach; /* of the first field: bytes that a record has at least, if all are in such */
};
typedef VP_VEC(struct vp_tracepoint_place) vp_tracepoint_places;

/*
 * Adds the fields that `text` lists to `event`, and where each is to `places`: common_pid first,
 * without the other common fields. `source` names it in errors. Errors: malformed text.
 */
struct vp_error *vp_tracepoint_format_parse(const char *source, const char *text, size_t size,
					    struct vp_event_class *event,
					    vp_tracepoint_places *places) VP_MUST_CHECK;
/* Appends the raw record as one of the class; false: it is too short, or too long to be one. */
bool vp_tracepoint_convert(const struct vp_event_class *event, const vp_tracepoint_places *places,
			   uint64_t time, struct vp_slice raw, struct vp_buffer *out);

/* The kernel's number of the event: its format's line "ID: 316"; false: it has none. */
bool vp_tracepoint_format_id(struct vp_slice text, uint32_t *ret);

#endif
