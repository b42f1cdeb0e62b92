/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/tracedat_events.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "schema/event_class.h"
#include "schema/exit_reason.h"
#include "schema/records.h"

enum { COMM = 16, HEAD = 8, USUAL_PRIO = 120, PREEMPTED = 0x100, MAX_STATE = 0xff };

/* Conversion of a field of vperf's own events. */
enum kind { S32, U32, U64, STATE, PRIO, ISA, TEXT };

struct own_field {
	const char *name;
	enum kind kind;
	const char *from; /* source: a field; @comm, @vcpu of the event; NULL: 0 */
};

/* An event of vperf with fewer fields than the kernel's tracepoint of the same name. */
struct vp_ftrace_own {
	const char *name;
	const char *mark; /* a field that the kernel's event lacks; or NULL */
	struct own_field fields[9];
};

#define WAKEUP                                                                                     \
	{                                                                                          \
		{"comm", TEXT, "woken_comm"}, {"pid", S32, "woken_tid"}, {"prio", PRIO, NULL},     \
		{                                                                                  \
			"target_cpu", S32, "target_cpu"                                            \
		}                                                                                  \
	}

static const struct vp_ftrace_own owns[] = {
    {"sched:sched_switch",
     "prev_tid",
     {{"prev_comm", TEXT, "@comm"},
      {"prev_pid", S32, "prev_tid"},
      {"prev_prio", PRIO, NULL},
      {"prev_state", STATE, "prev_state"},
      {"next_comm", TEXT, "next_comm"},
      {"next_pid", S32, "next_tid"},
      {"next_prio", PRIO, NULL}}},
    {"sched:sched_wakeup", "woken_tid", WAKEUP},
    {"sched:sched_wakeup_new", "woken_tid", WAKEUP},
    {"kvm:kvm_entry", NULL, {{"vcpu_id", U32, "@vcpu"}, {"rip", U64, NULL}}},
    {"kvm:kvm_exit",
     "reason",
     {{"exit_reason", U32, "reason"},
      {"guest_rip", U64, "guest_rip"},
      {"isa", ISA, "reason"},
      {"info1", U64, NULL},
      {"info2", U64, NULL},
      {"intr_info", U32, NULL},
      {"error_code", U32, NULL},
      {"vcpu_id", U32, "@vcpu"}}},
    {"vperf:guest_switch",
     "guest_tid",
     {{"vcpu_id", U32, "@vcpu"},
      {"guest_comm", TEXT, "guest_comm"},
      {"guest_tid", U32, "guest_tid"},
      {"guest_pid", U32, "guest_pid"},
      {"switches", U32, "switches"}}},
};

static const struct vp_script_field *tracedat_events_find(const struct vp_script_event *event,
							  const char *name)
{
	vp_vec_each (&event->fields, field)
		if (!strcmp(field->name, name))
			return field;
	return NULL;
}

/* vperf's own kvm_entry has the guest RIP. */
static bool is_own(const struct vp_ftrace_own *own, const struct vp_script_event *event)
{
	return !strcmp(own->name, event->name) &&
	       (own->mark ? tracedat_events_find(event, own->mark) != NULL : !event->fields.count);
}

static const struct vp_ftrace_own *tracedat_events_own_of(const struct vp_script_event *event)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(owns); i++)
		if (is_own(&owns[i], event))
			return &owns[i];
	return NULL;
}

static struct vp_ftrace_field tracedat_events_type_of(const struct own_field *field)
{
	bool wide = field->kind == U64 || field->kind == STATE, text = field->kind == TEXT;

	return (struct vp_ftrace_field){.shape = text ? VP_FTRACE_ARRAY : VP_FTRACE_NUMBER,
					.size = text   ? 1
						: wide ? 8
						       : 4,
					.count = text ? COMM : 1,
					.is_signed = field->kind == S32 || field->kind == PRIO ||
						     field->kind == STATE,
					.is_hex = field->kind == U64,
					.is_text = text};
}

/* Fields with the name of a common field get the prefix "its_". */
static const char *kernels_name(const char *name)
{
	return strncmp(name, "its_", 4) ? name : name + 4;
}

static struct vp_ftrace_field type_of_tracepoint(const struct vp_script_field *field)
{
	const struct vp_event_field *type = field->type;
	bool number = type->shape == VP_EVENT_INTEGER, string = type->shape == VP_EVENT_STRING;
	struct vp_ftrace_field ret = {.size = string ? 1 : type->size,
				      .count = type->shape == VP_EVENT_ARRAY ? type->count : 1,
				      .is_signed = type->is_signed,
				      .is_hex = type->is_hex,
				      .is_text = string || type->is_text};

	ret.shape = number                          ? VP_FTRACE_NUMBER
		    : type->shape == VP_EVENT_ARRAY ? VP_FTRACE_ARRAY
						    : VP_FTRACE_DYNAMIC;
	return ret;
}

/* Appended after the others, aligned to its size. */
static void tracedat_events_add_field(struct vp_ftrace_format *format, struct vp_ftrace_field field,
				      const char *name, uint32_t from)
{
	uint16_t alignment = field.shape == VP_FTRACE_DYNAMIC ? 4 : field.size;
	uint32_t size = field.shape == VP_FTRACE_DYNAMIC ? 4U : field.size * (uint32_t)field.count;

	field.name = vp_strdup(name);
	field.from = from;
	field.offset = (uint16_t)((format->size + alignment - 1) / alignment * alignment);
	format->size = (uint16_t)(field.offset + size);
	vp_vec_push(&format->fields, field);
}

void vp_ftrace_format_make(const struct vp_script_event *event, uint16_t id,
			   struct vp_ftrace_format *ret)
{
	const struct vp_ftrace_own *own = tracedat_events_own_of(event);

	*ret = (struct vp_ftrace_format){
	    .name = vp_strdup(event->name), .id = id, .size = HEAD, .own = own};
	for (uint32_t i = 0; own && i < VP_ARRAY_SIZE(own->fields) && own->fields[i].name; i++)
		tracedat_events_add_field(ret, tracedat_events_type_of(&own->fields[i]),
					  own->fields[i].name, i);
	for (uint32_t i = 0; !own && i < event->fields.count; i++)
		tracedat_events_add_field(ret, type_of_tracepoint(&event->fields.at[i]),
					  kernels_name(event->fields.at[i].name), i);
}

void vp_ftrace_format_deinit(struct vp_ftrace_format *format)
{
	vp_vec_each (&format->fields, field)
		free(field->name);
	vp_vec_deinit(&format->fields);
	free(format->name);
}

bool vp_ftrace_format_is_of(const struct vp_ftrace_format *format,
			    const struct vp_script_event *event)
{
	if (strcmp(format->name, event->name) != 0 || tracedat_events_own_of(event) != format->own)
		return false;
	if (format->own)
		return true;
	if (format->fields.count != event->fields.count)
		return false;
	vp_vec_each (&format->fields, field) {
		const struct vp_script_field *have = &event->fields.at[field->from];
		struct vp_ftrace_field type = type_of_tracepoint(have);
		if (type.shape != field->shape || type.size != field->size ||
		    type.count != field->count ||
		    strcmp(kernels_name(have->name), field->name) != 0)
			return false;
	}
	return true;
}

static void put_field_text(const struct vp_ftrace_field *field, struct vp_buffer *out)
{
	static const char *const types[] = {
	    [1] = "char", [2] = "short", [4] = "int", [8] = "long long"};
	bool dynamic = field->shape == VP_FTRACE_DYNAMIC;
	const char *type = types[field->size];

	vp_buffer_printf(out, "\tfield:%s%s%s%s %s", dynamic ? "__data_loc " : "",
			 field->is_signed || field->is_text ? "" : "unsigned ", type,
			 dynamic ? "[]" : "", field->name);
	if (field->shape == VP_FTRACE_ARRAY)
		vp_buffer_printf(out, "[%u]", field->count);
	vp_buffer_printf(out, ";\toffset:%u;\tsize:%u;\tsigned:%d;\n", field->offset,
			 dynamic ? 4U : (unsigned)field->size * field->count, field->is_signed);
}

/* The print format; elements of arrays are not printed. */
static void put_print_format(const struct vp_ftrace_format *format, struct vp_buffer *out)
{
	bool begun = false;

	vp_buffer_string(out, "\nprint fmt: \"");
	vp_vec_each (&format->fields, field) {
		const char *how = field->is_text     ? "%s"
				  : field->is_hex    ? "0x%llx"
				  : field->is_signed ? "%lld"
						     : "%llu";
		if (!field->is_text && field->shape != VP_FTRACE_NUMBER)
			continue;
		vp_buffer_printf(out, "%s%s=%s", begun ? " " : "", field->name, how);
		begun = true;
	}
	vp_buffer_string(out, "\"");
	vp_vec_each (&format->fields, field) {
		if (field->is_text && field->shape == VP_FTRACE_DYNAMIC)
			vp_buffer_printf(out, ", __get_str(%s)", field->name);
		else if (field->is_text || field->shape == VP_FTRACE_NUMBER)
			vp_buffer_printf(out, ", REC->%s", field->name);
	}
	vp_buffer_string(out, "\n");
}

void vp_ftrace_format_text(const struct vp_ftrace_format *format, struct vp_buffer *out)
{
	const char *colon = strchr(format->name, ':');

	vp_buffer_printf(out,
			 "name: %s\nID: %u\nformat:\n"
			 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			 "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			 "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
			 "\tsigned:0;\n"
			 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
			 colon ? colon + 1 : format->name, format->id);
	vp_vec_each (&format->fields, field)
		put_field_text(field, out);
	put_print_format(format, out);
}

/* A preempted thread is runnable, regardless of its other bits. */
static uint64_t tracedat_events_state_of(const struct vp_script_field *have)
{
	bool runs = have && have->text && have->text[0] == 'R';

	if (runs)
		return have->text[1] == '+' ? PREEMPTED : 0;
	return have ? have->value.number & MAX_STATE : 0;
}

/* KVM's numbering: 1 VMX, 2 SVM. */
static uint64_t isa_of(const struct vp_script_field *have)
{
	char name[VP_EXIT_NAME_SIZE];
	bool intel =
	    have && have->text &&
	    !strcmp(vp_exit_reason_name(VP_VENDOR_INTEL, (uint32_t)have->value.number, name),
		    have->text);

	return intel ? 1 : 2;
}

static uint64_t own_number(const struct vp_script_event *event, const struct own_field *field)
{
	const struct vp_script_field *have =
	    field->from ? tracedat_events_find(event, field->from) : NULL;

	switch (field->kind) {
	case PRIO:
		return USUAL_PRIO;
	case STATE:
		return tracedat_events_state_of(have);
	case ISA:
		return isa_of(have);
	default:
		break;
	}
	if (field->from && !strcmp(field->from, "@vcpu"))
		return event->has_vcpu ? event->vcpu : 0;
	return have ? have->value.number : 0;
}

static const char *own_text(const struct vp_script_event *event, const struct own_field *field)
{
	if (!strcmp(field->from, "@comm"))
		return event->comm ? event->comm : "";
	const struct vp_script_field *have = tracedat_events_find(event, field->from);
	/* "-" is printed for a thread without a name */
	return have && have->text && strcmp(have->text, "-") != 0 ? have->text : "";
}

static void tracedat_events_put_own(const struct vp_ftrace_format *format,
				    const struct vp_script_event *event, char *at)
{
	vp_vec_each (&format->fields, field) {
		const struct own_field *own = &format->own->fields[field->from];
		if (field->is_text) {
			const char *text = own_text(event, own);
			memcpy(at + field->offset, text, strnlen(text, COMM - 1));
		} else {
			uint64_t number = own_number(event, own);
			memcpy(at + field->offset, &number, field->size);
		}
	}
}

/* The descriptor of a dynamic field: size and offset of its bytes. */
static void put_dynamic(const struct vp_ftrace_field *field, const struct vp_slice *bytes,
			size_t begin, struct vp_buffer *out)
{
	uint32_t offset = (uint32_t)(out->size - begin), size = (uint32_t)bytes->size;

	vp_buffer_append(out, bytes->bytes, bytes->size);
	if (field->is_text) {
		vp_buffer_append(out, "", 1);
		size++;
	}
	uint32_t offset_and_size = size << 16 | (offset & 0xffff);
	memcpy(out->bytes + begin + field->offset, &offset_and_size, sizeof(offset_and_size));
}

static void put_tracepoint(const struct vp_ftrace_format *format,
			   const struct vp_script_event *event, size_t begin, struct vp_buffer *out)
{
	vp_vec_each (&format->fields, field) {
		const struct vp_event_value *value = &event->fields.at[field->from].value;
		size_t size = (size_t)field->size * field->count;
		if (field->shape == VP_FTRACE_NUMBER)
			memcpy(out->bytes + begin + field->offset, &value->number, field->size);
		else if (field->shape == VP_FTRACE_ARRAY)
			memcpy(out->bytes + begin + field->offset, value->bytes.bytes,
			       value->bytes.size < size ? value->bytes.size : size);
		else
			put_dynamic(field, &value->bytes, begin, out);
	}
}

void vp_ftrace_put(const struct vp_ftrace_format *format, const struct vp_script_event *event,
		   struct vp_buffer *out)
{
	size_t begin = out->size;
	int32_t tid = event->has_tid ? (int32_t)event->tid : 0;

	char *at = vp_buffer_extend(out, format->size);
	memset(at, 0, format->size);
	memcpy(at, &format->id, sizeof(format->id));
	memcpy(at + 4, &tid, sizeof(tid));
	if (format->own)
		tracedat_events_put_own(format, event, at);
	else
		put_tracepoint(format, event, begin, out);
}
