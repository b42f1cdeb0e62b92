/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/script.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "render/table.h"

#define SECOND 1000000000

static void put_number(const struct vp_event_field *type, uint64_t number, struct vp_buffer *out)
{
	if (type->is_hex)
		vp_buffer_printf(out, "0x%" PRIx64, number);
	else if (type->is_signed)
		vp_buffer_printf(out, "%" PRId64, (int64_t)number);
	else
		vp_buffer_count(out, number);
}

/* The integers of an array or a sequence. */
static size_t count_of(const struct vp_script_field *field)
{
	return field->value.bytes.size / field->type->size;
}

static uint64_t number_at(const struct vp_script_field *field, size_t i)
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

static void put_text(const struct vp_script_field *field, struct vp_buffer *out)
{
	const struct vp_slice *bytes = &field->value.bytes;

	if (field->text)
		vp_text_clean(field->text, strlen(field->text), out);
	else
		vp_text_clean(bytes->bytes, strnlen(bytes->bytes, bytes->size), out);
}

static void put_value(const struct vp_script_field *field, struct vp_buffer *out)
{
	if (is_text(field)) {
		put_text(field, out);
	} else if (field->type->shape == VP_EVENT_INTEGER) {
		put_number(field->type, field->value.number, out);
	} else {
		vp_buffer_string(out, "{");
		for (size_t i = 0; i < count_of(field); i++) {
			vp_buffer_string(out, i ? "," : "");
			put_number(field->type, number_at(field, i), out);
		}
		vp_buffer_string(out, "}");
	}
}

/* As perf script has it: who, where, when, what. */
static void put_text_event(const struct vp_script_event *event, const struct vp_intern *columns,
			   struct vp_buffer *out)
{
	vp_buffer_printf(out, "%16s ", event->comm ? event->comm : "-");
	if (event->has_tid)
		vp_buffer_printf(out, "%7u", event->tid);
	else
		vp_buffer_printf(out, "%7s", "-");
	if (event->pcpu == VP_NO_PCPU)
		vp_buffer_string(out, " [-]");
	else
		vp_buffer_printf(out, " [%03u]", event->pcpu);
	vp_buffer_printf(out, " %5" PRIu64 ".%09" PRIu64 ": %s:", event->time / SECOND,
			 event->time % SECOND, event->name);
	if (event->vm) {
		vp_buffer_string(out, " vm=");
		vp_text_clean(event->vm, strlen(event->vm), out);
	}
	if (event->has_vcpu)
		vp_buffer_printf(out, " vcpu=%u", event->vcpu);
	vp_vec_each (&event->fields, field) {
		vp_buffer_printf(out, " %s=", field->name);
		put_value(field, out);
	}
	vp_buffer_string(out, "\n");
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

	if (is_text(field)) {
		put_text(field, &text);
		vp_json_text(json, field->name, vp_buffer_text(&text));
	} else if (field->type->shape == VP_EVENT_INTEGER) {
		put_json_number(json, field->name, field->type, field->value.number);
	} else {
		vp_json_array(json, field->name);
		for (size_t i = 0; i < count_of(field); i++)
			put_json_number(json, NULL, field->type, number_at(field, i));
		vp_json_array_end(json);
	}
	vp_buffer_deinit(&text);
}

static void put_json_known(struct vp_json *json, const char *key, bool known, uint32_t number)
{
	if (known)
		vp_json_count(json, key, number);
	else
		vp_json_null(json, key);
}

static void put_json_event(const struct vp_script_event *event, const struct vp_intern *columns,
			   struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_object(&json, NULL);
	vp_json_count(&json, "time_ns", event->time);
	put_json_known(&json, "pcpu", event->pcpu != VP_NO_PCPU, event->pcpu);
	vp_json_text(&json, "comm", event->comm);
	put_json_known(&json, "tid", event->has_tid, event->tid);
	vp_json_text(&json, "vm", event->vm);
	put_json_known(&json, "vcpu", event->has_vcpu, event->vcpu);
	vp_json_text(&json, "event", event->name);
	vp_json_object(&json, "fields");
	vp_vec_each (&event->fields, field)
		put_json_field(field, &json);
	vp_json_object_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static void begin_csv(const struct vp_intern *columns, struct vp_buffer *out)
{
	vp_buffer_string(out, "time_ns,pcpu,comm,tid,vm,vcpu,event");
	for (size_t i = 0; i < columns->strings.count; i++) {
		vp_buffer_string(out, ",");
		vp_render_csv_field(vp_intern_text(columns, (uint32_t)i), out);
	}
	vp_buffer_string(out, "\n");
}

static void put_csv_text(const char *text, struct vp_buffer *out)
{
	struct vp_buffer clean = {0};

	if (text)
		vp_text_clean(text, strlen(text), &clean);
	vp_render_csv_field(vp_buffer_text(&clean), out);
	vp_buffer_deinit(&clean);
}

static void put_csv_known(bool known, uint32_t number, struct vp_buffer *out)
{
	vp_buffer_string(out, ",");
	if (known)
		vp_buffer_count(out, number);
}

static void put_csv_cell(const struct vp_script_event *event, uint32_t column,
			 struct vp_buffer *out)
{
	struct vp_buffer value = {0};

	vp_vec_each (&event->fields, field)
		if (field->column == column)
			put_value(field, &value);
	vp_render_csv_field(vp_buffer_text(&value), out);
	vp_buffer_deinit(&value);
}

static void put_csv_event(const struct vp_script_event *event, const struct vp_intern *columns,
			  struct vp_buffer *out)
{
	vp_buffer_count(out, event->time);
	put_csv_known(event->pcpu != VP_NO_PCPU, event->pcpu, out);
	vp_buffer_string(out, ",");
	put_csv_text(event->comm, out);
	put_csv_known(event->has_tid, event->tid, out);
	vp_buffer_string(out, ",");
	put_csv_text(event->vm, out);
	put_csv_known(event->has_vcpu, event->vcpu, out);
	vp_buffer_printf(out, ",%s", event->name);
	for (size_t i = 0; i < columns->strings.count; i++) {
		vp_buffer_string(out, ",");
		put_csv_cell(event, (uint32_t)i, out);
	}
	vp_buffer_string(out, "\n");
}

const struct vp_script_format *vp_script_format_named(const char *name)
{
	static const struct vp_script_format formats[] = {
	    {"text", NULL, put_text_event},
	    {"jsonl", NULL, put_json_event},
	    {"csv", begin_csv, put_csv_event},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
