/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/trace_event.h"

#include <string.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/nearest.h"

_Static_assert((int)VP_TRACE_ID_sched_switch == (int)VP_ID_DEFINED,
	       "the first class has the first id");

struct field {
	const char *name, *type, *style, *meaning;
	uint8_t size;
};

#define FIELD(field_type, field_style, field, text)                                                \
	{.name = #field,                                                                           \
	 .type = #field_type,                                                                      \
	 .style = #field_style,                                                                    \
	 .meaning = text,                                                                          \
	 .size = sizeof(vp_type_##field_type)},
#define FIELDS(set, system, event, text)                                                           \
	static const struct field event##_fields[] = {VP_TRACE_FIELDS_##event(FIELD)};
VP_TRACE_EVENTS(FIELDS)

#define EVENT(event_set, system, event, text)                                                      \
	{.set = VP_TRACE_SET_##event_set,                                                          \
	 .name = #system ":" #event,                                                               \
	 .tracepoint = #event,                                                                     \
	 .meaning = text,                                                                          \
	 .fields = event##_fields,                                                                 \
	 .n_fields = VP_ARRAY_SIZE(event##_fields)},
static const struct {
	unsigned set;
	const char *name, *tracepoint, *meaning;
	const struct field *fields;
	size_t n_fields;
} events[] = {VP_TRACE_EVENTS(EVENT)};

static const struct {
	const char *name;
	unsigned bit;
} sets[] = {{"sched", VP_TRACE_SET_sched},       {"kvm", VP_TRACE_SET_kvm},
	    {"irq", VP_TRACE_SET_irq},           {"guest", VP_TRACE_SET_guest | VP_TRACE_SET_kvm},
	    {"block", VP_TRACE_SET_block},       {"net", VP_TRACE_SET_net},
	    {"syscalls", VP_TRACE_SET_syscalls}, {"timer", VP_TRACE_SET_timer}};

static const struct {
	unsigned set;
	const char *name;
} tracepoints[] = {{VP_TRACE_SET_block, "block:block_rq_insert"},
		   {VP_TRACE_SET_block, "block:block_rq_issue"},
		   {VP_TRACE_SET_block, "block:block_rq_complete"},
		   {VP_TRACE_SET_net, "net:net_dev_queue"},
		   {VP_TRACE_SET_net, "net:net_dev_start_xmit"},
		   {VP_TRACE_SET_net, "net:netif_receive_skb"},
		   {VP_TRACE_SET_net, "napi:napi_poll"},
		   {VP_TRACE_SET_syscalls, "raw_syscalls:sys_enter"},
		   {VP_TRACE_SET_syscalls, "raw_syscalls:sys_exit"},
		   {VP_TRACE_SET_timer, "timer:timer_expire_entry"},
		   {VP_TRACE_SET_timer, "timer:timer_expire_exit"},
		   {VP_TRACE_SET_timer, "timer:hrtimer_expire_entry"},
		   {VP_TRACE_SET_timer, "timer:hrtimer_expire_exit"}};

const char *vp_trace_set_tracepoint(unsigned wanted, size_t number)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(tracepoints); i++)
		if (tracepoints[i].set & wanted && !number--)
			return tracepoints[i].name;
	return NULL;
}

static struct vp_error *add_set(struct vp_slice word, unsigned *bits)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, word);
	for (size_t i = 0; i < VP_ARRAY_SIZE(sets); i++) {
		if (vp_slice_is(word, sets[i].name)) {
			*bits |= sets[i].bit;
			return NULL;
		}
		vp_nearest_add(&nearest, sets[i].name);
	}
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_error_usage("option --trace: expected sched, kvm, irq, guest, block, net, "
			      "syscalls and timer, separated by commas, not '%.*s'%s",
			      (int)word.size, word.bytes, near);
}

struct vp_error *vp_trace_sets_parse(const char *text, unsigned *ret)
{
	unsigned bits = 0;

	*ret = VP_TRACE_SETS_ALL;
	if (!text[0])
		return NULL;
	for (;;) {
		size_t size = strcspn(text, ",");
		VP_TRY(add_set((struct vp_slice){text, size}, &bits));
		if (!text[size])
			break;
		text += size + 1;
	}
	*ret = bits;
	return NULL;
}

unsigned vp_trace_set_of(const char *tracepoint)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].tracepoint, tracepoint))
			return events[i].set;
	return 0;
}

struct vp_error *vp_trace_event_classes(vp_event_classes *ret)
{
	struct vp_event_class *event;

	if (ret->count)
		return vp_error_new("events with numbers of their own have to be defined first");
	for (size_t i = 0; i < VP_ARRAY_SIZE(events); i++) {
		VP_TRY(vp_event_classes_add(ret, events[i].name, &event));
		for (size_t n = 0; n < events[i].n_fields; n++) {
			const struct field *field = &events[i].fields[n];
			const struct vp_event_field plain = {
			    .name = (char *)field->name,
			    .shape = VP_EVENT_INTEGER,
			    .size = field->size,
			    .is_hex = !strcmp(field->style, "hex"),
			};
			VP_TRY(vp_event_class_add_field(event, &plain));
		}
	}
	return NULL;
}

void vp_trace_event_document(struct vp_buffer *out)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(events); i++) {
		size_t offset = sizeof(struct vp_defined_record);
		vp_buffer_printf(out,
				 "### %s (id %zu)\n\n%s.\n\n| offset | type | field | meaning "
				 "|\n|---|---|---|---|\n",
				 events[i].name, VP_ID_DEFINED + i, events[i].meaning);
		for (size_t n = 0; n < events[i].n_fields; n++) {
			const struct field *field = &events[i].fields[n];
			vp_buffer_printf(out, "| %zu | %s | %s | %s |\n", offset, field->type,
					 field->name, field->meaning);
			offset += field->size;
		}
		vp_buffer_string(out, "\n");
	}
}
