/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

struct vp_json vp_json_to(struct vp_buffer *out)
{
	return (struct vp_json){.out = out};
}

void vp_json_pretty(struct vp_json *json, bool pretty)
{
	json->pretty = pretty;
	json->pretty_from = json->level;
}

void vp_json_line(struct vp_json *json)
{
	json->line = true;
}

static void json_begin_line(struct vp_json *json)
{
	size_t spaces = 2 * (size_t)(json->level - json->pretty_from);

	vp_buffer_append(json->out, "\n", 1);
	memset(vp_buffer_extend(json->out, spaces), ' ', spaces);
}

/* Length of the prefix that needs no escaping: printable ASCII except '"' and '\\'. */
static size_t plain_size(const char *text)
{
	size_t size = 0;

	while (text[size] >= ' ' && text[size] < 0x7f && text[size] != '"' && text[size] != '\\')
		size++;
	return size;
}

/* Escapes characters with a meaning in JSON, and replaces those that could harm a terminal. */
static void json_put_quoted(const char *text, struct vp_buffer *out)
{
	vp_buffer_append(out, "\"", 1);
	while (*text) {
		size_t plain = plain_size(text);
		if (text[plain] && text[plain] != '"' && text[plain] != '\\')
			plain = vp_text_clean_size(text, strcspn(text, "\"\\"));
		vp_buffer_append(out, text, plain);
		text += plain;
		unsigned char byte = (unsigned char)*text;
		if (!byte)
			break;
		if (byte == '"' || byte == '\\')
			vp_buffer_printf(out, "\\%c", byte);
		else if (byte < ' ')
			vp_buffer_printf(out, "\\u%04x", byte);
		else
			vp_buffer_append(out, "?", 1);
		text += byte < 0x80 ? 1 : vp_text_unclean_size(text, strlen(text));
	}
	vp_buffer_append(out, "\"", 1);
}

/* Separator and key of a value. */
static void json_begin(struct vp_json *json, const char *key)
{
	bool in_line = !json->pretty && !json->line;

	if (json->more)
		vp_buffer_string(json->out, in_line ? ", " : ",");
	if (json->pretty && json->level > json->pretty_from)
		json_begin_line(json);
	else if (json->line)
		vp_buffer_append(json->out, "\n", 1);
	json->line = false;
	json->more = true;
	if (!key)
		return;
	json_put_quoted(key, json->out);
	vp_buffer_string(json->out, json->pretty && json->level > json->pretty_from ? ":" : ": ");
}

static void open_bracket(struct vp_json *json, const char *key, const char *bracket)
{
	json_begin(json, key);
	vp_buffer_append(json->out, bracket, 1);
	json->level++;
	json->more = false;
}

static void close_bracket(struct vp_json *json, const char *bracket)
{
	json->level--;
	if (json->pretty)
		json_begin_line(json);
	else if (json->line)
		vp_buffer_append(json->out, "\n", 1);
	json->line = false;
	vp_buffer_append(json->out, bracket, 1);
	json->more = true;
}

void vp_json_object(struct vp_json *json, const char *key)
{
	open_bracket(json, key, "{");
}

void vp_json_object_end(struct vp_json *json)
{
	close_bracket(json, "}");
}

void vp_json_answer(struct vp_json *json)
{
	vp_json_object(json, NULL);
	vp_json_count(json, "version", VP_JSON_VERSION);
}

void vp_json_array(struct vp_json *json, const char *key)
{
	open_bracket(json, key, "[");
}

void vp_json_array_end(struct vp_json *json)
{
	close_bracket(json, "]");
}

void vp_json_raw(struct vp_json *json, const char *key, const char *value)
{
	json_begin(json, key);
	vp_buffer_string(json->out, value);
}

void vp_json_null(struct vp_json *json, const char *key)
{
	vp_json_raw(json, key, "null");
}

void vp_json_text(struct vp_json *json, const char *key, const char *text)
{
	json_begin(json, key);
	if (text)
		json_put_quoted(text, json->out);
	else
		vp_buffer_string(json->out, "null");
}

void vp_json_count(struct vp_json *json, const char *key, uint64_t count)
{
	json_begin(json, key);
	vp_buffer_count(json->out, count);
}

void vp_json_bool(struct vp_json *json, const char *key, bool value)
{
	vp_json_raw(json, key, value ? "true" : "false");
}

void vp_json_hex(struct vp_json *json, const char *key, uint64_t value)
{
	json_begin(json, key);
	vp_buffer_printf(json->out, "\"0x%" PRIx64 "\"", value);
}

void vp_json_put_number(double value, struct vp_buffer *out)
{
	char text[40] = "null";

	for (int digits = 1; isfinite(value) && digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	vp_buffer_string(out, text);
}

void vp_json_number(struct vp_json *json, const char *key, double value)
{
	json_begin(json, key);
	vp_json_put_number(value, json->out);
}

void vp_json_double(struct vp_json *json, const char *key, double value)
{
	char text[40] = "null";

	json_begin(json, key);
	if (isfinite(value))
		snprintf(text, sizeof(text), "%.17g", value);
	vp_buffer_string(json->out, text);
	if (isfinite(value) && !strpbrk(text, ".e"))
		vp_buffer_string(json->out, ".0");
}

void vp_json_amount(struct vp_json *json, const char *key, double value)
{
	if (value >= 0 && value < 1e15 && (double)(uint64_t)value == value)
		vp_json_fixed(json, key, value, 0);
	else
		vp_json_number(json, key, value);
}

void vp_json_fixed(struct vp_json *json, const char *key, double value, int digits)
{
	json_begin(json, key);
	if (isfinite(value))
		vp_buffer_printf(json->out, "%.*f", digits, value);
	else
		vp_buffer_string(json->out, "null");
}
