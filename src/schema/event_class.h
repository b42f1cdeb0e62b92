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
	/* Except for a string: bytes of an integer (1, 2, 4, 8), and its format. */
	uint8_t size;
	bool is_signed, is_hex;
	bool is_text;   /* an array or sequence of bytes that is text */
	uint16_t count; /* length of an array */
};

struct vp_event_class {
	uint16_t id;
	char *name; /* "sched:sched_switch" */
	VP_VEC(struct vp_event_field) fields;
	uint32_t fixed_size; /* total size of the fields of fixed size, bytes … */
	bool varies;         /* … and whether there are other fields */
};
typedef VP_VEC(struct vp_event_class) vp_event_classes;

/* Adds a class with the next id and no fields; *ret is valid until the next call. Errors: invalid
 * name, too many classes. */
struct vp_error *vp_event_classes_add(vp_event_classes *classes, const char *name,
				      struct vp_event_class **ret) VP_MUST_CHECK;
/* Adds a field; `field` is copied. Errors: invalid name or size, too many fields. */
struct vp_error *vp_event_class_add_field(struct vp_event_class *event,
					  const struct vp_event_field *field) VP_MUST_CHECK;
void vp_event_classes_deinit(vp_event_classes *classes);
/*
 * Adds the classes of `more` that are missing, compared by name and fields; ids[i] is the id in
 * `classes` of class i of `more`. `more` is emptied. False: there would be more than `most`; then
 * nothing is added.
 */
bool vp_event_classes_join(vp_event_classes *classes, vp_event_classes *more, size_t most,
			   uint16_t *ids) VP_MUST_CHECK;
/* The class with that id, or NULL. */
const struct vp_event_class *vp_event_classes_find(const vp_event_classes *classes, uint32_t id);

/* Appends the classes as CTF 1.8 metadata (TSDL), for the trace's only stream class. */
void vp_event_classes_ctf(const vp_event_classes *classes, struct vp_buffer *out);
/* Text form for vperf's own files, and its parser; `source` names it in errors. Errors:
 * malformed. */
void vp_event_classes_write(const vp_event_classes *classes, struct vp_buffer *out);
struct vp_error *vp_event_classes_parse(const char *source, const char *text, size_t size,
					vp_event_classes *ret) VP_MUST_CHECK;

/* Builds a record in a buffer: begin (`time` in ns), the values in the order of the class's fields,
 * end. */
void vp_event_begin(struct vp_buffer *out, const struct vp_event_class *event, uint64_t time);
void vp_event_put_integer(struct vp_buffer *out, const struct vp_event_field *field,
			  uint64_t value);
/* Adds the bytes of an array or sequence; longer ones are truncated, shorter arrays padded with
 * zeros. */
void vp_event_put_bytes(struct vp_buffer *out, const struct vp_event_field *field,
			const void *bytes, size_t size);
void vp_event_put_string(struct vp_buffer *out, const char *text);
/* `begin`: size of the buffer before the record. Errors: the record is too long; it is removed from
 * the buffer. */
struct vp_error *vp_event_end(struct vp_buffer *out, size_t begin) VP_MUST_CHECK;

/* Value of a field: a number (sign-extended if signed), or bytes in the record. */
struct vp_event_value {
	uint64_t number;
	struct vp_slice bytes; /* bytes of an array, a sequence, or a string (without its NUL) */
};
/* Reads the next value of a record; `record` starts after the header. False: the record is too
 * short. */
bool vp_event_next_value(struct vp_cursor *record, const struct vp_event_field *field,
			 struct vp_event_value *ret);
/* A cursor at the fields of a record. */
struct vp_cursor vp_event_fields(const struct vp_defined_record *record);
/* Whether the record's size, `record->size`, is exactly that of its fields. */
bool vp_event_is_whole(const struct vp_event_class *event, const struct vp_defined_record *record);

#endif
