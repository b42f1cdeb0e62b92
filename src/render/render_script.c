/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_script.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "render/render_table.h"
#include "schema/event_class.h"
#include "store/packet.h"

#define SECOND 1000000000

/* Maximum length of a number, including scratch bytes. */
enum { NUMBER = VP_PUT_COUNT + 8 };

static char *put_hex_at(char *at, uint64_t number)
{
	unsigned digits = (67 - (unsigned)__builtin_clzll(number | 1)) / 4;

	at = vp_put_text(at, "0x");
	for (unsigned i = digits; i; number >>= 4)
		at[--i] = "0123456789abcdef"[number & 15];
	return at + digits;
}

char *vp_script_put_number(char *at, const struct vp_event_field *type, uint64_t number)
{
	if (type->is_hex)
		return put_hex_at(at, number);
	if (type->is_signed && (int64_t)number < 0) {
		*at++ = '-';
		number = -number;
	}
	return vp_put_count(at, number);
}

static void render_script_put_number(const struct vp_event_field *type, uint64_t number,
				     struct vp_buffer *out)
{
	vp_buffer_end(out, vp_script_put_number(vp_buffer_room(out, NUMBER), type, number));
}

/* Number of integers in an array or sequence. */
static size_t render_script_count_of(const struct vp_script_field *field)
{
	return field->value.bytes.size / field->type->size;
}

static uint64_t render_script_number_at(const struct vp_script_field *field, size_t i)
{
	size_t size = field->type->size;
	unsigned unused = 64 - 8 * (unsigned)size;
	uint64_t number = 0;

	memcpy(&number, field->value.bytes.bytes + i * size, size);
	return field->type->is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

static bool is_text(const struct vp_script_field *field)
{
	return field->text || field->type->is_text || field->type->shape == VP_EVENT_STRING;
}

static void render_script_put_text(const struct vp_script_field *field, struct vp_buffer *out)
{
	const struct vp_slice *bytes = &field->value.bytes;

	if (field->text)
		vp_buffer_string(out, field->text);
	else
		vp_text_clean(bytes->bytes, strnlen(bytes->bytes, bytes->size), out);
}

static void render_script_put_value(const struct vp_script_field *field, struct vp_buffer *out)
{
	if (is_text(field)) {
		render_script_put_text(field, out);
	} else if (field->type->shape == VP_EVENT_INTEGER) {
		render_script_put_number(field->type, field->value.number, out);
	} else {
		vp_buffer_string(out, "{");
		for (size_t i = 0; i < render_script_count_of(field); i++) {
			vp_buffer_string(out, i ? "," : "");
			render_script_put_number(field->type, render_script_number_at(field, i),
						 out);
		}
		vp_buffer_string(out, "}");
	}
}

/* Copies a text; short ones, which most are, without calling memcpy(). */
static inline char *put_at(char *at, const char *text, size_t size)
{
	if (size > 32) {
		memcpy(at, text, size);
	} else if (size >= 16) {
		memcpy(at, text, 16);
		memcpy(at + size - 16, text + size - 16, 16);
	} else if (size >= 8) {
		memcpy(at, text, 8);
		memcpy(at + size - 8, text + size - 8, 8);
	} else if (size >= 4) {
		memcpy(at, text, 4);
		memcpy(at + size - 4, text + size - 4, 4);
	} else {
		for (size_t i = 0; i < size; i++)
			at[i] = text[i];
	}
	return at + size;
}

static inline char *put_byte(char *at, char byte)
{
	*at = byte;
	return at + 1;
}

enum { COMM_WIDTH = 16 };

void vp_script_put_thread(const char *comm, bool has_tid, uint32_t tid, unsigned shown,
			  struct vp_buffer *out)
{
	const char *name = comm ? comm : VP_SCRIPT_NO_COMM;
	size_t size = strlen(name);
	char *at = vp_buffer_room(out, COMM_WIDTH + size + 2 * VP_PUT_PADDED);

	if (shown & VP_SHOW_COMM) {
		at = put_at(at, "                ", size < COMM_WIDTH ? COMM_WIDTH - size : 0);
		at = put_byte(put_at(at, name, size), ' ');
	}
	if (shown & VP_SHOW_TID)
		at = has_tid ? put_byte(vp_put_padded(at, tid, 7, ' '), ' ')
			     : vp_put_text(at, "      - ");
	vp_buffer_end(out, at);
}

void vp_script_put_pcpu(uint32_t pcpu, struct vp_buffer *out)
{
	char *at = vp_buffer_room(out, 2 * VP_PUT_PADDED);

	if (pcpu == VP_NO_PCPU)
		at = vp_put_text(at, "[-] ");
	else
		at = vp_put_text(vp_put_padded(put_byte(at, '['), pcpu, 3, '0'), "] ");
	vp_buffer_end(out, at);
}

/* "SECONDS.NANOSECONDS: " */
static char *put_time(const struct vp_script_event *event, const struct vp_script_layout *layout,
		      char *at)
{
	char time[VP_CLOCK_TEXT_SIZE];

	if (layout->clock.form != VP_CLOCK_FORM_HOST)
		return vp_put_text(
		    vp_put_text(at, vp_clock_text(&layout->clock, event->time, time)), ": ");
	at = put_byte(vp_put_padded(at, event->time / SECOND, 5, ' '), '.');
	return vp_put_text(vp_put_nine(at, event->time % SECOND), ": ");
}

/* "NAME=VALUE " */
static inline void put_text_field(const struct vp_script_field *field, struct vp_buffer *out)
{
	const char *text = field->words ? field->words : field->text;
	size_t text_size = field->words ? strlen(text) : text ? field->text_size : 0;
	char *at = vp_buffer_room(out, field->name_size + text_size + NUMBER + 2);

	at = put_byte(put_at(at, field->name, field->name_size), '=');
	if (text) {
		at = put_at(at, text, text_size);
	} else if (!is_text(field) && field->type->shape == VP_EVENT_INTEGER) {
		at = vp_script_put_number(at, field->type, field->value.number);
	} else {
		vp_buffer_end(out, at);
		render_script_put_value(field, out);
		at = vp_buffer_room(out, 1);
	}
	vp_buffer_end(out, put_byte(at, ' '));
}

/* "guest=NAME vcpu=NUMBER " */
static void put_text_guest(const struct vp_script_event *event, unsigned shown,
			   struct vp_buffer *out)
{
	if (shown & VP_SHOW_VM && event->vm) {
		vp_buffer_string(out, event->of_guest ? "guest=" : "vm=");
		vp_buffer_string(out, event->vm);
		vp_buffer_string(out, " ");
	}
	if (shown & VP_SHOW_VCPU && event->has_vcpu) {
		vp_buffer_string(out, "vcpu=");
		vp_buffer_count(out, event->vcpu);
		vp_buffer_string(out, " ");
	}
}

static void put_text_event(const struct vp_script_event *event,
			   const struct vp_script_layout *layout, struct vp_buffer *out)
{
	unsigned shown = layout->shown;
	char *at;

	vp_script_put_thread(event->comm, event->has_tid, event->tid, shown, out);
	if (shown & VP_SHOW_CPU)
		vp_script_put_pcpu(event->pcpu, out);
	at = vp_buffer_room(out, 2 * VP_PUT_PADDED + VP_CLOCK_TEXT_SIZE + event->name_size);
	if (shown & VP_SHOW_TIME)
		at = put_time(event, layout, at);
	if (shown & VP_SHOW_EVENT)
		at = vp_put_text(put_at(at, event->name, event->name_size), ": ");
	vp_buffer_end(out, at);
	put_text_guest(event, shown, out);
	if (shown & VP_SHOW_FIELDS)
		vp_vec_each (&event->fields, field)
			put_text_field(field, out);
	if (out->size && out->bytes[out->size - 1] == ' ')
		out->size--;
	*vp_buffer_room(out, 1) = '\n';
	out->size++;
}

static void put_json_number(struct vp_json *json, const char *key,
			    const struct vp_event_field *type, uint64_t number)
{
	struct vp_buffer text = {0};

	if (type->is_signed) {
		vp_buffer_printf(&text, "%" PRId64, (int64_t)number);
		vp_json_raw(json, key, vp_buffer_text(&text));
	} else if (type->is_hex) {
		vp_json_hex(json, key, number);
	} else {
		vp_json_count(json, key, number);
	}
	vp_buffer_deinit(&text);
}

static void put_json_field(const struct vp_script_field *field, struct vp_json *json)
{
	struct vp_buffer text = {0};

	if (field->text) {
		vp_json_text(json, field->name, field->text);
	} else if (is_text(field)) {
		render_script_put_text(field, &text);
		vp_json_text(json, field->name, vp_buffer_text(&text));
	} else if (field->type->shape == VP_EVENT_INTEGER) {
		put_json_number(json, field->name, field->type, field->value.number);
	} else {
		vp_json_array(json, field->name);
		for (size_t i = 0; i < render_script_count_of(field); i++)
			put_json_number(json, NULL, field->type, render_script_number_at(field, i));
		vp_json_array_end(json);
	}
	vp_buffer_deinit(&text);
}

static void render_script_put_json_known(struct vp_json *json, const char *key, bool known,
					 uint32_t number)
{
	if (known)
		vp_json_count(json, key, number);
	else
		vp_json_null(json, key);
}

static const char *machine_name(const struct vp_script_event *event)
{
	return event->of_guest ? "guest" : event->of_hypervisor ? "hypervisor" : "host";
}

static void put_json_event(const struct vp_script_event *event,
			   const struct vp_script_layout *layout, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);
	unsigned shown = layout->shown;

	if (layout->is_first)
		vp_json_answer(&json);
	else
		vp_json_object(&json, NULL);
	if (shown & VP_SHOW_TIME)
		vp_json_count(&json, "time_ns", event->time);
	if (shown & VP_SHOW_CPU)
		render_script_put_json_known(&json, "pcpu", event->pcpu != VP_NO_PCPU, event->pcpu);
	if (shown & VP_SHOW_COMM)
		vp_json_text(&json, "comm", event->comm);
	if (shown & VP_SHOW_TID)
		render_script_put_json_known(&json, "tid", event->has_tid, event->tid);
	if (shown & VP_SHOW_VM)
		vp_json_text(&json, "vm", event->vm);
	if (shown & VP_SHOW_VCPU)
		render_script_put_json_known(&json, "vcpu", event->has_vcpu, event->vcpu);
	if (shown & VP_SHOW_EVENT) {
		vp_json_text(&json, "machine", machine_name(event));
		vp_json_text(&json, "event", event->name);
	}
	if (shown & VP_SHOW_FIELDS) {
		vp_json_object(&json, "fields");
		vp_vec_each (&event->fields, field)
			put_json_field(field, &json);
		vp_json_object_end(&json);
	}
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

/* Replaces the comma after the last cell. */
static void end_csv(struct vp_buffer *out)
{
	if (out->size && out->bytes[out->size - 1] == ',')
		out->size--;
	vp_buffer_string(out, "\n");
}

static void render_script_begin_csv(const struct vp_script_layout *layout, struct vp_buffer *out)
{
	static const struct {
		unsigned bit;
		const char *header;
	} heads[] = {{VP_SHOW_TIME, "time_ns,"},
		     {VP_SHOW_CPU, "pcpu,"},
		     {VP_SHOW_COMM, "comm,"},
		     {VP_SHOW_TID, "tid,"},
		     {VP_SHOW_VM, "vm,"},
		     {VP_SHOW_VCPU, "vcpu,"},
		     {VP_SHOW_EVENT, "machine,event,"}};
	size_t count = layout->shown & VP_SHOW_FIELDS ? layout->columns->strings.count : 0;

	for (size_t i = 0; i < VP_ARRAY_SIZE(heads); i++)
		if (layout->shown & heads[i].bit)
			vp_buffer_string(out, heads[i].header);
	for (size_t i = 0; i < count; i++) {
		vp_render_csv_field(vp_intern_text(layout->columns, (uint32_t)i), out);
		vp_buffer_string(out, ",");
	}
	end_csv(out);
}

/* `text`: cleaned, or NULL. */
static void put_csv_text(const char *text, struct vp_buffer *out)
{
	vp_render_csv_field(text ? text : "", out);
	vp_buffer_string(out, ",");
}

static void put_csv_known(bool known, uint64_t number, struct vp_buffer *out)
{
	if (known)
		vp_buffer_count(out, number);
	vp_buffer_string(out, ",");
}

static void render_script_put_csv_cell(const struct vp_script_field *field, struct vp_buffer *out)
{
	struct vp_buffer value = {0};

	if (!is_text(field) && field->type->shape == VP_EVENT_INTEGER) {
		render_script_put_number(field->type, field->value.number, out);
	} else {
		render_script_put_value(field, &value);
		vp_render_csv_field(vp_buffer_text(&value), out);
		vp_buffer_deinit(&value);
	}
	vp_buffer_string(out, ",");
}

/* The field of the next non-empty column; NULL: no more. */
static const struct vp_script_field *field_from(const struct vp_script_event *event, size_t column,
						size_t end)
{
	const struct vp_script_field *found = NULL;

	vp_vec_each (&event->fields, field)
		if (field->column >= column && field->column < end) {
			end = field->column;
			found = field;
		}
	return found;
}

/* Most columns belong to other events and are empty. */
static void put_csv_cells(const struct vp_script_event *event, size_t count, struct vp_buffer *out)
{
	const struct vp_script_field *field;
	size_t column = 0;

	while ((field = field_from(event, column, count))) {
		vp_buffer_fill(out, ',', field->column - column);
		render_script_put_csv_cell(field, out);
		column = field->column + 1;
	}
	vp_buffer_fill(out, ',', count - column);
}

static void put_csv_event(const struct vp_script_event *event,
			  const struct vp_script_layout *layout, struct vp_buffer *out)
{
	unsigned shown = layout->shown;
	size_t count = shown & VP_SHOW_FIELDS ? layout->columns->strings.count : 0;

	if (shown & VP_SHOW_TIME)
		put_csv_known(true, event->time, out);
	if (shown & VP_SHOW_CPU)
		put_csv_known(event->pcpu != VP_NO_PCPU, event->pcpu, out);
	if (shown & VP_SHOW_COMM)
		put_csv_text(event->comm, out);
	if (shown & VP_SHOW_TID)
		put_csv_known(event->has_tid, event->tid, out);
	if (shown & VP_SHOW_VM)
		put_csv_text(event->vm, out);
	if (shown & VP_SHOW_VCPU)
		put_csv_known(event->has_vcpu, event->vcpu, out);
	if (shown & VP_SHOW_EVENT) {
		put_csv_text(machine_name(event), out);
		put_csv_text(event->name, out);
	}
	put_csv_cells(event, count, out);
	end_csv(out);
}

const struct vp_script_format *vp_script_format_named(const char *name)
{
	static const struct vp_script_format formats[] = {
	    {"text", NULL, put_text_event},
	    {"jsonl", NULL, put_json_event},
	    {"csv", render_script_begin_csv, put_csv_event},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

static const struct {
	const char *name;
	unsigned bit;
} parts[] = {{"comm", VP_SHOW_COMM},   {"tid", VP_SHOW_TID},      {"cpu", VP_SHOW_CPU},
	     {"time", VP_SHOW_TIME},   {"vm", VP_SHOW_VM},        {"vcpu", VP_SHOW_VCPU},
	     {"event", VP_SHOW_EVENT}, {"fields", VP_SHOW_FIELDS}};

static struct vp_error *render_script_add_part(struct vp_slice word, unsigned *shown)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(parts); i++)
		if (vp_slice_is(word, parts[i].name)) {
			*shown |= parts[i].bit;
			return NULL;
		}
	return vp_error_usage("option --fields: expected comm, tid, cpu, time, vm, vcpu, event or "
			      "fields, separated by commas, not '%.*s'",
			      (int)word.size, word.bytes);
}

struct vp_error *vp_script_shown_parse(const char *text, unsigned *ret)
{
	*ret = 0;
	for (;;) {
		size_t size = strcspn(text, ",");
		VP_TRY(render_script_add_part((struct vp_slice){text, size}, ret));
		if (!text[size])
			return NULL;
		text += size + 1;
	}
}
