/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import_events.h"

#include <string.h>
#include <xxhash.h>

#include "base/error.h"
#include "schema/trace_records.h"

enum { PREEMPTED = 0x100, MAX_STATE = 0xff, NO_FIELD = UINT16_MAX };

/* Kernel fields that an event of vperf is made of, with names used by older kernels. */
static const struct conversion {
	enum vp_trace_kind kind;
	const char *fields[VP_IMPORT_FIELDS];
} conversions[] = {
    {VP_TRACE_KIND_sched_switch, {"prev_pid", "next_pid", "prev_state"}},
    {VP_TRACE_KIND_sched_wakeup, {"pid", "target_cpu"}},
    {VP_TRACE_KIND_sched_wakeup_new, {"pid", "target_cpu"}},
    {VP_TRACE_KIND_kvm_entry, {NULL}},
    {VP_TRACE_KIND_kvm_exit, {"exit_reason", "guest_rip", "isa"}},
    {VP_TRACE_KIND_kvm_exit, {"exit_reason", "guest_rip"}}, /* without reason names */
    {VP_TRACE_KIND_kvm_inj_virq, {"vector"}},
    {VP_TRACE_KIND_kvm_inj_virq, {"irq"}}, /* older kernels */
    {VP_TRACE_KIND_irq_handler_entry, {"irq"}},
    {VP_TRACE_KIND_irq_handler_exit, {"irq"}},
    {VP_TRACE_KIND_softirq_entry, {"vec"}},
    {VP_TRACE_KIND_softirq_exit, {"vec"}},
    {VP_TRACE_KIND_local_timer_entry, {"vector"}},
    {VP_TRACE_KIND_local_timer_exit, {"vector"}},
};

static uint16_t field_named(const struct vp_event_class *class, const char *name)
{
	for (size_t i = 0; i < class->fields.count; i++)
		if (!strcmp(class->fields.at[i].name, name) &&
		    class->fields.at[i].shape == VP_EVENT_INTEGER)
			return (uint16_t)i;
	return NO_FIELD;
}

/* Returns false if fields are missing. */
static bool convert_class(const struct vp_event_class *class, const struct vp_event_class *own,
			  const struct conversion *conversion, struct vp_import_class *ret)
{
	if (strcmp(own->name, class->name) != 0 || field_named(class, "common_pid") != 0)
		return false;
	for (size_t i = 0; i < VP_IMPORT_FIELDS && conversion->fields[i]; i++) {
		ret->fields[i] = field_named(class, conversion->fields[i]);
		if (ret->fields[i] == NO_FIELD)
			return false;
	}
	ret->own = (uint8_t)(conversion->kind + 1);
	ret->id = own->id;
	return true;
}

static struct vp_error *keep_class(struct vp_import_events *events,
				   const struct vp_event_class *class, struct vp_import_class *ret)
{
	struct vp_event_class *copy;

	VP_TRY(vp_event_classes_add(&events->classes, class->name, &copy));
	ret->id = copy->id;
	vp_vec_each (&class->fields, field)
		VP_TRY(vp_event_class_add_field(copy, field));
	return NULL;
}

static struct vp_error *import_events_add_class(struct vp_import_events *events,
						const struct vp_event_class *class, bool is_host)
{
	struct vp_import_class become = {.fields = {NO_FIELD, NO_FIELD, NO_FIELD}};
	bool converted = false;

	for (size_t i = 0; is_host && !converted && i < VP_ARRAY_SIZE(conversions); i++)
		converted = convert_class(class, &events->classes.at[conversions[i].kind],
					  &conversions[i], &become);
	if (!converted)
		VP_TRY(keep_class(events, class, &become));
	vp_vec_push(&events->become, become);
	return NULL;
}

static void import_events_add_vcpus(struct vp_import_events *events, const vp_vms *vms)
{
	bool inserted;

	vp_vec_each (vms, vm)
		vp_vec_each (&vm->vcpus, vcpu) {
			vp_map_insert(&events->vcpu_of_tid, vcpu->tid,
				      (uint32_t)events->vcpus.count, &inserted);
			struct vp_import_vcpu one = {vp_vm_id(vm), (uint16_t)vcpu->number};
			vp_vec_push(&events->vcpus, one);
		}
}

struct vp_error *vp_import_events_init(struct vp_import_events *events, const char *source,
				       struct vp_slice text, bool is_host, const vp_vms *vms)
{
	VP_TRY(vp_event_classes_parse(source, text.bytes, text.size, &events->given));
	if (is_host)
		VP_TRY(vp_trace_event_classes(&events->classes));
	import_events_add_vcpus(events, vms);
	vp_vec_each (&events->given, class)
		VP_TRY(import_events_add_class(events, class, is_host));
	return NULL;
}

void vp_import_events_deinit(struct vp_import_events *events)
{
	vp_event_classes_deinit(&events->given);
	vp_event_classes_deinit(&events->classes);
	vp_vec_deinit(&events->become);
	vp_map_deinit(&events->vcpu_of_tid);
	vp_map_deinit(&events->comm_of_tid);
	vp_vec_deinit(&events->vcpus);
	vp_buffer_deinit(&events->record);
}

static bool import_events_ends_in(const char *name, const char *end)
{
	size_t size = strlen(name), length = strlen(end);

	return size >= length && !strcmp(name + size - length, end);
}

/* All scheduler tracepoints have the thread's name right before its id. */
static void import_events_note_name(struct vp_import_events *events, struct vp_slice comm,
				    uint32_t tid, struct vp_import_event *event)
{
	size_t size = strnlen(comm.bytes, comm.size);
	uint32_t hash = (uint32_t)XXH64(comm.bytes, size, 0);
	bool inserted;
	uint64_t key = (uint64_t)events->cpu << 32 | tid;
	uint32_t *known = vp_map_insert(&events->comm_of_tid, key, hash, &inserted);

	if (!size || !tid || (!inserted && *known == hash) || event->n_names == VP_IMPORT_NAMES)
		return;
	*known = hash;
	event->names[event->n_names].tid = tid;
	event->names[event->n_names++].comm = (struct vp_slice){comm.bytes, size};
}

/* Reads all fields: those needed, the thread, names. False: the record does not match its class. */
static bool import_events_read_fields(struct vp_import_events *events, size_t kind,
				      struct vp_import_event *event, uint32_t *tid,
				      uint64_t values[VP_IMPORT_FIELDS])
{
	const struct vp_event_class *class = &events->given.at[kind];
	const struct vp_import_class *become = &events->become.at[kind];
	struct vp_cursor fields = vp_event_fields(event->record);
	struct vp_slice comm = {NULL, 0};
	struct vp_event_value value;

	for (size_t i = 0; i < class->fields.count; i++) {
		const struct vp_event_field *field = &class->fields.at[i];
		if (!vp_event_next_value(&fields, field, &value))
			return false;
		*tid = i ? *tid : (uint32_t)value.number;
		for (size_t wanted = 0; wanted < VP_IMPORT_FIELDS; wanted++)
			if (become->fields[wanted] == i)
				values[wanted] = value.number;
		if (comm.bytes && become->own && import_events_ends_in(field->name, "pid"))
			import_events_note_name(events, comm, (uint32_t)value.number, event);
		bool is_comm = field->is_text && import_events_ends_in(field->name, "comm");
		comm = is_comm ? value.bytes : (struct vp_slice){NULL, 0};
	}
	return !vp_cursor_left(&fields);
}

#define PUT(name, ...)                                                                             \
	do {                                                                                       \
		const struct vp_trace_##name made = {.time = time,                                 \
						     .id = VP_TRACE_ID_##name,                     \
						     .size = VP_TRACE_SIZE_##name,                 \
						     __VA_ARGS__};                                 \
		vp_buffer_append(out, &made, VP_TRACE_SIZE_##name);                                \
	} while (0)

static bool put_kvm(const struct vp_import_events *events, enum vp_trace_kind kind, uint64_t time,
		    uint32_t tid, const uint64_t *values, struct vp_buffer *out)
{
	const uint32_t *found = vp_map_find(&events->vcpu_of_tid, tid);

	if (!found)
		return false;
	uint32_t vm = events->vcpus.at[*found].vm;
	uint16_t vcpu = events->vcpus.at[*found].vcpu;
	if (kind == VP_TRACE_KIND_kvm_entry)
		PUT(kvm_entry, .tid = tid, .vm = vm, .vcpu = vcpu);
	else if (kind == VP_TRACE_KIND_kvm_inj_virq)
		PUT(kvm_inj_virq, .tid = tid, .vm = vm, .vcpu = vcpu,
		    .vector = (uint16_t)values[0]);
	else
		PUT(kvm_exit, .tid = tid, .guest_rip = values[1], .vm = vm,
		    .reason = (uint32_t)values[0], .vcpu = vcpu, .vendor = (uint16_t)values[2]);
	return true;
}

/* False: an event of an unknown vCPU. */
static bool import_events_put_own(const struct vp_import_events *events, enum vp_trace_kind kind,
				  uint64_t time, uint32_t tid, const uint64_t *values,
				  struct vp_buffer *out)
{
	uint32_t first = (uint32_t)values[0], second = (uint32_t)values[1];

	switch (kind) {
	case VP_TRACE_KIND_sched_switch:
		PUT(sched_switch, .prev_tid = first, .next_tid = second,
		    .prev_state = (uint16_t)(values[2] & MAX_STATE),
		    .preempted = (values[2] & PREEMPTED) != 0);
		return true;
	case VP_TRACE_KIND_sched_wakeup:
		PUT(sched_wakeup, .tid = tid, .woken_tid = first, .target_cpu = (uint16_t)second);
		return true;
	case VP_TRACE_KIND_sched_wakeup_new:
		PUT(sched_wakeup_new, .tid = tid, .woken_tid = first,
		    .target_cpu = (uint16_t)second);
		return true;
	case VP_TRACE_KIND_irq_handler_entry:
		PUT(irq_handler_entry, .tid = tid, .irq = first);
		return true;
	case VP_TRACE_KIND_irq_handler_exit:
		PUT(irq_handler_exit, .tid = tid, .irq = first);
		return true;
	case VP_TRACE_KIND_softirq_entry:
		PUT(softirq_entry, .tid = tid, .vec = first);
		return true;
	case VP_TRACE_KIND_softirq_exit:
		PUT(softirq_exit, .tid = tid, .vec = first);
		return true;
	case VP_TRACE_KIND_local_timer_entry:
		PUT(local_timer_entry, .tid = tid, .vector = first);
		return true;
	case VP_TRACE_KIND_local_timer_exit:
		PUT(local_timer_exit, .tid = tid, .vector = first);
		return true;
	default:
		return put_kvm(events, kind, time, tid, values, out);
	}
}

bool vp_import_events_next(struct vp_import_events *events, struct vp_cursor *records,
			   struct vp_import_event *ret)
{
	struct vp_cursor peek = *records;
	uint64_t values[VP_IMPORT_FIELDS] = {0};
	uint32_t tid = 0;

	vp_cursor_bytes(&peek, offsetof(struct vp_defined_record, size));
	uint16_t size = vp_cursor_u16(&peek);
	struct vp_slice bytes = vp_cursor_bytes(records, size);
	if (!vp_cursor_ok(records) || size < sizeof(struct vp_defined_record))
		return false;
	struct vp_defined_record *record = (void *)bytes.bytes;
	size_t kind = (size_t)record->id - VP_ID_DEFINED;
	if (record->id < VP_ID_DEFINED || kind >= events->given.count)
		return false;
	const struct vp_import_class *become = &events->become.at[kind];
	*ret = (struct vp_import_event){.record = record, .is_own = become->own != 0};
	if (!import_events_read_fields(events, kind, ret, &tid, values))
		return false;
	record->id = become->id;
	if (!become->own)
		return true;
	events->record.size = 0;
	ret->is_strange = !import_events_put_own(events, (enum vp_trace_kind)(become->own - 1),
						 record->time, tid, values, &events->record);
	ret->record = events->record.bytes;
	return true;
}
