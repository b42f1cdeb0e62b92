/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/ctf/ctf_events.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"

enum {
	NO_CLASS = UINT32_MAX,
	COMM = 16,
	LONGEST = 4096 /* maximum size of a string or an array */
};

/* LTTng's event names, or their prefixes, and the kernel's. */
static const struct {
	const char *from, *to;
} names[] = {
    {"sched_", "sched:sched_"},
    {"kvm_x86_", "kvm:kvm_"},
    {"kvm_", "kvm:kvm_"},
    {"irq_softirq_", "irq:softirq_"},
    {"irq_handler_", "irq:irq_handler_"},
    {"x86_irq_vectors_", "irq_vectors:"},
    {"syscall_entry_", "syscalls:sys_enter_"},
    {"syscall_exit_", "syscalls:sys_exit_"},
    {"timer_hrtimer_", "timer:hrtimer_"},
    {"timer_itimer_", "timer:itimer_"},
    {"timer_", "timer:timer_"},
    {"block_", "block:block_"},
    {"signal_", "signal:signal_"},
};

static char *ctf_events_name_of(const char *name)
{
	if (strchr(name, ':'))
		return vp_strdup(name); /* perf has the kernel's names already */
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		if (!strncmp(name, names[i].from, strlen(names[i].from)))
			return vp_format("%s%s", names[i].to, name + strlen(names[i].from));
	return vp_format("lttng:%s", name);
}

static bool ctf_events_ends_in(const char *name, const char *end)
{
	size_t size = strlen(name), length = strlen(end);

	return size >= length && !strcmp(name + size - length, end);
}

/* The kernel's fields called pid are thread ids, which LTTng calls tid. */
static char *field_name_of(const char *event, const char *name)
{
	bool is_tid = !strcmp(name, "tid") || ctf_events_ends_in(name, "_tid");

	if (strncmp(event, "sched:", 6) != 0 || !is_tid)
		return vp_strdup(name);
	return vp_format("%.*spid", (int)(strlen(name) - 3), name);
}

static bool type_of_integer(const struct vp_babeltrace *bt, const struct bt_field_class *class,
			    struct vp_event_field *ret)
{
	unsigned long type = bt->field_class_get_type(class);

	if (type & VP_BT_BOOL) {
		ret->size = 1;
		return true;
	}
	if (!(type & (VP_BT_UNSIGNED | VP_BT_SIGNED)))
		return false;
	uint64_t bits = bt->field_class_integer_get_field_value_range(class);
	ret->size = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
	ret->is_signed = (type & VP_BT_SIGNED) != 0;
	ret->is_hex =
	    !ret->is_signed && bt->field_class_integer_get_preferred_display_base(class) == 16;
	return true;
}

/* Converts a field's type; false: not supported by records. */
static bool ctf_events_type_of(const struct vp_babeltrace *bt, const struct bt_field_class *class,
			       const char *name, struct vp_event_field *ret)
{
	unsigned long type = bt->field_class_get_type(class);

	*ret = (struct vp_event_field){.name = (char *)name};
	if (type & VP_BT_STRING && ctf_events_ends_in(name, "comm")) {
		*ret = (struct vp_event_field){.name = (char *)name,
					       .shape = VP_EVENT_ARRAY,
					       .size = 1,
					       .is_text = true,
					       .count = COMM};
		return true;
	}
	if (type & VP_BT_STRING) {
		ret->shape = VP_EVENT_STRING;
		return true;
	}
	if (type & VP_BT_ARRAY) {
		ret->shape = VP_EVENT_SEQUENCE;
		class = bt->field_class_array_borrow_element_field_class_const(class);
	}
	return type_of_integer(bt, class, ret);
}

static struct vp_error *add_fields(struct vp_ctf_events *events, const struct bt_event_class *from,
				   struct vp_event_class *class, vp_ctf_members *members)
{
	const struct vp_babeltrace *bt = events->babeltrace;
	const struct bt_field_class *payload =
	    bt->event_class_borrow_payload_field_class_const(from);
	uint64_t count = payload ? bt->field_class_structure_get_member_count(payload) : 0;
	const struct vp_event_field thread = {
	    .name = (char *)"common_pid", .size = 4, .is_signed = true};

	VP_TRY(vp_event_class_add_field(class, &thread));
	for (uint64_t i = 0; i < count && i < UINT16_MAX; i++) {
		const struct bt_field_class_structure_member *member =
		    bt->field_class_structure_borrow_member_by_index_const(payload, i);
		const char *given = bt->field_class_structure_member_get_name(member);
		/* Fields of the tracer: lengths of sequences, and context. */
		if (given[0] == '_' || !strncmp(given, "perf_", 5) || !strncmp(given, "common_", 7))
			continue;
		VP_AUTO_FREE char *name = field_name_of(class->name, given);
		struct vp_event_field field;
		if (!ctf_events_type_of(
			bt, bt->field_class_structure_member_borrow_field_class_const(member), name,
			&field)) {
			events->left_out++;
			continue;
		}
		VP_TRY(vp_event_class_add_field(class, &field));
		vp_vec_push(members, (uint16_t)i);
	}
	return NULL;
}

static uint32_t ctf_events_add_class(struct vp_ctf_events *events,
				     const struct bt_event_class *from)
{
	const char *given = events->babeltrace->event_class_get_name(from);
	VP_AUTO_FREE char *name = ctf_events_name_of(given ? given : "unnamed");
	vp_ctf_members members = {0};
	struct vp_event_class *class;
	struct vp_error *error = vp_event_classes_add(&events->classes, name, &class);

	if (error) {
		vp_error_free(error);
		return NO_CLASS;
	}
	error = add_fields(events, from, class, &members);
	vp_vec_push(&events->members, members);
	bool good = !error;
	vp_error_free(error);
	return good ? (uint32_t)events->classes.count - 1 : NO_CLASS;
}

uint32_t vp_ctf_events_class(struct vp_ctf_events *events, const struct bt_event *event)
{
	const struct vp_babeltrace *bt = events->babeltrace;
	const struct bt_event_class *from = bt->event_borrow_class_const(event);
	uint64_t stream = bt->stream_class_get_id(
	    bt->stream_borrow_class_const(bt->event_borrow_stream_const(event)));
	uint64_t id = bt->event_class_get_id(from), key = stream << 32 | id;
	const uint32_t *known = vp_map_find(&events->class_of, key);
	bool inserted;

	if ((stream | id) >> 32)
		return NO_CLASS;
	if (known)
		return *known;
	uint32_t class = ctf_events_add_class(events, from);
	vp_map_insert(&events->class_of, key, class, &inserted);
	return class;
}

static uint64_t ctf_events_number_of(const struct vp_babeltrace *bt, const struct bt_field *field)
{
	unsigned long type = bt->field_get_class_type(field);

	if (type & VP_BT_UNSIGNED)
		return bt->field_integer_unsigned_get_value(field);
	if (type & VP_BT_SIGNED)
		return (uint64_t)bt->field_integer_signed_get_value(field);
	return type & VP_BT_BOOL ? (uint64_t)bt->field_bool_get_value(field) : 0;
}

static struct vp_slice ctf_events_text_of(const struct vp_babeltrace *bt,
					  const struct bt_field *field)
{
	if (!(bt->field_get_class_type(field) & VP_BT_STRING))
		return (struct vp_slice){"", 0};
	uint64_t size = bt->field_string_get_length(field);
	return (struct vp_slice){bt->field_string_get_value(field),
				 size < LONGEST ? (size_t)size : LONGEST};
}

static void put_sequence(const struct vp_babeltrace *bt, const struct vp_event_field *type,
			 const struct bt_field *field, struct vp_buffer *out)
{
	bool is_one = bt->field_get_class_type(field) & VP_BT_ARRAY;
	uint64_t all = is_one ? bt->field_array_get_length(field) : 0;
	uint16_t count = (uint16_t)(all < LONGEST / type->size ? all : LONGEST / type->size);

	vp_buffer_append(out, &count, sizeof(count));
	for (uint16_t i = 0; i < count; i++) {
		uint64_t value = ctf_events_number_of(
		    bt, bt->field_array_borrow_element_field_by_index_const(field, i));
		vp_buffer_append(out, &value, type->size); /* little endian */
	}
}

static void ctf_events_put_field(const struct vp_babeltrace *bt, const struct vp_event_field *type,
				 const struct bt_field *field, struct vp_buffer *out)
{
	struct vp_slice text;

	switch (type->shape) {
	case VP_EVENT_INTEGER:
		vp_event_put_integer(out, type, ctf_events_number_of(bt, field));
		break;
	case VP_EVENT_SEQUENCE:
		put_sequence(bt, type, field, out);
		break;
	case VP_EVENT_ARRAY:
		text = ctf_events_text_of(bt, field);
		vp_event_put_bytes(out, type, text.bytes, strnlen(text.bytes, text.size));
		break;
	case VP_EVENT_STRING:
		text = ctf_events_text_of(bt, field);
		vp_buffer_append(out, text.bytes, strnlen(text.bytes, text.size));
		vp_buffer_append(out, "", 1);
		break;
	}
}

bool vp_ctf_events_convert(const struct vp_ctf_events *events, uint32_t offset,
			   const struct bt_event *event, uint64_t time, uint32_t tid,
			   struct vp_buffer *out)
{
	const struct vp_babeltrace *bt = events->babeltrace;
	const struct vp_event_class *class = &events->classes.at[offset];
	const vp_ctf_members *members = &events->members.at[offset];
	const struct bt_field *payload = bt->event_borrow_payload_field_const(event);
	size_t begin = out->size;

	vp_event_begin(out, class, time);
	vp_event_put_integer(out, &class->fields.at[0], tid);
	for (size_t i = 0; payload && i < members->count; i++)
		ctf_events_put_field(
		    bt, &class->fields.at[i + 1],
		    bt->field_structure_borrow_member_field_by_index_const(payload, members->at[i]),
		    out);
	struct vp_error *error = vp_event_end(out, begin);
	vp_error_free(error);
	return !error;
}

static bool ctf_events_number_in(const struct vp_babeltrace *bt, const struct bt_field *structure,
				 const char *name, uint64_t *ret)
{
	const struct bt_field *field =
	    structure ? bt->field_structure_borrow_member_field_by_name_const(structure, name)
		      : NULL;

	if (!field || !(bt->field_get_class_type(field) & (VP_BT_UNSIGNED | VP_BT_SIGNED)))
		return false;
	*ret = ctf_events_number_of(bt, field);
	return true;
}

bool vp_ctf_number(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
		   const char *name, uint64_t *ret)
{
	return ctf_events_number_in(babeltrace, babeltrace->event_borrow_payload_field_const(event),
				    name, ret);
}

bool vp_ctf_context_number(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
			   const char *name, uint64_t *ret)
{
	const struct bt_packet *packet = babeltrace->event_borrow_packet_const(event);

	return ctf_events_number_in(babeltrace,
				    babeltrace->event_borrow_common_context_field_const(event),
				    name, ret) ||
	       ctf_events_number_in(babeltrace,
				    babeltrace->event_borrow_specific_context_field_const(event),
				    name, ret) ||
	       (packet &&
		ctf_events_number_in(
		    babeltrace, babeltrace->packet_borrow_context_field_const(packet), name, ret));
}

struct vp_slice vp_ctf_text(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
			    const char *name)
{
	const struct bt_field *payload = babeltrace->event_borrow_payload_field_const(event);
	const struct bt_field *field =
	    payload ? babeltrace->field_structure_borrow_member_field_by_name_const(payload, name)
		    : NULL;

	return field ? ctf_events_text_of(babeltrace, field) : (struct vp_slice){"", 0};
}
