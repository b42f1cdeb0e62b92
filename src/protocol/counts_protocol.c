/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "protocol/counts_protocol.h"

#include <inttypes.h>
#include <string.h>

static const char request_head[] = "vperf-request 1 counts";

static const char *const event_names[VP_GUEST_COUNT] = {
#define GUEST(id, name, text) [VP_GUEST_##id] = name,
    VP_GUEST_COUNTS(GUEST)
#undef GUEST
};

static const char *const kind_names[] = {
    [VP_COUNTS_HEAD] = "vperf-counts", [VP_COUNTS_MARKER] = "marker", [VP_COUNTS_ADDRESS] = "count",
    [VP_COUNTS_WITHOUT] = "without",   [VP_COUNTS_END] = "end",
};

const char *vp_counts_event_name(enum vp_guest_count event)
{
	return event_names[event];
}

static bool counts_protocol_find_event(struct vp_slice name, enum vp_guest_count *ret)
{
	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if (vp_slice_is(name, event_names[i])) {
			*ret = (enum vp_guest_count)i;
			return true;
		}
	return false;
}

void vp_counts_request_write(const struct vp_counts_request *request, struct vp_buffer *text)
{
	vp_buffer_printf(text, "%s %" PRIx64, request_head, request->marker);
	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if (request->events >> i & 1)
			vp_buffer_printf(text, " %s", event_names[i]);
	vp_buffer_string(text, "\n");
}

bool vp_counts_request_parse(struct vp_slice line, struct vp_counts_request *ret)
{
	const size_t head = sizeof(request_head) - 1;
	enum vp_guest_count event;

	*ret = (struct vp_counts_request){0};
	if (line.size <= head || memcmp(line.bytes, request_head, head) != 0 ||
	    line.bytes[head] != ' ')
		return false;
	struct vp_cursor words = vp_cursor_of(line.bytes + head + 1, line.size - head - 1);
	ret->marker = vp_cursor_hex(&words);
	while (vp_cursor_ok(&words) && vp_cursor_left(&words)) {
		if (!counts_protocol_find_event(vp_cursor_word(&words), &event))
			return false;
		ret->events |= 1U << event;
	}
	return vp_cursor_ok(&words) && ret->events && ret->marker;
}

void vp_counts_line_write(const struct vp_counts_line *line, struct vp_buffer *text)
{
	vp_buffer_string(text, kind_names[line->kind]);
	switch (line->kind) {
	case VP_COUNTS_HEAD:
	case VP_COUNTS_END:
		vp_buffer_printf(text, " %" PRIu64, line->number);
		break;
	case VP_COUNTS_MARKER:
		vp_buffer_printf(text, " %" PRIx64, line->number);
		break;
	case VP_COUNTS_ADDRESS:
		vp_buffer_printf(text, " %" PRIu32 " %s %" PRIx64, line->vcpu,
				 event_names[line->event], line->number);
		break;
	case VP_COUNTS_WITHOUT:
		vp_buffer_printf(text, " %s", event_names[line->event]);
		break;
	}
	vp_buffer_string(text, "\n");
}

static bool counts_protocol_find_kind(struct vp_slice name, enum vp_counts_kind *ret)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(kind_names); i++)
		if (vp_slice_is(name, kind_names[i])) {
			*ret = (enum vp_counts_kind)i;
			return true;
		}
	return false;
}

static bool counts_protocol_take_address(struct vp_cursor *words, struct vp_counts_line *ret)
{
	uint64_t vcpu = vp_cursor_decimal(words);

	if (vcpu >= UINT32_MAX || !counts_protocol_find_event(vp_cursor_word(words), &ret->event))
		return false;
	ret->vcpu = (uint32_t)vcpu;
	ret->number = vp_cursor_hex(words);
	return true;
}

static bool counts_line_parse(struct vp_slice text, struct vp_counts_line *ret)
{
	struct vp_cursor words = vp_cursor_of(text.bytes, text.size);
	bool good = true;

	*ret = (struct vp_counts_line){0};
	if (!counts_protocol_find_kind(vp_cursor_word(&words), &ret->kind))
		return false;
	if (ret->kind == VP_COUNTS_ADDRESS)
		good = counts_protocol_take_address(&words, ret);
	else if (ret->kind == VP_COUNTS_WITHOUT)
		good = counts_protocol_find_event(vp_cursor_word(&words), &ret->event);
	else if (ret->kind == VP_COUNTS_MARKER)
		ret->number = vp_cursor_hex(&words);
	else
		ret->number = vp_cursor_decimal(&words);
	if (ret->kind == VP_COUNTS_HEAD)
		good = ret->number == 1;
	return good && vp_cursor_ok(&words) && !vp_cursor_left(&words);
}

static struct vp_error *counts_protocol_not_an_answer(const struct vp_counts_answer *answer)
{
	return vp_error_new("sent a malformed reply: line %" PRIu64, answer->lines + 1);
}

/* Callers that print its text make it printable. */
static struct vp_error *counts_protocol_refused(const struct vp_counts_answer *answer,
						struct vp_slice line)
{
	static const char head[] = "error ";
	const size_t skip = sizeof(head) - 1;

	if (line.size <= skip || memcmp(line.bytes, head, skip) != 0)
		return counts_protocol_not_an_answer(answer);
	return vp_error_new("%s: %.*s", answer->whole ? "stopped" : "refuses",
			    (int)(line.size - skip), line.bytes + skip);
}

struct vp_error *vp_counts_answer_take(struct vp_counts_answer *answer, struct vp_slice text,
				       struct vp_counts_line *ret)
{
	if (answer->whole || !counts_line_parse(text, ret))
		return counts_protocol_refused(answer, text);
	bool is_first = !answer->lines, is_end = ret->kind == VP_COUNTS_END;
	if (is_first != (ret->kind == VP_COUNTS_HEAD) || (is_end && ret->number != answer->lines))
		return counts_protocol_not_an_answer(answer);
	answer->lines++;
	answer->addresses += ret->kind == VP_COUNTS_ADDRESS;
	if (answer->addresses > VP_COUNTS_MAX_ADDRESSES)
		return vp_error_new("sent more than %d counter addresses", VP_COUNTS_MAX_ADDRESSES);
	answer->whole = is_end;
	return NULL;
}
