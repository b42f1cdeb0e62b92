/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts a tracepoint's `format` (tracefs, Documentation/trace/events.rst) to an event class, and
 * raw records to records of that class. libtraceevent is not used: only the field lines are needed,
 * not the print format.
 */
#ifndef VP_SCHEMA_TRACEPOINT_FORMAT_H
#define VP_SCHEMA_TRACEPOINT_FORMAT_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"

/* Location of a field in the raw record. */
struct vp_tracepoint_field {
	uint16_t offset, size;
	bool is_dynamic;  /* a u32 with the data's offset and size << 16 … */
	bool is_relative; /* … relative to the end of that u32 */
	/* Fields that are adjacent in both the kernel's and our record are copied as one run: bytes
	 * of the run, and number of further fields in it. 0: converted alone. */
	uint16_t run, others;
	uint32_t reach; /* with the first field: minimum size of a raw record, if all fields are in
			   runs */
};
typedef VP_VEC(struct vp_tracepoint_field) vp_tracepoint_layout;

/* Adds the fields listed in `text` to `event` and their locations to `layout`: common_pid first,
 * without the other common fields. `source` names it in errors. Errors: malformed. */
struct vp_error *vp_tracepoint_format_parse(const char *source, const char *text, size_t size,
					    struct vp_event_class *event,
					    vp_tracepoint_layout *layout) VP_MUST_CHECK;

/* Slow path: converts field by field. */
bool vp_tracepoint_convert_fields(const struct vp_event_class *event,
				  const vp_tracepoint_layout *layout, uint64_t time,
				  struct vp_slice raw, struct vp_buffer *out);

/* Copies a run of a few words without a call and almost without a loop: the last block overlaps the
 * one before it. */
static inline void vp_tracepoint_put_run(char *to, const char *from, size_t size)
{
	if (size >= 16) {
		for (size_t at = 0; at < size - 16; at += 16)
			memcpy(to + at, from + at, 16);
		memcpy(to + size - 16, from + size - 16, 16);
	} else if (size >= 8) {
		memcpy(to, from, 8);
		memcpy(to + size - 8, from + size - 8, 8);
	} else if (size >= 4) {
		memcpy(to, from, 4);
		memcpy(to + size - 4, from + size - 4, 4);
	} else if (size) {
		to[0] = from[0];
		to[size / 2] = from[size / 2];
		to[size - 1] = from[size - 1];
	}
}

/* Fast path: all fields are in runs, and the record has a fixed size. */
static inline bool vp_tracepoint_convert_runs(const struct vp_event_class *event,
					      const vp_tracepoint_layout *layout, uint64_t time,
					      struct vp_slice raw, struct vp_buffer *out)
{
	const struct vp_tracepoint_field *raw_field = layout->at, *end = raw_field + layout->count;
	size_t size = sizeof(struct vp_defined_record) + event->fixed_size;

	if (raw.size < raw_field->reach || size > UINT16_MAX)
		return false;
	struct vp_defined_record *record = (void *)vp_buffer_room(out, size);
	record->time = time;
	record->id = event->id;
	record->size = (uint16_t)size;
	char *at = record->fields;
	for (; raw_field < end; raw_field += 1U + raw_field->others) {
		vp_tracepoint_put_run(at, raw.bytes + raw_field->offset, raw_field->run);
		at += raw_field->run;
	}
	vp_buffer_end(out, at);
	return true;
}

/* Appends the raw record as a record of the class; false: too short, or too long for a record.
 * Inline: recorders spend most of their time here. */
static inline bool vp_tracepoint_convert(const struct vp_event_class *event,
					 const vp_tracepoint_layout *layout, uint64_t time,
					 struct vp_slice raw, struct vp_buffer *out)
{
	return layout->at[0].reach ? vp_tracepoint_convert_runs(event, layout, time, raw, out)
				   : vp_tracepoint_convert_fields(event, layout, time, raw, out);
}

/* The kernel's event number, from the line "ID: 316"; false: missing. */
bool vp_tracepoint_format_id(struct vp_slice text, uint32_t *ret);

#endif
