/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_states.h"

#include <string.h>

#include "schema/records.h"
#include "schema/schema.h"

enum { MAX = 256 }; /* maximum number of vCPUs per packet for vcpu_next */

/* The vCPUs that the packet has named so far, each with its latest state. */
struct named {
	size_t count, last; /* last: index of the last search */
	struct vp_vcpu_span spans[MAX];
};

static bool packet_states_is_of(const struct vp_vcpu_span *one, const struct vp_vcpu_span *other)
{
	return one->tid == other->tid && one->vm == other->vm && one->vcpu == other->vcpu &&
	       one->vendor == other->vendor;
}

/* Index of the span's vCPU; `count` if it is new. */
static size_t packet_states_number_of(struct named *named, const struct vp_vcpu_span *span)
{
	size_t number = named->last;

	if (number < named->count && packet_states_is_of(&named->spans[number], span))
		return number;
	for (number = 0; number < named->count && !packet_states_is_of(&named->spans[number], span);
	     number++)
		;
	named->last = number;
	return number;
}

/* Adds the vCPU of a vcpu_span, unless the table is full. */
static void name(struct named *named, size_t number, const struct vp_vcpu_span *span)
{
	if (number == MAX)
		return;
	named->spans[number] = *span;
	named->count += number == named->count;
}

static bool can_be_short(const struct named *named, size_t number, const struct vp_vcpu_span *span)
{
	return number < named->count && span->time - span->ns == named->spans[number].time &&
	       span->cpu <= UINT8_MAX && span->flags <= UINT8_MAX && span->reason <= UINT16_MAX;
}

static void packet_states_put(struct vp_buffer *out, const void *record, size_t size)
{
	memcpy(vp_buffer_extend(out, size), record, size);
}

static void pack_span(struct named *named, const struct vp_vcpu_span *span, struct vp_buffer *out)
{
	size_t number = packet_states_number_of(named, span);

	if (can_be_short(named, number, span)) {
		const struct vp_vcpu_next next = {.time = span->time,
						  .id = VP_ID_vcpu_next,
						  .which = (uint8_t)number,
						  .state = span->state,
						  .flags = (uint8_t)span->flags,
						  .cpu = (uint8_t)span->cpu,
						  .reason = (uint16_t)span->reason};
		packet_states_put(out, &next, sizeof(next));
	} else {
		packet_states_put(out, span, sizeof(*span));
	}
	name(named, number, span);
}

void vp_states_pack(const char *records, size_t size, struct vp_buffer *ret)
{
	struct named named = {.count = 0};

	for (size_t at = 0; at < size;) {
		const struct vp_record_header *header = (const void *)(records + at);
		size_t length = vp_record_length(header);
		struct vp_vcpu_span span;
		if (header->id == VP_ID_vcpu_span) {
			memcpy(&span, header, sizeof(span));
			pack_span(&named, &span, ret);
		} else {
			packet_states_put(ret, header, length);
		}
		at += length;
	}
}

static bool unpack_next(struct named *named, const struct vp_vcpu_next *next, struct vp_buffer *out)
{
	if (next->which >= named->count || next->time < named->spans[next->which].time)
		return false;
	struct vp_vcpu_span *span = &named->spans[next->which];
	span->ns = next->time - span->time;
	span->time = next->time;
	span->flags = next->flags;
	span->state = next->state;
	span->cpu = next->cpu;
	span->reason = next->reason;
	packet_states_put(out, span, sizeof(*span));
	return true;
}

static bool unpack_record(struct named *named, const void *record, struct vp_buffer *out)
{
	struct vp_record_header header;
	struct vp_vcpu_next next;
	struct vp_vcpu_span span;

	memcpy(&header, record, sizeof(header));
	if (header.id == VP_ID_vcpu_next) {
		memcpy(&next, record, sizeof(next));
		return unpack_next(named, &next, out);
	}
	packet_states_put(out, record, vp_record_size(header.id));
	if (header.id == VP_ID_vcpu_span) {
		memcpy(&span, record, sizeof(span));
		name(named, packet_states_number_of(named, &span), &span);
	}
	return true;
}

size_t vp_states_unpack(const char *records, size_t size, struct vp_buffer *ret)
{
	struct named named = {.count = 0};
	size_t at = 0;

	for (;;) {
		struct vp_record_header header;
		if (size - at < sizeof(header))
			return at;
		memcpy(&header, records + at, sizeof(header));
		size_t length = vp_record_size(header.id);
		if (!length || length > size - at || !unpack_record(&named, records + at, ret))
			return at;
		at += length;
	}
}
