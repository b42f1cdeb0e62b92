/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/event_class.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"

#define MAGIC "vperf-events 1"

enum { NAME_MAX_BYTES = 255 };

/* Valid name: one word of text, and an identifier in TSDL after invalid characters are removed. */
static bool event_class_is_name(const char *name)
{
	size_t size = strlen(name);

	if (!size || size > NAME_MAX_BYTES)
		return false;
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f || *name == '"' || *name == '\\')
			return false;
	return true;
}

struct vp_error *vp_event_classes_add(vp_event_classes *classes, const char *name,
				      struct vp_event_class **ret)
{
	if (!event_class_is_name(name))
		return vp_error_new("'%s' is not a valid event name: expected up to %d characters "
				    "without blanks and quotes",
				    name, NAME_MAX_BYTES);
	if (classes->count >= VP_EVENT_CLASSES_MAX)
		return vp_error_new("too many events at '%s': expected at most %d", name,
				    VP_EVENT_CLASSES_MAX);
	uint16_t id = (uint16_t)(VP_ID_DEFINED + classes->count);
	vp_vec_push(classes, ((struct vp_event_class){.id = id, .name = vp_strdup(name)}));
	*ret = &classes->at[classes->count - 1];
	return NULL;
}

struct vp_error *vp_event_class_add_field(struct vp_event_class *event,
					  const struct vp_event_field *field)
{
	struct vp_event_field copy = *field;
	uint8_t size = field->size;

	if (!event_class_is_name(field->name))
		return vp_error_new("'%s' is not a valid field name in event '%s'", field->name,
				    event->name);
	if (field->shape != VP_EVENT_STRING && size != 1 && size != 2 && size != 4 && size != 8)
		return vp_error_new("field '%s' of event '%s': expected an integer of 1, 2, 4 or 8 "
				    "bytes, not %u",
				    field->name, event->name, size);
	if (event->fields.count >= VP_EVENT_FIELDS_MAX)
		return vp_error_new("field '%s' of too many events at '%s': expected at most %d",
				    field->name, event->name, VP_EVENT_FIELDS_MAX);
	copy.name = vp_strdup(field->name);
	copy.is_text = field->is_text && size == 1;
	if (field->shape == VP_EVENT_INTEGER)
		event->fixed_size += size;
	else if (field->shape == VP_EVENT_ARRAY)
		event->fixed_size += (uint32_t)size * field->count;
	else
		event->varies = true;
	vp_vec_push(&event->fields, copy);
	return NULL;
}

void vp_event_classes_deinit(vp_event_classes *classes)
{
	vp_vec_each (classes, event) {
		vp_vec_each (&event->fields, field)
			free(field->name);
		vp_vec_deinit(&event->fields);
		free(event->name);
	}
	vp_vec_deinit(classes);
}

static bool is_same_field(const struct vp_event_field *one, const struct vp_event_field *other)
{
	return !strcmp(one->name, other->name) && one->shape == other->shape &&
	       one->size == other->size && one->is_signed == other->is_signed &&
	       one->is_hex == other->is_hex && one->is_text == other->is_text &&
	       one->count == other->count;
}

static bool is_same_class(const struct vp_event_class *one, const struct vp_event_class *other)
{
	if (strcmp(one->name, other->name) != 0 || one->fields.count != other->fields.count)
		return false;
	for (size_t i = 0; i < one->fields.count; i++)
		if (!is_same_field(&one->fields.at[i], &other->fields.at[i]))
			return false;
	return true;
}

static uint16_t id_of_same(const vp_event_classes *classes, const struct vp_event_class *event)
{
	vp_vec_each (classes, known)
		if (is_same_class(known, event))
			return known->id;
	return 0;
}

bool vp_event_classes_join(vp_event_classes *classes, vp_event_classes *more, size_t most,
			   uint16_t *ids)
{
	size_t added = 0;

	for (size_t i = 0; i < more->count; i++) {
		ids[i] = id_of_same(classes, &more->at[i]);
		added += !ids[i];
	}
	if (classes->count + added > most)
		return false;
	for (size_t i = 0; i < more->count; i++) {
		if (ids[i])
			continue;
		ids[i] = (uint16_t)(VP_ID_DEFINED + classes->count);
		vp_vec_push(classes, more->at[i]);
		classes->at[classes->count - 1].id = ids[i];
		more->at[i] = (struct vp_event_class){0}; /* moved */
	}
	vp_event_classes_deinit(more);
	return true;
}

const struct vp_event_class *vp_event_classes_find(const vp_event_classes *classes, uint32_t id)
{
	return id >= VP_ID_DEFINED && id - VP_ID_DEFINED < classes->count
		   ? &classes->at[id - VP_ID_DEFINED]
		   : NULL;
}

/* "u32", "s64", "x16", "text": the aliases of schema/ctf.c. */
static void put_integer_type(const struct vp_event_field *field, struct vp_buffer *out)
{
	if (field->is_text)
		vp_buffer_string(out, "text");
	else
		vp_buffer_printf(out, "%c%d",
				 field->is_signed ? 's'
				 : field->is_hex  ? 'x'
						  : 'u',
				 8 * field->size);
}

/*
 * Writes an identifier. Readers remove one leading underscore, which avoids TSDL keywords
 * (babeltrace2 compares keywords after removing it: fields must not have those names either). Two
 * fields may get the same identifier: a number is appended.
 */
static void put_identifier(const struct vp_event_class *event, size_t number, struct vp_buffer *out)
{
	const char *name = event->fields.at[number].name;
	bool changed = false;

	vp_buffer_string(out, "_");
	for (const char *c = name; *c; c++) {
		bool good = isascii((unsigned char)*c) && isalnum((unsigned char)*c);
		vp_buffer_append(out, good ? c : "_", 1);
		changed |= !good && *c != '_';
	}
	for (size_t i = 0; i < number && !changed; i++)
		changed = !strcmp(event->fields.at[i].name, name);
	if (changed)
		vp_buffer_printf(out, "_%zu", number);
}

static void put_ctf_field(const struct vp_event_class *event, size_t number, struct vp_buffer *out)
{
	const struct vp_event_field *field = &event->fields.at[number];

	if (field->shape == VP_EVENT_SEQUENCE)
		vp_buffer_printf(out, "\t\tu16 __vperf_count_%zu;\n", number);
	vp_buffer_string(out, "\t\t");
	if (field->shape == VP_EVENT_STRING)
		vp_buffer_string(out, "string { encoding = UTF8; }");
	else
		put_integer_type(field, out);
	vp_buffer_string(out, " ");
	put_identifier(event, number, out);
	if (field->shape == VP_EVENT_ARRAY)
		vp_buffer_printf(out, "[%u]", field->count);
	else if (field->shape == VP_EVENT_SEQUENCE)
		vp_buffer_printf(out, "[__vperf_count_%zu]", number);
	vp_buffer_string(out, ";\n");
}

void vp_event_classes_ctf(const vp_event_classes *classes, struct vp_buffer *out)
{
	vp_vec_each (classes, event) {
		vp_buffer_printf(out,
				 "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n"
				 "\tfields := struct {\n\t\tu16 __vperf_size;\n",
				 event->name, event->id);
		for (size_t i = 0; i < event->fields.count; i++)
			put_ctf_field(event, i, out);
		vp_buffer_string(out, "\t};\n};\n\n");
	}
}

static const char *const shapes[] = {[VP_EVENT_INTEGER] = "integer",
				     [VP_EVENT_ARRAY] = "array",
				     [VP_EVENT_SEQUENCE] = "sequence",
				     [VP_EVENT_STRING] = "string"};
static const char *const styles[] = {"unsigned", "signed", "hex", "text"};

static const char *style_of(const struct vp_event_field *field)
{
	return styles[field->is_text ? 3 : field->is_signed ? 1 : field->is_hex ? 2 : 0];
}

void vp_event_classes_write(const vp_event_classes *classes, struct vp_buffer *out)
{
	vp_buffer_string(out, MAGIC "\n");
	vp_vec_each (classes, event) {
		vp_buffer_printf(out, "event %s\n", event->name);
		vp_vec_each (&event->fields, field)
			vp_buffer_printf(out, "field %s %s %s %u %u\n", field->name,
					 shapes[field->shape], style_of(field), field->size,
					 field->count);
	}
}

/* Index of the word; the number of words: not found. */
static size_t index_of(struct vp_slice word, const char *const *words, size_t n_words)
{
	size_t i = 0;

	while (i < n_words && !vp_slice_is(word, words[i]))
		i++;
	return i;
}

static struct vp_error *parse_field(struct vp_cursor *line, struct vp_slice name,
				    struct vp_event_class *event)
{
	size_t shape = index_of(vp_cursor_word(line), shapes, VP_ARRAY_SIZE(shapes));
	size_t style = index_of(vp_cursor_word(line), styles, VP_ARRAY_SIZE(styles));
	uint64_t size = vp_cursor_decimal(line), count = vp_cursor_decimal(line);
	VP_AUTO_FREE char *text = vp_strndup(name.bytes, name.size);

	if (!event || !vp_cursor_ok(line) || shape == VP_ARRAY_SIZE(shapes) ||
	    style == VP_ARRAY_SIZE(styles) || size > 8 || count > UINT16_MAX)
		return vp_error_new("expected 'field NAME SHAPE STYLE SIZE COUNT' after an event");
	const struct vp_event_field field = {.name = text,
					     .shape = (enum vp_event_shape)shape,
					     .size = (uint8_t)size,
					     .is_signed = style == 1,
					     .is_hex = style == 2,
					     .is_text = style == 3,
					     .count = (uint16_t)count};
	return vp_event_class_add_field(event, &field);
}

static struct vp_error *event_class_parse_line(struct vp_cursor *line, vp_event_classes *classes)
{
	struct vp_slice key = vp_cursor_word(line), name = vp_cursor_word(line);
	struct vp_event_class *last = classes->count ? &classes->at[classes->count - 1] : NULL;

	if (vp_slice_is(key, "field"))
		return parse_field(line, name, last);
	if (!vp_slice_is(key, "event") || !vp_cursor_ok(line))
		return vp_error_new("expected 'event NAME' or 'field NAME …'");
	VP_AUTO_FREE char *text = vp_strndup(name.bytes, name.size);
	return vp_event_classes_add(classes, text, &last);
}

struct vp_error *vp_event_classes_parse(const char *source, const char *text, size_t size,
					vp_event_classes *ret)
{
	struct vp_cursor lines = vp_cursor_of(text, size);
	struct vp_slice line = {"", 0};
	struct vp_error *error = NULL;
	size_t number = 1;

	*ret = (vp_event_classes){0};
	if (!vp_cursor_line(&lines, &line) || !vp_slice_is(line, MAGIC))
		return vp_error_new("'%s' line 1: expected '" MAGIC "'", source);
	while (!error && vp_cursor_line(&lines, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		number++;
		error = event_class_parse_line(&words, ret);
	}
	if (!error)
		return NULL;
	vp_event_classes_deinit(ret);
	struct vp_error *reported =
	    vp_error_new("'%s' line %zu: %s", source, number, vp_error_message(error));
	vp_error_free(error);
	return reported;
}

void vp_event_begin(struct vp_buffer *out, const struct vp_event_class *event, uint64_t time)
{
	const struct vp_defined_record header = {.time = time, .id = event->id};

	vp_buffer_append(out, &header, sizeof(header));
}

void vp_event_put_integer(struct vp_buffer *out, const struct vp_event_field *field, uint64_t value)
{
	vp_buffer_append(out, &value, field->size); /* little endian, on all supported hosts */
}

void vp_event_put_bytes(struct vp_buffer *out, const struct vp_event_field *field,
			const void *bytes, size_t size)
{
	bool sequence = field->shape == VP_EVENT_SEQUENCE;
	size_t most = (sequence ? UINT16_MAX : field->count) * (size_t)field->size;
	size_t used = size < most ? size / field->size * field->size : most;
	uint16_t count = (uint16_t)(used / field->size);

	if (sequence)
		vp_buffer_append(out, &count, sizeof(count));
	vp_buffer_append(out, bytes, used);
	if (!sequence && used < most)
		memset(vp_buffer_extend(out, most - used), 0, most - used);
}

void vp_event_put_string(struct vp_buffer *out, const char *text)
{
	vp_buffer_append(out, text, strlen(text) + 1);
}

struct vp_error *vp_event_end(struct vp_buffer *out, size_t begin)
{
	struct vp_defined_record *record = (void *)(out->bytes + begin);
	size_t size = out->size - begin;

	if (size > UINT16_MAX) {
		out->size = begin;
		return vp_error_new("an event of %zu bytes is too long: expected at most %d", size,
				    UINT16_MAX);
	}
	record->size = (uint16_t)size;
	return NULL;
}

struct vp_cursor vp_event_fields(const struct vp_defined_record *record)
{
	return vp_cursor_of(record->fields, record->size - sizeof(*record));
}

/* Constant sizes: each copy is a single instruction. */
static uint64_t event_class_number_of(const char *bytes, const struct vp_event_field *field)
{
	unsigned unused = 64 - 8 * field->size;
	uint64_t number = 0;

	switch (field->size) {
	case 1:
		memcpy(&number, bytes, 1);
		break;
	case 2:
		memcpy(&number, bytes, 2);
		break;
	case 4:
		memcpy(&number, bytes, 4);
		break;
	default:
		memcpy(&number, bytes, 8);
	}
	return field->is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

bool vp_event_next_value(struct vp_cursor *record, const struct vp_event_field *field,
			 struct vp_event_value *ret)
{
	/* Fast path for most fields, without a function call. */
	if (field->shape == VP_EVENT_INTEGER && !record->failed &&
	    (size_t)(record->end - record->next) >= field->size) {
		ret->bytes = (struct vp_slice){record->next, field->size};
		ret->number = event_class_number_of(record->next, field);
		record->next += field->size;
		return true;
	}
	if (field->shape == VP_EVENT_INTEGER) {
		ret->bytes = vp_cursor_bytes(record, field->size);
		ret->number = ret->bytes.size ? event_class_number_of(ret->bytes.bytes, field) : 0;
		return vp_cursor_ok(record);
	}
	*ret = (struct vp_event_value){.bytes = {"", 0}};
	if (field->shape == VP_EVENT_STRING) {
		const char *end = memchr(record->next, 0, vp_cursor_left(record));
		/* An unterminated string fails here: too few bytes. */
		size_t size = end ? (size_t)(end - record->next) : vp_cursor_left(record);
		ret->bytes = vp_cursor_bytes(record, size);
		vp_cursor_bytes(record, 1);
		return vp_cursor_ok(record);
	}
	size_t count = field->shape == VP_EVENT_SEQUENCE ? vp_cursor_u16(record) : field->count;
	ret->bytes = vp_cursor_bytes(record, count * field->size);
	return vp_cursor_ok(record);
}

bool vp_event_is_whole(const struct vp_event_class *event, const struct vp_defined_record *record)
{
	struct vp_event_value value;

	if (record->size < sizeof(*record))
		return false;
	if (!event->varies)
		return record->size - sizeof(*record) == event->fixed_size;
	struct vp_cursor fields = vp_event_fields(record);
	vp_vec_each (&event->fields, field)
		if (!vp_event_next_value(&fields, field, &value))
			return false;
	return !vp_cursor_left(&fields);
}
