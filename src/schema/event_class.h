/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event classes that are defined when a recording starts (for example a tracepoint's fields), in
 * addition to the records of the schema. Their ids start at VP_ID_DEFINED; they are in streams of
 * class VP_STREAM_TRACE only.
 *
 * A record is a header {u64 time, u16 id, u16 total size in bytes} and the class's fields in their
 * order, little endian, without padding: an integer; a fixed-length array; a sequence (u16 length
 * prefix); a NUL-terminated string. */
#ifndef VP_SCHEMA_EVENT_CLASS_H
#define VP_SCHEMA_EVENT_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

enum { VP_ID_DEFINED = 256, VP_EVENT_CLASSES_MAX = 60000, VP_EVENT_FIELDS_MAX = 1024 };

struct vp_defined_record {
	uint64_t time;
	uint16_t id;
	uint16_t size;
	char fields[];
} __attribute__((packed));

enum vp_event_shape { VP_EVENT_INTEGER, VP_EVENT_ARRAY, VP_EVENT_SEQUENCE, VP_EVENT_STRING };

struct vp_event_field {
	char *name;
	enum vp_event_shape shape;
	/* But of a string: bytes of an integer (1, 2, 4, 8), and how it is shown. */
	uint8_t size;
	bool is_signed, is_hex;
	bool is_text;   /* an array or a sequence of bytes that is text */
	uint16_t count; /* of an array */
};

struct vp_event_class {
	uint16_t id;
	char *name; /* "sched:sched_switch" */
	VP_VEC(struct vp_event_field) fields;
	uint32_t fixed_size; /* bytes of those whose length is known … */
	bool varies;         /* … and there are others */
};
typedef VP_VEC(struct vp_event_class) vp_event_classes;

/* Adds a class with the next id and no fields; *ret is valid until the next. Errors: no valid name,
 * too many classes. */
struct vp_error *vp_event_classes_add(vp_event_classes *classes, const char *name,
				      struct vp_event_class **ret) VP_MUST_CHECK;
/* Adds a field; `field` is copied. Errors: no valid name or size, too many fields. */
struct vp_error *vp_event_class_add_field(struct vp_event_class *event,
					  const struct vp_event_field *field) VP_MUST_CHECK;
void vp_event_classes_deinit(vp_event_classes *classes);
/* Adds the classes of `more` that are missing, by name and fields; ids[i] is the id in `classes` of
 * the class at index i of `more`, which is left empty. False: there would be more than `most`; then
 * nothing is added. */
bool vp_event_classes_join(vp_event_classes *classes, vp_event_classes *more, size_t most,
			   uint16_t *ids) VP_MUST_CHECK;
/* The class of that id, or NULL. */
const struct vp_event_class *vp_event_classes_find(const vp_event_classes *classes, uint32_t id);

/* The classes as CTF 1.8 metadata (TSDL), of the trace's one class of streams. */
void vp_event_classes_ctf(const vp_event_classes *classes, struct vp_buffer *out);
/* As text for vperf itself, and back; `source` names it in errors. Errors: malformed text. */
void vp_event_classes_write(const vp_event_classes *classes, struct vp_buffer *out);
struct vp_error *vp_event_classes_parse(const char *source, const char *text, size_t size,
					vp_event_classes *ret) VP_MUST_CHECK;

/* Makes a record in a buffer: begin (`time` in ns), a value for each field in the class's order,
 * end. */
void vp_event_begin(struct vp_buffer *out, const struct vp_event_class *event, uint64_t time);
void vp_event_put_integer(struct vp_buffer *out, const struct vp_event_field *field,
			  uint64_t value);
/* The bytes of an array or a sequence; longer ones are truncated, shorter arrays padded with zeros.
 */
void vp_event_put_bytes(struct vp_buffer *out, const struct vp_event_field *field,
			const void *bytes, size_t size);
void vp_event_put_string(struct vp_buffer *out, const char *text);
/* `begin`: the buffer's size before the record. Errors: it is longer than a record can be, and is
 * removed from the buffer. */
struct vp_error *vp_event_end(struct vp_buffer *out, size_t begin) VP_MUST_CHECK;

/* A field's value: a number (an integer; signed ones are extended), or bytes in the record. */
struct vp_event_value {
	uint64_t number;
	struct vp_slice bytes; /* of an array, a sequence, a string (without its zero) */
};
/* Reads the values of a record in order; `record` starts after the header. False if it ends too
 * soon. */
bool vp_event_next_value(struct vp_cursor *record, const struct vp_event_field *field,
			 struct vp_event_value *ret);
/* The fields of a record. */
struct vp_cursor vp_event_fields(const struct vp_defined_record *record);
/* Whether the record, of `record->size` bytes, is one of the class and nothing more. */
bool vp_event_is_whole(const struct vp_event_class *event, const struct vp_defined_record *record);

#endif
