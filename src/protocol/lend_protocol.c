/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "protocol/lend_protocol.h"

#include <inttypes.h>
#include <string.h>

static const char request_head[] = "vperf-request 1 lend ";

static const char *const kind_names[] = {
    [VP_LEND_HEAD] = "vperf-lend",
    [VP_LEND_CELL] = "cell",
    [VP_LEND_END] = "end",
};

static bool lend_protocol_fits(struct vp_slice name)
{
	for (size_t i = 0; i < name.size; i++)
		if (name.bytes[i] <= ' ' || name.bytes[i] > '~')
			return false;
	return name.size && name.size < VP_LENT_NAME_SIZE;
}

bool vp_lend_name_fits(const char *name)
{
	return lend_protocol_fits((struct vp_slice){name, strlen(name)});
}

void vp_lend_request_write(const struct vp_lend_request *request, struct vp_buffer *text)
{
	vp_buffer_printf(text, "%s%" PRIx64, request_head, request->marker);
	for (uint32_t i = 0; i < request->n; i++)
		vp_buffer_printf(text, " %s", request->names[i]);
	vp_buffer_string(text, "\n");
}

bool vp_lend_request_parse(struct vp_slice line, struct vp_lend_request *ret)
{
	const size_t head = sizeof(request_head) - 1;

	*ret = (struct vp_lend_request){0};
	if (line.size <= head || memcmp(line.bytes, request_head, head) != 0)
		return false;
	struct vp_cursor words = vp_cursor_of(line.bytes + head, line.size - head);
	ret->marker = vp_cursor_hex(&words);
	while (vp_cursor_ok(&words) && vp_cursor_left(&words)) {
		struct vp_slice name = vp_cursor_word(&words);
		if (ret->n == VP_LENT_EVENTS || !lend_protocol_fits(name))
			return false;
		memcpy(ret->names[ret->n++], name.bytes, name.size);
	}
	return vp_cursor_ok(&words) && ret->n && ret->marker;
}

void vp_lend_line_write(const struct vp_lend_line *line, struct vp_buffer *text)
{
	if (line->kind == VP_LEND_CELL)
		vp_buffer_printf(text, "%s %" PRIu32 " %" PRIx64 "\n", kind_names[line->kind],
				 line->vcpu, line->number);
	else
		vp_buffer_printf(text, "%s %" PRIu64 "\n", kind_names[line->kind], line->number);
}

static bool lend_protocol_find_kind(struct vp_slice name, enum vp_lend_kind *ret)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(kind_names); i++)
		if (vp_slice_is(name, kind_names[i])) {
			*ret = (enum vp_lend_kind)i;
			return true;
		}
	return false;
}

static bool lend_line_parse(struct vp_slice text, struct vp_lend_line *ret)
{
	struct vp_cursor words = vp_cursor_of(text.bytes, text.size);
	uint64_t vcpu = 0;

	*ret = (struct vp_lend_line){0};
	if (!lend_protocol_find_kind(vp_cursor_word(&words), &ret->kind))
		return false;
	if (ret->kind == VP_LEND_CELL) {
		vcpu = vp_cursor_decimal(&words);
		ret->number = vp_cursor_hex(&words);
	} else {
		ret->number = vp_cursor_decimal(&words);
	}
	ret->vcpu = (uint32_t)vcpu;
	return vp_cursor_ok(&words) && !vp_cursor_left(&words) && vcpu < UINT32_MAX &&
	       (ret->kind != VP_LEND_HEAD || ret->number == 1);
}

static struct vp_error *lend_protocol_not_an_answer(uint64_t lines, bool whole,
						    struct vp_slice text)
{
	static const char head[] = "error ";
	const size_t skip = sizeof(head) - 1;

	if (text.size <= skip || memcmp(text.bytes, head, skip) != 0)
		return vp_error_new("sent a malformed reply: line %" PRIu64, lines + 1);
	return vp_error_new("%s: %.*s", whole ? "stopped" : "refuses", (int)(text.size - skip),
			    text.bytes + skip);
}

struct vp_error *vp_lend_answer_take(uint64_t *lines, bool whole, struct vp_slice text,
				     struct vp_lend_line *ret)
{
	if (whole || !lend_line_parse(text, ret) || (*lines == 0) != (ret->kind == VP_LEND_HEAD) ||
	    (ret->kind == VP_LEND_END && ret->number != *lines))
		return lend_protocol_not_an_answer(*lines, whole, text);
	if (++*lines > VP_LEND_MAX_CELLS + 2)
		return vp_error_new("sent more than %d addresses", VP_LEND_MAX_CELLS);
	return NULL;
}
