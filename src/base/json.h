/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON writer. Each function writes a member of the current object, or with a NULL key an element
 * of the current array or the whole text. Commas are added automatically. */
#ifndef VP_BASE_JSON_H
#define VP_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct vp_json {
	struct vp_buffer *out;
	unsigned level;       /* depth of open objects and arrays */
	unsigned pretty_from; /* with `pretty`: the outermost level that is not indented */
	bool pretty;          /* one line per member and element, indented */
	bool more;            /* this level has a member or element already */
	bool line;            /* the next member or element starts a line */
};

/* Writes to `out`, on one line except after vp_json_line() and vp_json_pretty(). */
struct vp_json vp_json_to(struct vp_buffer *out);
/* One line per member and element of the objects and arrays opened from now on; false: no
 * longer. */
void vp_json_pretty(struct vp_json *json, bool pretty);
/* The next member or element starts a line. */
void vp_json_line(struct vp_json *json);

/* Opens an object or array. `key` is its name in the enclosing object, NULL in an array; likewise
 * for all values below. */
void vp_json_object(struct vp_json *json, const char *key);
void vp_json_object_end(struct vp_json *json);
void vp_json_array(struct vp_json *json, const char *key);
void vp_json_array_end(struct vp_json *json);

/* Version of the JSON output of all commands; incremented when a member is removed or changes its
 * meaning. */
enum { VP_JSON_VERSION = 1 };
/* Opens the outermost object; its first member is the version. */
void vp_json_answer(struct vp_json *json);

/* Writes a string; NULL is written as null. Invalid UTF-8 and control characters become '?'. */
void vp_json_text(struct vp_json *json, const char *key, const char *text);
void vp_json_count(struct vp_json *json, const char *key, uint64_t count);
void vp_json_bool(struct vp_json *json, const char *key, bool value);
void vp_json_null(struct vp_json *json, const char *key);
/* Shortest number that reads back exactly; null if it is not finite. */
void vp_json_number(struct vp_json *json, const char *key, double value);
/* All 17 digits, always with a point or exponent; null if it is not finite. */
void vp_json_double(struct vp_json *json, const char *key, double value);
/* As vp_json_number(), but whole numbers below 1e15 without exponent. */
void vp_json_amount(struct vp_json *json, const char *key, double value);
/* A number with `digits` digits after the point. */
void vp_json_fixed(struct vp_json *json, const char *key, double value, int digits);
/* A string "0x…". */
void vp_json_hex(struct vp_json *json, const char *key, uint64_t value);
/* Writes a value that is JSON already. */
void vp_json_raw(struct vp_json *json, const char *key, const char *value);

/* Appends the number as vp_json_number() writes it, without a key. */
void vp_json_put_number(double value, struct vp_buffer *out);

#endif
