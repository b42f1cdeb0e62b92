/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/tracepoint_format.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"

/* A line: "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;". */
struct line {
	struct vp_slice declaration, name; /* "char comm[16]", "comm" */
	bool is_array;
	uint64_t offset, size, count; /* count: elements of an array, 0 if not a number */
	bool is_signed;
};

/* Sizes of C types by a word of their names, searched in this order: "unsigned long" is a long. */
static const struct {
	const char *word;
	uint8_t size;
} sizes[] = {{"char", 1}, {"bool", 1}, {"u8", 1}, {"s8", 1},  {"int8", 1}, {"short", 2},
	     {"16", 2},   {"long", 8}, {"64", 8}, {"int", 4}, {"32", 4},   {"unsigned", 4}};

static bool tracepoint_format_has_word(struct vp_slice text, const char *word)
{
	return memmem(text.bytes, text.size, word, strlen(word)) != NULL;
}

static uint8_t element_size(const struct line *line)
{
	struct vp_slice type = {line->declaration.bytes,
				(size_t)(line->name.bytes - line->declaration.bytes)};

	if (line->count && line->size % line->count == 0) {
		uint64_t size = line->size / line->count;
		return size == 1 || size == 2 || size == 4 || size == 8 ? (uint8_t)size : 1;
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(sizes); i++)
		if (tracepoint_format_has_word(type, sizes[i].word))
			return sizes[i].size;
	return 1;
}

/* "KEY:" up to the next semicolon; false: it is missing. */
static bool take_part(struct vp_cursor *line, const char *key, struct vp_slice *ret)
{
	size_t left = vp_cursor_left(line);
	const char *found = memmem(line->next, left, key, strlen(key));

	if (!found)
		return false;
	vp_cursor_bytes(line, (size_t)(found - line->next) + strlen(key));
	const char *end = memchr(line->next, ';', vp_cursor_left(line));
	if (!end)
		return false;
	*ret = vp_cursor_bytes(line, (size_t)(end - line->next));
	return true;
}

static bool tracepoint_format_take_number(struct vp_cursor *line, const char *key, uint64_t *ret)
{
	struct vp_slice text;

	if (!take_part(line, key, &text))
		return false;
	struct vp_cursor digits = vp_cursor_of(text.bytes, text.size);
	*ret = vp_cursor_decimal(&digits);
	return vp_cursor_ok(&digits) && !vp_cursor_left(&digits);
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* The last word is the name, without a following "[N]". "__data_loc char[] name" has none. */
static bool split_declaration(struct line *line)
{
	const char *start = line->declaration.bytes, *end = start + line->declaration.size;
	const char *bracket = memrchr(start, '[', line->declaration.size);

	if (end > start && end[-1] == ']' && bracket) {
		struct vp_cursor digits = vp_cursor_of(bracket + 1, (size_t)(end - bracket - 2));
		uint64_t count = vp_cursor_decimal(&digits);
		line->count = vp_cursor_ok(&digits) && !vp_cursor_left(&digits) ? count : 0;
		line->is_array = true;
		end = bracket;
	}
	const char *name = end;
	while (name > start && is_of_name(name[-1]))
		name--;
	line->name = (struct vp_slice){name, (size_t)(end - name)};
	return line->name.size > 0;
}

static bool tracepoint_format_read_line(struct vp_slice text, struct line *line)
{
	struct vp_cursor rest = vp_cursor_of(text.bytes, text.size);
	uint64_t is_signed;

	*line = (struct line){0};
	if (!take_part(&rest, "field:", &line->declaration) ||
	    !tracepoint_format_take_number(&rest, "offset:", &line->offset) ||
	    !tracepoint_format_take_number(&rest, "size:", &line->size) ||
	    line->offset > UINT16_MAX || line->size > UINT16_MAX || !split_declaration(line))
		return false;
	line->is_signed = tracepoint_format_take_number(&rest, "signed:", &is_signed) && is_signed;
	return true;
}

static bool is_integer(uint64_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Determines the field's description in the class. */
static void classify(const struct line *line, struct vp_event_field *field,
		     struct vp_tracepoint_field *raw_field)
{
	bool is_char = tracepoint_format_has_word(line->declaration, "char") &&
		       !tracepoint_format_has_word(line->declaration, "signed");

	raw_field->offset = (uint16_t)line->offset;
	raw_field->size = (uint16_t)line->size;
	raw_field->is_relative = tracepoint_format_has_word(line->declaration, "__rel_loc ");
	raw_field->is_dynamic =
	    raw_field->is_relative || tracepoint_format_has_word(line->declaration, "__data_loc ");
	field->size = element_size(line);
	if (raw_field->is_dynamic) {
		field->shape = is_char ? VP_EVENT_STRING : VP_EVENT_SEQUENCE;
	} else if (line->is_array || !is_integer(line->size)) {
		field->shape = VP_EVENT_ARRAY;
		field->size = line->is_array ? field->size : 1;
		field->is_text = line->is_array && is_char;
		field->count = (uint16_t)(line->size / field->size);
	} else {
		field->shape = VP_EVENT_INTEGER;
		field->size = (uint8_t)line->size;
		field->is_hex = tracepoint_format_has_word(line->declaration, "*");
	}
	field->is_signed = line->is_signed && !field->is_text && !field->is_hex;
}

static struct vp_error *tracepoint_format_add_field(const struct line *line,
						    struct vp_event_class *event,
						    vp_tracepoint_layout *layout)
{
	VP_AUTO_FREE char *name = vp_strndup(line->name.bytes, line->name.size);
	struct vp_event_field field = {.name = name};
	struct vp_tracepoint_field raw_field = {0};

	classify(line, &field, &raw_field);
	if (raw_field.is_dynamic && raw_field.size != 4)
		return vp_error_new("field '%s' is dynamic and does not have 4 bytes", name);
	if (!field.count && field.shape == VP_EVENT_ARRAY)
		return NULL; /* "struct { } name": no contents */
	VP_TRY(vp_event_class_add_field(event, &field));
	vp_vec_push(layout, raw_field);
	return NULL;
}

/* Marks fields that "print fmt" prints in hexadecimal: arguments of type xN of probes. */
static void show_as_printed(struct vp_slice print, struct vp_event_class *event)
{
	if (!tracepoint_format_has_word(print, "__probe_ip") &&
	    !tracepoint_format_has_word(print, "__probe_func") &&
	    !tracepoint_format_has_word(print, "__probe_vaddr"))
		return;
	vp_vec_each (&event->fields, field) {
		VP_AUTO_FREE char *shown = vp_format(" %s=0x%%", field->name);
		field->is_hex =
		    field->shape == VP_EVENT_INTEGER && (!strncmp(field->name, "__probe_", 8) ||
							 tracepoint_format_has_word(print, shown));
		field->is_signed = field->is_signed && !field->is_hex;
	}
}

/* Whether the field has the same representation in both records. */
static bool is_plain(const struct vp_tracepoint_field *raw_field,
		     const struct vp_event_field *field)
{
	size_t elements = field->shape == VP_EVENT_ARRAY ? field->count : 1;

	return !raw_field->is_dynamic && elements * field->size == raw_field->size;
}

/* End of the last run in the kernel's record; 0: a field is outside all runs. */
static uint32_t reach_of_runs(const vp_tracepoint_layout *layout)
{
	uint32_t reach = 0;

	for (size_t i = 0; i < layout->count; i += 1U + layout->at[i].others) {
		uint32_t end = (uint32_t)layout->at[i].offset + layout->at[i].run;
		if (!layout->at[i].run)
			return 0;
		reach = end > reach ? end : reach;
	}
	return reach;
}

static void join_fields(const struct vp_event_class *event, vp_tracepoint_layout *layout)
{
	struct vp_tracepoint_field *run = NULL;

	for (size_t i = 0; i < layout->count; i++) {
		struct vp_tracepoint_field *raw_field = &layout->at[i];
		bool plain = is_plain(raw_field, &event->fields.at[i]);
		if (plain && run && run->offset + run->run == raw_field->offset &&
		    run->run + raw_field->size <= UINT16_MAX) {
			run->run = (uint16_t)(run->run + raw_field->size);
			run->others++;
			continue;
		}
		run = plain ? raw_field : NULL;
		if (run)
			run->run = run->size;
	}
	if (layout->count)
		layout->at[0].reach = reach_of_runs(layout);
}

/* The only common field that is used is the current thread. */
static bool tracepoint_format_is_wanted(const struct line *line)
{
	return line->name.size < 7 || memcmp(line->name.bytes, "common_", 7) != 0 ||
	       vp_slice_is(line->name, "common_pid");
}

struct vp_error *vp_tracepoint_format_parse(const char *source, const char *text, size_t size,
					    struct vp_event_class *event,
					    vp_tracepoint_layout *layout)
{
	struct vp_cursor lines = vp_cursor_of(text, size);
	struct vp_slice slice;

	for (size_t number = 1; vp_cursor_line(&lines, &slice); number++) {
		struct line line;
		if (tracepoint_format_has_word(slice, "print fmt:")) {
			show_as_printed(slice, event);
			break;
		}
		if (!tracepoint_format_has_word(slice, "field:"))
			continue;
		if (!tracepoint_format_read_line(slice, &line))
			return vp_error_new("'%s' line %zu: expected 'field:TYPE NAME; offset:N; "
					    "size:N; signed:N;'",
					    source, number);
		struct vp_error *error = tracepoint_format_is_wanted(&line)
					     ? tracepoint_format_add_field(&line, event, layout)
					     : NULL;
		if (!error)
			continue;
		struct vp_error *reported =
		    vp_error_new("'%s' line %zu: %s", source, number, vp_error_message(error));
		vp_error_free(error);
		return reported;
	}
	join_fields(event, layout);
	return layout->count ? NULL : vp_error_new("'%s' has no fields", source);
}

static uint64_t tracepoint_format_number_at(const char *bytes, const struct vp_event_field *field)
{
	uint64_t number = 0;

	memcpy(&number, bytes, field->size);
	return number;
}

/* The field's bytes, directly or by reference; false: beyond the record. */
static bool find_bytes(const struct vp_tracepoint_field *raw_field, struct vp_slice raw,
		       struct vp_slice *ret)
{
	struct vp_cursor cursor = vp_cursor_of(raw.bytes, raw.size);

	vp_cursor_bytes(&cursor, raw_field->offset);
	if (raw_field->is_dynamic) {
		uint32_t where = vp_cursor_u32(&cursor), offset = where & UINT16_MAX;
		if (!raw_field->is_relative)
			cursor = vp_cursor_of(raw.bytes, raw.size);
		vp_cursor_bytes(&cursor, offset);
		*ret = vp_cursor_bytes(&cursor, where >> 16);
	} else {
		*ret = vp_cursor_bytes(&cursor, raw_field->size);
	}
	return vp_cursor_ok(&cursor);
}

static void tracepoint_format_put_value(const struct vp_event_field *field, struct vp_slice bytes,
					struct vp_buffer *out)
{
	size_t length = strnlen(bytes.bytes, bytes.size);

	switch (field->shape) {
	case VP_EVENT_INTEGER:
		vp_event_put_integer(out, field, tracepoint_format_number_at(bytes.bytes, field));
		break;
	case VP_EVENT_STRING:
		vp_buffer_append(out, bytes.bytes, length);
		vp_buffer_append(out, "", 1);
		break;
	case VP_EVENT_ARRAY:
	case VP_EVENT_SEQUENCE:
		vp_event_put_bytes(out, field, bytes.bytes, bytes.size);
		break;
	}
}

bool vp_tracepoint_convert_fields(const struct vp_event_class *event,
				  const vp_tracepoint_layout *layout, uint64_t time,
				  struct vp_slice raw, struct vp_buffer *out)
{
	size_t begin = out->size;

	vp_event_begin(out, event, time);
	for (size_t i = 0; i < layout->count; i += 1U + layout->at[i].others) {
		const struct vp_tracepoint_field *raw_field = &layout->at[i];
		struct vp_slice bytes;
		if (raw_field->run && raw_field->offset + raw_field->run <= raw.size) {
			vp_buffer_append(out, raw.bytes + raw_field->offset, raw_field->run);
		} else if (!raw_field->run && find_bytes(raw_field, raw, &bytes)) {
			tracepoint_format_put_value(&event->fields.at[i], bytes, out);
		} else {
			out->size = begin;
			return false;
		}
	}
	struct vp_error *error = vp_event_end(out, begin);
	bool fits = !error;
	vp_error_free(error);
	return fits;
}

bool vp_tracepoint_format_id(struct vp_slice text, uint32_t *ret)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	while (vp_cursor_line(&lines, &line)) {
		if (line.size < 4 || memcmp(line.bytes, "ID: ", 4) != 0)
			continue;
		struct vp_cursor digits = vp_cursor_of(line.bytes + 4, line.size - 4);
		*ret = (uint32_t)vp_cursor_decimal(&digits);
		return vp_cursor_ok(&digits);
	}
	return false;
}
