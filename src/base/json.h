/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one writer of JSON. Each function writes a member of the object at hand, or with a NULL key
 * an element of the array at hand or the whole text. Commas are the writer's business.
 */
#ifndef VP_BASE_JSON_H
#define VP_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct vp_json {
	struct vp_buffer *out;
	unsigned level;       /* open objects and arrays */
	unsigned pretty_from; /* with `pretty`: the level that is not indented */
	bool pretty;          /* a line for each member and element, indented */
	bool more;            /* something was written at this level */
	bool line;            /* the next member or element begins a line */
};

/* Writes to `out`, on one line, except after vp_json_line() or vp_json_pretty(). */
struct vp_json vp_json_to(struct vp_buffer *out);
/* A line for each member and element of what is opened next and of all in it, or no longer. */
void vp_json_pretty(struct vp_json *json, bool pretty);
/* The next member or element begins a line. */
void vp_json_line(struct vp_json *json);

/* Opens an object or array. `key` is its name in the enclosing object; NULL in an array. The same
 * for all values below. */
void vp_json_object(struct vp_json *json, const char *key);
void vp_json_object_end(struct vp_json *json);
void vp_json_array(struct vp_json *json, const char *key);
void vp_json_array_end(struct vp_json *json);

/* The version of all JSON that commands print: one more when a member goes or means something else.
 */
enum { VP_JSON_VERSION = 1 };
/* Opens the object of a whole answer; its first member is that version. */
void vp_json_answer(struct vp_json *json);

/* NULL: null. Invalid UTF-8 and control characters become '?'. */
void vp_json_text(struct vp_json *json, const char *key, const char *text);
void vp_json_count(struct vp_json *json, const char *key, uint64_t count);
void vp_json_bool(struct vp_json *json, const char *key, bool value);
void vp_json_null(struct vp_json *json, const char *key);
/* As many digits as needed to read the same number again; null if it is not finite. */
void vp_json_number(struct vp_json *json, const char *key, double value);
/* All 17 digits, and always a point or an exponent; null if it is not finite. */
void vp_json_double(struct vp_json *json, const char *key, double value);
/* As vp_json_number(), but whole numbers below 1e15 without exponent. */
void vp_json_amount(struct vp_json *json, const char *key, double value);
/* A number with `digits` digits after the point. */
void vp_json_fixed(struct vp_json *json, const char *key, double value, int digits);
/* A string "0x…". */
void vp_json_hex(struct vp_json *json, const char *key, uint64_t value);
/* A value that is JSON already. */
void vp_json_raw(struct vp_json *json, const char *key, const char *value);

/* As vp_json_number() writes it, by itself. */
void vp_json_put_number(double value, struct vp_buffer *out);

#endif
