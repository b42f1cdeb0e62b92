/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/lttng_events.h"

#include <string.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/vec.h"
#include "schema/exit_reason.h"
#include "schema/records.h"

enum { NO_THREAD = -1, VMX = 1 /* KVM_ISA_VMX */ };
enum { COMM = 16, USUAL_PRIO = 20, REAL_TIME_PRIOS = 100, PREEMPTED = 0x100, MAX_STATE = 0x7ff };

/* Conversion of a value. */
enum kind { S32, U32, U64, STATE, PRIO, REASON, ISA, COMM_TEXT, STRING };

struct field {
	const char *name;
	enum kind kind;
	const char *from[2]; /* one of these fields; @tid, @comm, @vcpu of the event */
};

/* Sources are either vperf's own events, which have fewer fields, or the kernel's tracepoint of the
 * same name. */
struct event {
	const char *from, *name;
	bool of_host; /* not in a guest's trace: Trace Compass would take it for a host */
	struct field fields[9];
};

static const struct event events[] = {
    {"sched:sched_switch",
     "sched_switch",
     false,
     {{"prev_comm", COMM_TEXT, {"prev_comm", "@comm"}},
      {"prev_tid", S32, {"prev_pid", "prev_tid"}},
      {"prev_prio", PRIO, {"prev_prio"}},
      {"prev_state", STATE, {"prev_state"}},
      {"next_comm", COMM_TEXT, {"next_comm"}},
      {"next_tid", S32, {"next_pid", "next_tid"}},
      {"next_prio", PRIO, {"next_prio"}}}},
    {"sched:sched_wakeup",
     "sched_wakeup",
     false,
     {{"comm", COMM_TEXT, {"its_comm", "woken_comm"}},
      {"tid", S32, {"pid", "woken_tid"}},
      {"prio", PRIO, {"prio"}},
      {"target_cpu", S32, {"target_cpu"}}}},
    {"sched:sched_wakeup_new",
     "sched_wakeup_new",
     false,
     {{"comm", COMM_TEXT, {"its_comm", "woken_comm"}},
      {"tid", S32, {"pid", "woken_tid"}},
      {"prio", PRIO, {"prio"}},
      {"target_cpu", S32, {"target_cpu"}}}},
    {"sched:sched_waking",
     "sched_waking",
     false,
     {{"comm", COMM_TEXT, {"its_comm"}},
      {"tid", S32, {"pid"}},
      {"prio", PRIO, {"prio"}},
      {"target_cpu", S32, {"target_cpu"}}}},
    {"sched:sched_process_fork",
     "sched_process_fork",
     false,
     {{"parent_comm", COMM_TEXT, {"parent_comm"}},
      {"parent_tid", S32, {"parent_pid"}},
      {"parent_pid", S32, {"parent_pid"}},
      {"child_comm", COMM_TEXT, {"child_comm"}},
      {"child_tid", S32, {"child_pid"}},
      {"child_pid", S32, {"child_pid"}}}},
    {"sched:sched_process_exit",
     "sched_process_exit",
     false,
     {{"comm", COMM_TEXT, {"its_comm"}}, {"tid", S32, {"pid"}}, {"prio", PRIO, {"prio"}}}},
    {"sched:sched_process_exec",
     "sched_process_exec",
     false,
     {{"filename", STRING, {"filename"}}, {"tid", S32, {"pid"}}, {"old_tid", S32, {"old_pid"}}}},
    {"irq:irq_handler_entry",
     "irq_handler_entry",
     false,
     {{"irq", S32, {"irq"}}, {"name", STRING, {"name"}}}},
    {"irq:irq_handler_exit",
     "irq_handler_exit",
     false,
     {{"irq", S32, {"irq"}}, {"ret", S32, {"ret"}}}},
    {"irq:softirq_raise", "irq_softirq_raise", false, {{"vec", U32, {"vec"}}}},
    {"irq:softirq_entry", "irq_softirq_entry", false, {{"vec", U32, {"vec"}}}},
    {"irq:softirq_exit", "irq_softirq_exit", false, {{"vec", U32, {"vec"}}}},
    {"irq_vectors:local_timer_entry",
     "x86_irq_vectors_local_timer_entry",
     false,
     {{"vector", S32, {"vector"}}}},
    {"irq_vectors:local_timer_exit",
     "x86_irq_vectors_local_timer_exit",
     false,
     {{"vector", S32, {"vector"}}}},
    {"kvm:kvm_entry", "kvm_x86_entry", true, {{"vcpu_id", U32, {"vcpu_id", "@vcpu"}}}},
    {"kvm:kvm_exit",
     "kvm_x86_exit",
     true,
     {{"exit_reason", REASON, {"exit_reason", "reason"}},
      {"guest_rip", U64, {"guest_rip"}},
      {"isa", ISA, {0}},
      {"vcpu_id", U32, {"vcpu_id", "@vcpu"}}}},
    {"kvm:kvm_inj_virq", "kvm_x86_inj_virq", true, {{"irq", U32, {"irq", "vector"}}}},
};

/* Events written by exporters, in the order of enum vp_lttng_synthetic. */
static const struct event synthetic[] = {
    {"",
     "lttng_statedump_process_state",
     false,
     {{"tid", S32, {0}},
      {"pid", S32, {0}},
      {"ppid", S32, {0}},
      {"name", COMM_TEXT, {0}},
      {"type", S32, {0}},
      {"mode", S32, {0}},
      {"submode", S32, {0}},
      {"status", S32, {0}},
      {"cpu", U32, {0}}}},
    {"", "vmsync_gh_guest", false, {{"cnt", U32, {0}}, {"vm_uid", U64, {0}}}},
    {"", "vmsync_gh_host", true, {{"cnt", U32, {0}}, {"vm_uid", U64, {0}}}},
};

static struct vp_event_field lttng_events_type_of(const struct field *field)
{
	struct vp_event_field type = {
	    .name = (char *)field->name, .size = 4, .is_signed = true, .count = 0};

	switch (field->kind) {
	case S32:
	case PRIO:
		break;
	case U32:
	case REASON:
	case ISA:
		type.is_signed = false;
		break;
	case STATE:
		type.size = 8;
		break;
	case U64:
		type.size = 8;
		type.is_signed = false;
		type.is_hex = true;
		break;
	case COMM_TEXT:
		type.shape = VP_EVENT_ARRAY;
		type.is_text = true;
		type.size = 1;
		type.is_signed = false;
		type.count = COMM;
		break;
	case STRING:
		type.shape = VP_EVENT_STRING;
		type.size = 0;
		break;
	}
	return type;
}

/* The last field of every event. LTTng records the tid as an optional context. As a field it does
 * no harm in other readers, and without it a thread that is never switched would be unknown. */
static const struct vp_event_field thread_field = {
    .name = (char *)"common_pid", .size = 4, .is_signed = true};

static struct vp_error *lttng_events_add_class(const struct event *event, vp_event_classes *classes)
{
	struct vp_event_class *class;

	VP_TRY(vp_event_classes_add(classes, event->name, &class));
	for (const struct field *field = event->fields;
	     field < event->fields + VP_ARRAY_SIZE(event->fields) && field->name; field++) {
		const struct vp_event_field type = lttng_events_type_of(field);
		VP_TRY(vp_event_class_add_field(class, &type));
	}
	return vp_event_class_add_field(class, &thread_field);
}

struct vp_error *vp_lttng_classes(vp_event_classes *ret)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(events); i++)
		VP_TRY(lttng_events_add_class(&events[i], ret));
	for (size_t i = 0; i < VP_ARRAY_SIZE(synthetic); i++)
		VP_TRY(lttng_events_add_class(&synthetic[i], ret));
	return NULL;
}

/* The first of the source fields that the event has. */
static const struct vp_script_field *lttng_events_find(const struct vp_script_event *event,
						       const struct field *field)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(field->from) && field->from[i]; i++)
		vp_vec_each (&event->fields, have)
			if (!strcmp(have->name, field->from[i]))
				return have;
	return NULL;
}

static bool takes(const struct field *field, const char *own)
{
	return (field->from[0] && !strcmp(field->from[0], own)) ||
	       (field->from[1] && !strcmp(field->from[1], own));
}

static struct vp_slice lttng_events_text_of(const struct vp_script_event *event,
					    const struct field *field)
{
	const struct vp_script_field *have = lttng_events_find(event, field);
	const char *text = have ? have->text : takes(field, "@comm") ? event->comm : NULL;

	if (text && !strcmp(text, "-"))
		return (struct vp_slice){"", 0}; /* unknown thread */
	if (text)
		return (struct vp_slice){text, strlen(text)};
	if (have && have->type->shape != VP_EVENT_INTEGER)
		return (struct vp_slice){have->value.bytes.bytes,
					 strnlen(have->value.bytes.bytes, have->value.bytes.size)};
	return (struct vp_slice){"", 0};
}

/* SVM exit codes by name, and the equivalent VMX reason. */
static const struct {
	const char *name;
	uint32_t vmx;
} svm[] = {{"INTR", 1},     {"VINTR", 7},   {"CPUID", 10},   {"HLT", 12},     {"INVLPG", 14},
	   {"RDPMC", 15},   {"RDTSC", 16},  {"VMMCALL", 18}, {"IOIO", 30},    {"PAUSE", 40},
	   {"MONITOR", 39}, {"MWAIT", 36},  {"NPF", 48},     {"WBINVD", 54},  {"XSETBV", 55},
	   {"INVPCID", 58}, {"RDTSCP", 51}, {"NMI", 0},      {"SHUTDOWN", 2}, {"INIT", 3}};

/* VMX_UNKNOWN, VM-entry failure due to invalid guest state, is a reason that KVM never records. */
enum {
	VMX_REASONS = 86,
	VMX_UNKNOWN = 33,
	VMX_EXCEPTION = 0,
	VMX_CR = 28,
	VMX_DR = 29,
	VMX_WRMSR = 32
};

static uint32_t reason_of_svm(const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(svm); i++)
		if (!strcmp(svm[i].name, name))
			return svm[i].vmx;
	if (!strcmp(name, "MSR"))
		return VMX_WRMSR;
	if (!strncmp(name, "DR", 2))
		return VMX_DR;
	if (!strncmp(name, "CR", 2))
		return VMX_CR;
	return !strncmp(name, "EXCP", 4) ? VMX_EXCEPTION : VMX_UNKNOWN;
}

static uint32_t lttng_events_reason_of(const struct vp_script_field *have)
{
	char name[VP_EXIT_NAME_SIZE];

	if (!have)
		return VMX_UNKNOWN;
	if (!have->text)
		return (uint32_t)have->value.number;
	if (have->value.number < VMX_REASONS &&
	    !strcmp(vp_exit_reason_name(VP_VENDOR_INTEL, (uint32_t)have->value.number, name),
		    have->text))
		return (uint32_t)have->value.number;
	return reason_of_svm(have->text);
}

/* A preempted thread is runnable, regardless of the other bits. */
static uint64_t lttng_events_state_of(const struct vp_script_field *have)
{
	uint64_t state = have ? have->value.number : 0;

	if (!have || (have->text ? have->text[0] == 'R' : (state & PREEMPTED) != 0))
		return 0;
	return state & MAX_STATE;
}

static uint64_t lttng_events_number_of(const struct vp_script_event *event,
				       const struct field *field)
{
	const struct vp_script_field *have = lttng_events_find(event, field);

	switch (field->kind) {
	case REASON:
		return lttng_events_reason_of(have);
	case ISA:
		return VMX;
	case STATE:
		return lttng_events_state_of(have);
	case PRIO:
		return have ? have->value.number - REAL_TIME_PRIOS : USUAL_PRIO;
	default:
		break;
	}
	if (have)
		return have->value.number;
	return takes(field, "@vcpu") && event->has_vcpu ? event->vcpu : 0;
}

static void lttng_events_put_field(const struct vp_script_event *event, const struct field *field,
				   const struct vp_event_field *type, struct vp_buffer *out)
{
	if (field->kind == STRING) {
		struct vp_slice text = lttng_events_text_of(event, field);
		vp_buffer_append(out, text.bytes, text.size);
		vp_buffer_append(out, "", 1);
	} else if (field->kind == COMM_TEXT) {
		struct vp_slice text = lttng_events_text_of(event, field);
		vp_event_put_bytes(out, type, text.bytes, text.size);
	} else {
		vp_event_put_integer(out, type, lttng_events_number_of(event, field));
	}
}

/* False: too long for a record. */
static bool lttng_events_end_of(struct vp_buffer *out, size_t begin)
{
	struct vp_error *error = vp_event_end(out, begin);

	vp_error_free(error);
	return !error;
}

bool vp_lttng_convert(const vp_event_classes *classes, const struct vp_script_event *event,
		      struct vp_buffer *out)
{
	size_t number = 0, begin = out->size;

	while (number < VP_ARRAY_SIZE(events) && strcmp(events[number].from, event->name) != 0)
		number++;
	if (number == VP_ARRAY_SIZE(events) || (event->of_guest && events[number].of_host))
		return false;
	const struct vp_event_class *class = &classes->at[number];
	vp_event_begin(out, class, event->time);
	for (size_t i = 0; i + 1 < class->fields.count; i++)
		lttng_events_put_field(event, &events[number].fields[i], &class->fields.at[i], out);
	vp_event_put_integer(out, &thread_field, event->has_tid ? event->tid : (uint64_t)NO_THREAD);
	return lttng_events_end_of(out, begin);
}

static const struct vp_event_class *class_named(const vp_event_classes *classes, const char *name)
{
	const struct vp_event_class *class = classes->at;

	while (strcmp(class->name, name) != 0)
		class ++;
	return class;
}

/* Appends a synthetic record with these numbers and texts, in order, without a thread. */
static void put_synthetic(const struct vp_event_class *class, uint64_t time, const uint64_t *values,
			  const char *const *texts, struct vp_buffer *out)
{
	size_t begin = out->size;

	vp_event_begin(out, class, time);
	for (size_t i = 0; i + 1 < class->fields.count; i++) {
		const struct vp_event_field *type = &class->fields.at[i];
		if (type->shape == VP_EVENT_INTEGER) {
			vp_event_put_integer(out, type, *values++);
		} else {
			vp_event_put_bytes(out, type, *texts, strlen(*texts));
			texts++;
		}
	}
	vp_event_put_integer(out, &thread_field, (uint64_t)NO_THREAD);
	lttng_events_end_of(out, begin);
}

void vp_lttng_put_process(const vp_event_classes *classes, uint64_t time, uint32_t tid,
			  uint32_t pid, const char *name, struct vp_buffer *out)
{
	enum { USER_THREAD = 0, SYSTEM_CALL = 5, WAITING = 5 };
	const uint64_t values[] = {tid, pid, 1, USER_THREAD, SYSTEM_CALL, 0, WAITING, 0};

	put_synthetic(class_named(classes, synthetic[VP_LTTNG_PROCESS].name), time, values, &name,
		      out);
}

void vp_lttng_put_mark(const vp_event_classes *classes, enum vp_lttng_synthetic side, uint64_t time,
		       uint32_t number, uint64_t vm, struct vp_buffer *out)
{
	const uint64_t values[] = {number, vm};

	put_synthetic(class_named(classes, synthetic[side].name), time, values, NULL, out);
}

void vp_lttng_put_switch(const vp_event_classes *classes, uint64_t time,
			 const struct vp_lttng_thread *prev, const struct vp_lttng_thread *next,
			 struct vp_buffer *out)
{
	const uint64_t values[] = {prev->tid, USUAL_PRIO, 1, next->tid, USUAL_PRIO};
	const char *const texts[] = {prev->comm, next->comm};

	put_synthetic(class_named(classes, "sched_switch"), time, values, texts, out);
}

void vp_lttng_put_entry(const vp_event_classes *classes, uint64_t time, uint32_t vcpu,
			struct vp_buffer *out)
{
	const uint64_t values[] = {vcpu};

	put_synthetic(class_named(classes, "kvm_x86_entry"), time, values, NULL, out);
}

void vp_lttng_put_exit(const vp_event_classes *classes, uint64_t time, uint32_t vcpu,
		       struct vp_buffer *out)
{
	enum { EXTERNAL_INTERRUPT = 1 };
	const uint64_t values[] = {EXTERNAL_INTERRUPT, 0, VMX, vcpu};

	put_synthetic(class_named(classes, "kvm_x86_exit"), time, values, NULL, out);
}
