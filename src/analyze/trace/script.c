/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/common/filter.h"
#include "analyze/common/guest_trace.h"
#include "analyze/trace/script_classes.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/map.h"
#include "base/text.h"
#include "schema/exit_reason.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/vm.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"
#include "timeline/merge.h"

enum { MAX_GUEST_NAMES = 1 << 20, RECENT = 256 };

/* Cache of thread lookups: most events belong to a few threads. Threads are never removed. */
struct recent {
	uint64_t key; /* 0: empty */
	uint32_t index;
};

/* The machine that a range of streams belongs to. */
struct machine {
	const struct vp_vm *vm; /* NULL: the host */
	size_t streams;         /* end of its streams; they start at the previous machine's end */
	struct vp_script_classes classes;
};

struct vp_script {
	struct vp_script_options options;
	struct vp_recording recording;
	vp_vms vms;
	bool *chosen;               /* by index in `vms` */
	VP_VEC(const char *) names; /* by index in `vms`; cleaned */
	vp_sentences notes;
	vp_guest_traces guests;
	VP_VEC(struct machine) machines; /* the host first, then the guests */
	struct vp_intern columns;
	vp_stream_readers streams;
	struct vp_merge merge;
	bool merging, ended;
	struct vp_map thread_of_key;
	struct recent recent[RECENT];
	VP_VEC(struct vp_script_thread) threads;
	struct vp_intern comms;          /* also names of VMs */
	struct vp_map comm_of_guest_tid; /* VM << 32 | tid */
	struct vp_script_event event;
	uint64_t unreadable;
	uint64_t changes; /* of names of threads */
	/* The current event. */
	char reason[VP_EXIT_NAME_SIZE], detail[VP_EXIT_NAME_SIZE], state[4], vm[16], flags[64];
};

/* Members of an event, collected while its fields are read. */
struct reading {
	bool of_vm, of_tid; /* the record is of the selected VM; of the selected thread */
	bool has_flags;
	uint64_t vendor, flags, preempted, vm, detail_kind;
	uint32_t id;                  /* record id */
	size_t reason, detail, state; /* index of the field + 1 */
};

/* Key of a thread: the tid; for idle tasks, whose tid is 0 everywhere, the pCPU. */
static uint64_t script_key_of(uint64_t tid, uint32_t pcpu)
{
	return tid ? tid : 1ULL << 32 | pcpu;
}

/* The thread, added if new. */
static struct vp_script_thread *get_or_add_thread(struct vp_script *script, uint64_t key)
{
	bool inserted;
	uint32_t index =
	    *vp_map_insert(&script->thread_of_key, key, (uint32_t)script->threads.count, &inserted);

	if (inserted)
		vp_vec_push(&script->threads, (struct vp_script_thread){0});
	return &script->threads.at[index];
}

static uint32_t clean_name(struct vp_script *script, const char *text, size_t size)
{
	struct vp_buffer clean = {0};

	vp_text_clean(text, size, &clean);
	uint32_t name = vp_intern_string(&script->comms, vp_buffer_text(&clean));
	vp_buffer_deinit(&clean);
	return name;
}

static const char *keep_clean(struct vp_script *script, const char *text, size_t size)
{
	return vp_intern_text(&script->comms, clean_name(script, text, size));
}

static const char *script_name_of(const struct vp_script *script, const struct vp_vm *vm)
{
	return script->names.at[vm - script->vms.at];
}

static void script_add_vms(struct vp_script *script)
{
	vp_vec_each (&script->vms, vm) {
		vp_vec_push(&script->names, keep_clean(script, vm->name, strlen(vm->name)));
		vp_vec_each (&vm->vcpus, vcpu) {
			if (!vcpu->tid)
				continue;
			struct vp_script_thread *thread = get_or_add_thread(script, vcpu->tid);
			thread->vm = vm;
			thread->vcpu = vcpu->number;
		}
	}
}

static uint64_t script_guest_key(uint64_t vm, uint64_t tid)
{
	return vm << 32 | (uint32_t)tid;
}

static void script_set_comm(struct vp_script *script, struct vp_script_thread *thread,
			    const char *comm)
{
	script->changes++;
	thread->comm = comm;
	thread->comm_size = (uint32_t)strlen(comm);
}

static void update_names(struct vp_script *script, const struct vp_record_header *record)
{
	const struct vp_guest_task *guest = (const void *)record;
	const struct vp_task *task = (const void *)record;
	bool inserted;

	if (record->id == VP_ID_task) {
		const char *comm =
		    keep_clean(script, task->comm, strnlen(task->comm, sizeof(task->comm)));
		script_set_comm(script, get_or_add_thread(script, task->tid), comm);
	}
	/* Limited, because a guest may invent any number of threads. */
	if (record->id == VP_ID_guest_task && script->comm_of_guest_tid.count < MAX_GUEST_NAMES) {
		uint32_t name =
		    clean_name(script, guest->comm, strnlen(guest->comm, sizeof(guest->comm)));
		*vp_map_insert(&script->comm_of_guest_tid,
			       script_guest_key(guest->vm, guest->guest_tid), name, &inserted) =
		    name;
	}
}

struct learning {
	struct vp_script *script;
	uint64_t vm;
};

static void update_guest_name(void *context, uint32_t tid, struct vp_slice comm)
{
	const struct learning *learning = context;
	struct vp_script *script = learning->script;
	bool inserted;

	if (!tid || script->comm_of_guest_tid.count >= MAX_GUEST_NAMES)
		return;
	uint32_t name = clean_name(script, comm.bytes, strnlen(comm.bytes, comm.size));
	*vp_map_insert(&script->comm_of_guest_tid, script_guest_key(learning->vm, tid), name,
		       &inserted) = name;
}

static void script_learn(struct vp_script *script, const struct machine *machine,
			 const struct vp_record_header *record)
{
	if (machine->vm) {
		struct learning learning = {script, vp_vm_id(machine->vm)};
		vp_guest_trace_names(&machine->classes.defined, record, update_guest_name,
				     &learning);
	} else if (record->id == VP_ID_task || record->id == VP_ID_guest_task) {
		update_names(script, record);
	}
}

static const struct vp_script_thread *get_or_add_idle(struct vp_script *script, uint64_t key)
{
	VP_AUTO_FREE char *comm = vp_format("swapper/%" PRIu32, (uint32_t)key);
	struct vp_script_thread *thread = get_or_add_thread(script, key);

	script_set_comm(script, thread, keep_clean(script, comm, strlen(comm)));
	return thread;
}

/* The known properties of a thread; never NULL. */
static const struct vp_script_thread *script_thread_of(struct vp_script *script, uint64_t tid)
{
	static const struct vp_script_thread unknown = {0};
	uint64_t key = script_key_of(tid, script->event.pcpu);
	struct recent *recent = &script->recent[key % RECENT];

	if (recent->key == key)
		return &script->threads.at[recent->index];
	const uint32_t *index = vp_map_find(&script->thread_of_key, key);
	if (!index)
		return tid ? &unknown : get_or_add_idle(script, key);
	*recent = (struct recent){key, *index};
	return &script->threads.at[*index];
}

/* The idle task of each guest CPU has tid 0. */
static const char *guest_comm_of(const struct vp_script *script, uint64_t vm, uint64_t tid)
{
	const uint32_t *name = vp_map_find(&script->comm_of_guest_tid, script_guest_key(vm, tid));

	if (!tid)
		return "swapper";
	return name ? vp_intern_text(&script->comms, *name) : NULL;
}

static bool is_asked_for(const struct vp_script *script, const struct vp_vm *vm)
{
	return script->chosen[vm - script->vms.at];
}

static struct vp_script_field *script_add_field(struct vp_script *script,
						const struct vp_script_column *column,
						const struct vp_event_field *type,
						const struct vp_event_value *value)
{
	struct vp_script_field *field = vp_vec_push_slot(&script->event.fields);

	field->name = column->name;
	field->name_size = column->name_size;
	field->column = column->number;
	field->type = type;
	field->value = *value;
	field->text = field->words = NULL;
	return field;
}

static void script_set_text(struct vp_script_field *field, const char *text)
{
	field->text = text;
	field->text_size = text ? strlen(text) : 0;
}

static const struct vp_script_thread *see_tid(struct vp_script *script, uint64_t tid,
					      struct reading *reading)
{
	const struct vp_script_thread *thread = script_thread_of(script, tid);

	reading->of_tid |= tid == script->options.tid;
	reading->of_vm |= thread->vm && is_asked_for(script, thread->vm);
	return thread;
}

static void take_guest_tid(struct vp_script *script, uint64_t tid, struct reading *reading)
{
	script->event.has_tid = true;
	script->event.tid = (uint32_t)tid;
	script->event.comm = guest_comm_of(script, reading->vm, tid);
	reading->of_tid |= script->options.vm && tid == script->options.tid;
}

static void take_tid(struct vp_script *script, uint64_t tid, struct reading *reading)
{
	struct vp_script_event *event = &script->event;

	if (event->of_guest) {
		take_guest_tid(script, tid, reading);
		return;
	}
	const struct vp_script_thread *thread = see_tid(script, tid, reading);

	event->has_tid = true;
	event->tid = (uint32_t)tid;
	event->comm = thread->comm;
	if (event->vm || !thread->vm)
		return;
	event->vm = script_name_of(script, thread->vm);
	event->vcpu = thread->vcpu;
	event->has_vcpu = true;
}

static void take_vm(struct vp_script *script, uint64_t id, struct reading *reading)
{
	const struct vp_vm *vm = vp_vms_find(&script->vms, (uint32_t)id);

	if (!vm)
		snprintf(script->vm, sizeof(script->vm), "%" PRIu32, (uint32_t)id);
	script->event.vm = vm ? script_name_of(script, vm) : script->vm;
	reading->vm = id;
	reading->of_vm |= vm && script->options.vm && is_asked_for(script, vm);
}

/* Adds the name of the thread whose tid is in the previous field; NULL: unknown. */
static void script_add_comm(struct vp_script *script, const struct vp_script_part *part,
			    const struct vp_event_value *value, const char *comm, size_t size)
{
	struct vp_script_field *field =
	    script_add_field(script, &part->comm_column, part->field, value);

	field->text = comm ? comm : "-";
	field->text_size = comm ? size : 1;
	field->words = comm ? NULL : VP_SCRIPT_NO_COMM;
}

static void script_add_host_comm(struct vp_script *script, const struct vp_script_part *part,
				 const struct vp_event_value *value,
				 const struct vp_script_thread *thread)
{
	script_add_comm(script, part, value, thread->comm, thread->comm_size);
}

static void script_add_guest_comm(struct vp_script *script, const struct vp_script_part *part,
				  const struct vp_event_value *value, const char *comm)
{
	script_add_comm(script, part, value, comm, comm ? strlen(comm) : 0);
}

/* Names of flag bits; NULL: the bit has no name. */
struct flag_names {
	const char *names[10];
};

/* Names of enum vp_flag, a vcpu_span's flags, an interval's and enum vp_guest_switch_flag. */
static const struct flag_names usual_flags = {{"reason", "cr3", "cpl", "blocked", "late", "hidden",
					       "ended", "memory", "stack", "interrupt"}},
			       span_flags = {{"reason", "moved", "waited", "idle"}},
			       interval_flags = {{"partial", "last"}},
			       switch_flags = {{"first", "middle", "lost", "jumped", "unknown"}};

/* Names of the bits of the record's `flags`. */
static const struct flag_names *flag_names_of(uint32_t id)
{
	return id == VP_ID_vcpu_span  ? &span_flags
	       : id == VP_ID_interval ? &interval_flags
				      : &usual_flags;
}

/* NULL: some bits have no name. */
static const char *flags_text(struct vp_script *script, const struct flag_names *of, uint64_t flags)
{
	const char *const *names = of->names;
	size_t size = 0, count = 0;

	while (count < VP_ARRAY_SIZE(of->names) && names[count])
		count++;
	if (flags >> count)
		return NULL;
	snprintf(script->flags, sizeof(script->flags), "-");
	for (size_t i = 0; i < count; i++)
		if (flags >> i & 1)
			size += (size_t)snprintf(script->flags + size, sizeof(script->flags) - size,
						 "%s%s", size ? "," : "", names[i]);
	return script->flags;
}

static void script_take_value(struct vp_script *script, const struct vp_script_part *part,
			      const struct vp_event_value *value, struct reading *reading)
{
	struct vp_script_event *event = &script->event;

	switch (part->role) {
	case VP_SCRIPT_HIDDEN:
		return;
	case VP_SCRIPT_TID:
		take_tid(script, value->number, reading);
		return;
	case VP_SCRIPT_VM:
		if (value->number != UINT32_MAX)
			take_vm(script, value->number, reading);
		return;
	case VP_SCRIPT_VCPU:
		event->has_vcpu = value->number != VP_VCPU_UNKNOWN;
		event->vcpu = (uint32_t)value->number;
		return;
	case VP_SCRIPT_PCPU:
		event->pcpu = (uint32_t)value->number;
		return;
	case VP_SCRIPT_VENDOR:
		reading->vendor = value->number;
		return;
	case VP_SCRIPT_DETAIL_KIND:
		reading->detail_kind = value->number;
		return;
	case VP_SCRIPT_PREEMPTED:
		reading->preempted = value->number;
		return;
	case VP_SCRIPT_PREV_TID:
		take_tid(script, value->number, reading);
		break;
	case VP_SCRIPT_FLAGS:
		reading->flags = value->number;
		reading->has_flags = true;
		break;
	default:
		break;
	}
	struct vp_script_field *field = script_add_field(script, &part->column, part->field, value);
	switch (part->role) {
	case VP_SCRIPT_SWITCH:
		script_set_text(field, flags_text(script, &switch_flags, value->number));
		break;
	case VP_SCRIPT_FLAGS:
		field->words = flags_text(script, flag_names_of(reading->id), value->number);
		break;
	case VP_SCRIPT_OTHER_TID:
		script_add_host_comm(script, part, value, see_tid(script, value->number, reading));
		break;
	case VP_SCRIPT_GUEST_TID:
		script_add_guest_comm(script, part, value,
				      guest_comm_of(script, reading->vm, value->number));
		break;
	case VP_SCRIPT_REASON:
		reading->reason = event->fields.count;
		break;
	case VP_SCRIPT_DETAIL:
		reading->detail = event->fields.count;
		break;
	case VP_SCRIPT_STATE:
		reading->state = event->fields.count;
		break;
	default:
		break;
	}
}

static const char *reason_text(struct vp_script *script, const struct vp_script_field *field,
			       const struct reading *reading)
{
	bool reported = reading->has_flags ? reading->flags & VP_HAS_EXIT_REASON
					   : reading->vendor != VP_VENDOR_UNKNOWN;

	if (!reported)
		return "unknown";
	return vp_exit_reason_name((uint32_t)reading->vendor, (uint32_t)field->value.number,
				   script->reason);
}

/* Omits the detail of exits that have none. */
static void script_name_detail(struct vp_script *script, const struct reading *reading)
{
	struct vp_script_field *field = &script->event.fields.at[reading->detail - 1];
	size_t behind = script->event.fields.count - reading->detail;

	script_set_text(field, vp_exit_detail_text((uint32_t)reading->detail_kind,
						   (uint32_t)field->value.number, script->detail));
	if (field->text)
		return;
	memmove(field, field + 1, behind * sizeof(*field));
	script->event.fields.count--;
}

/* The letters of ps and of the kernel's sched_switch tracepoint. */
char vp_script_state_letter(uint64_t state, bool preempted)
{
	static const struct {
		uint64_t bits;
		char letter;
	} letters[] = {{0x402, 'I'}, {0x1, 'S'},  {0x2, 'D'}, {0x4, 'T'},
		       {0x8, 't'},   {0x40, 'P'}, {0x80, 'X'}};
	char letter = 'R';

	if (state == 1 && !preempted) /* most threads that leave a pCPU */
		return 'S';
	for (size_t i = VP_ARRAY_SIZE(letters); !preempted && i-- > 0;)
		if ((state & letters[i].bits) == letters[i].bits)
			letter = letters[i].letter;
	return letter;
}

static const char *state_text(struct vp_script *script, uint64_t state, bool preempted)
{
	script->state[0] = vp_script_state_letter(state, preempted);
	script->state[1] = preempted ? '+' : 0;
	return script->state;
}

static void name_values(struct vp_script *script, const struct reading *reading)
{
	struct vp_script_field *fields = script->event.fields.at;

	if (reading->reason)
		script_set_text(&fields[reading->reason - 1],
				reason_text(script, &fields[reading->reason - 1], reading));
	if (reading->state)
		script_set_text(&fields[reading->state - 1],
				state_text(script, fields[reading->state - 1].value.number,
					   reading->preempted));
	if (reading->detail)
		script_name_detail(script, reading);
}

static struct vp_cursor fields_of(const struct vp_record_header *record)
{
	if (record->id >= VP_ID_DEFINED)
		return vp_event_fields((const void *)record);
	return vp_cursor_of(record + 1, vp_record_size(record->id) - sizeof(*record));
}

static struct vp_event_value script_value_at(const char *fields, const struct vp_script_part *part)
{
	const struct vp_event_field *type = part->field;
	bool is_integer = type->shape == VP_EVENT_INTEGER;
	size_t size = is_integer ? type->size : (size_t)type->count * type->size;

	return (struct vp_event_value){is_integer ? vp_script_number(part, fields) : 0,
				       {fields + part->offset, size}};
}

/* Values of a class whose fields all have a fixed size. */
static bool script_read_fixed(struct vp_script *script, const struct vp_script_class *class,
			      const struct vp_cursor *fields, struct reading *reading)
{
	if (vp_cursor_left(fields) < class->event->fixed_size)
		return false;
	vp_vec_each (&class->parts, part) {
		const struct vp_event_value value = script_value_at(fields->next, part);
		script_take_value(script, part, &value, reading);
	}
	return true;
}

static bool script_read_varying(struct vp_script *script, const struct vp_script_class *class,
				struct vp_cursor *fields, struct reading *reading)
{
	vp_vec_each (&class->parts, part) {
		struct vp_event_value value;
		if (!vp_event_next_value(fields, part->field, &value))
			return false;
		script_take_value(script, part, &value, reading);
	}
	return true;
}

/* False: the record does not match its class. */
static bool script_read_fields(struct vp_script *script, const struct vp_script_class *class,
			       const struct vp_record_header *record, struct reading *reading)
{
	struct vp_cursor fields = fields_of(record);

	reading->id = record->id;
	script->event.fields.count = 0;
	if (!(class->event->varies ? script_read_varying(script, class, &fields, reading)
				   : script_read_fixed(script, class, &fields, reading)))
		return false;
	/* For an interval of a pCPU, the field has the pCPU's number. */
	script->event.has_vcpu &= script->event.vm != NULL;
	name_values(script, reading);
	return true;
}

static bool script_is_of_pcpus(const struct vp_script_options *options, uint32_t pcpu)
{
	if (!options->n_pcpus)
		return true;
	for (size_t i = 0; i < options->n_pcpus; i++)
		if ((uint32_t)options->pcpus[i] == pcpu)
			return true;
	return false;
}

/* Whether the record is selected, as far as that is known without the fields. */
static bool script_is_chosen(const struct vp_script *script, const struct vp_script_class *class,
			     const struct vp_merge_head *head, uint32_t pcpu)
{
	const struct vp_script_options *options = &script->options;

	/* Records from before the start only restore state, unless they were imported, or are guest
	 * events, which may precede the host's. */
	if (!class->chosen || head->time < options->from || head->time > options->to ||
	    (head->time < script->recording.start && !script->recording.imported))
		return false;
	/* Hypervisor events have the pCPU in their fields. */
	return class->of_hypervisor || script_is_of_pcpus(options, pcpu);
}

static const struct machine *script_machine_of(const struct vp_script *script, uint32_t stream)
{
	const struct machine *machine = script->machines.at;

	while (stream >= machine->streams)
		machine++;
	return machine;
}

/* Sets the members of the event that do not need its fields. */
static void script_begin_event(struct vp_script *script, const struct machine *machine,
			       const struct vp_merge_head *head, struct reading *reading)
{
	uint32_t cpu = vp_stream_cpu(script->streams.at[head->stream]);
	struct vp_script_event *event = &script->event;

	event->time = head->time;
	event->pcpu = cpu;
	event->of_guest = event->of_hypervisor = event->has_tid = event->has_vcpu = false;
	event->comm = event->vm = NULL;
	if (!machine->vm)
		return;
	event->guest = (uint32_t)(machine->vm - script->vms.at);
	event->pcpu = VP_NO_PCPU; /* unknown to the guest */
	event->of_guest = event->has_vcpu = true;
	event->vcpu = cpu;
	event->vm = script_name_of(script, machine->vm);
	reading->vm = vp_vm_id(machine->vm);
	reading->of_vm = is_asked_for(script, machine->vm);
}

static bool script_take(struct vp_script *script, const struct machine *machine,
			const struct vp_merge_head *head)
{
	const struct vp_script_options *options = &script->options;
	struct reading reading = {0};

	script_begin_event(script, machine, head, &reading);
	const struct vp_script_class *class =
	    vp_script_classes_find(&machine->classes, head->record->id);
	if (!class || !script_is_chosen(script, class, head, script->event.pcpu)) {
		script->unreadable += !class;
		return false;
	}
	script->event.name = class->name;
	script->event.name_size = class->name_size;
	script->event.of_hypervisor = class->of_hypervisor;
	if (!script_read_fields(script, class, head->record, &reading)) {
		script->unreadable++;
		return false;
	}
	if (class->of_hypervisor && !script_is_of_pcpus(options, script->event.pcpu))
		return false;
	return (!options->vm || reading.of_vm) && (!options->has_tid || reading.of_tid);
}

static void script_end(struct vp_script *script)
{
	struct vp_health health = {.classes = VP_STREAMS_ALL};

	vp_health_add(&script->streams, &health);
	vp_health_sentences(&health, &script->recording, &script->notes);
	vp_health_deinit(&health);
	if (script->unreadable)
		vp_vec_push(
		    &script->notes,
		    vp_format(
			"%" PRIu64
			" records do not match the recording's event classes and were skipped",
			script->unreadable));
	script->ended = true;
}

const struct vp_script_event *vp_script_next(struct vp_script *script)
{
	const struct vp_merge_head *head;

	while (!script->ended && (head = vp_merge_next(&script->merge))) {
		const struct machine *machine = script_machine_of(script, head->stream);
		script_learn(script, machine, head->record);
		if (script_take(script, machine, head))
			return &script->event;
	}
	if (!script->ended)
		script_end(script);
	return NULL;
}

/* The class of an event that can be returned unread, or NULL. */
static const struct vp_script_class *plain_class(const struct machine *machine,
						 const struct vp_record_header *record)
{
	const struct vp_script_class *class =
	    machine->vm ? NULL : vp_script_classes_find(&machine->classes, record->id);

	return class && class->is_plain ? class : NULL;
}

/* False: not selected, or too short. */
static bool script_take_plain(struct vp_script *script, const struct vp_script_class *class,
			      const struct vp_merge_head *head, struct vp_script_plain *ret)
{
	const struct vp_record_header *record = head->record;
	uint32_t pcpu = vp_stream_cpu(script->streams.at[head->stream]);
	bool is_defined = record->id >= VP_ID_DEFINED;

	if (!script_is_chosen(script, class, head, pcpu))
		return false;
	if (is_defined && ((const struct vp_defined_record *)record)->size < class->whole_size) {
		script->unreadable++;
		return false;
	}
	ret->event = NULL;
	ret->changes = script->changes;
	ret->id = record->id;
	ret->pcpu = pcpu;
	ret->time = head->time;
	ret->fields = is_defined ? ((const struct vp_defined_record *)record)->fields
				 : (const char *)(record + 1);
	return true;
}

bool vp_script_next_plain(struct vp_script *script, struct vp_script_plain *ret)
{
	const struct vp_merge_head *head;

	while (!script->ended && (head = vp_merge_next(&script->merge))) {
		const struct machine *machine = script_machine_of(script, head->stream);
		const struct vp_script_class *plain = plain_class(machine, head->record);
		if (plain && script_take_plain(script, plain, head, ret))
			return true;
		if (plain)
			continue;
		script_learn(script, machine, head->record);
		if (!script_take(script, machine, head))
			continue;
		ret->event = &script->event;
		ret->changes = script->changes;
		return true;
	}
	if (!script->ended)
		script_end(script);
	return false;
}

const struct vp_script_thread *vp_script_thread(struct vp_script *script, uint32_t tid,
						uint32_t pcpu)
{
	script->event.pcpu = pcpu;
	return script_thread_of(script, tid);
}

const struct vp_script_event *vp_script_read_plain(struct vp_script *script)
{
	script_take(script, script->machines.at, &script->merge.heads[script->merge.winner]);
	return &script->event;
}

const struct vp_script_classes *vp_script_host_classes(const struct vp_script *script)
{
	return &script->machines.at[0].classes;
}

const char *vp_script_vm_name(const struct vp_script *script, const struct vp_vm *vm)
{
	return script_name_of(script, vm);
}

/* Adds the machine's streams. */
static struct vp_error *script_add_machine(struct vp_script *script, const char *path,
					   const struct vp_vm *vm, vp_event_classes *defined)
{
	vp_stream_readers streams = {0};
	struct machine machine = {.vm = vm};

	VP_TRY(vp_script_classes_init(&machine.classes, defined, &script->columns));
	struct vp_error *error = vp_trace_open(path, VP_STREAMS_ALL, &streams);
	vp_vec_each (&streams, stream)
		vp_vec_push(&script->streams, *stream);
	vp_vec_deinit(&streams);
	machine.streams = script->streams.count;
	vp_vec_push(&script->machines, machine);
	return error;
}

static struct vp_error *add_machines(struct vp_script *script, const char *directory)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	vp_event_classes defined = {0};

	VP_TRY(vp_trace_classes(host, &defined));
	VP_TRY(script_add_machine(script, host, NULL, &defined));
	VP_TRY(vp_guest_traces_find(directory, &script->vms, &script->guests));
	vp_vec_each (&script->guests, guest)
		VP_TRY(script_add_machine(script, guest->path, guest->vm, &guest->classes));
	return NULL;
}

static struct vp_error *script_choose_events(struct vp_script *script)
{
	const struct vp_script_options *options = &script->options;
	size_t count = script->machines.count;
	struct vp_script_classes **all =
	    vp_realloc_array(NULL, count, sizeof(struct vp_script_classes *));

	for (size_t i = 0; i < count; i++)
		all[i] = &script->machines.at[i].classes;
	struct vp_error *error =
	    vp_script_classes_choose(all, count, options->events, options->n_events);
	free(all);
	return error;
}

static struct vp_error *script_open_all(const char *directory, struct vp_script *script)
{
	VP_TRY(vp_recording_open(directory, &script->recording, &script->vms, &script->notes));
	VP_TRY(vp_filter_choose_vms(&script->vms, script->options.vm, &script->chosen));
	VP_TRY(add_machines(script, directory));
	VP_TRY(script_choose_events(script));
	script_add_vms(script);
	vp_merge_init(&script->merge, &script->streams, NULL);
	script->merging = true;
	return NULL;
}

struct vp_error *vp_script_open(const char *directory, const struct vp_script_options *options,
				struct vp_script **ret)
{
	struct vp_script *script = vp_alloc(sizeof(*script));

	script->options = *options;
	struct vp_error *error = script_open_all(directory, script);
	if (error)
		vp_script_close(script);
	else
		*ret = script;
	return error;
}

void vp_script_close(struct vp_script *script)
{
	if (script->merging)
		vp_merge_deinit(&script->merge);
	vp_trace_close(&script->streams);
	vp_vec_each (&script->machines, machine)
		vp_script_classes_deinit(&machine->classes);
	vp_vec_deinit(&script->machines);
	vp_guest_traces_deinit(&script->guests);
	vp_intern_deinit(&script->columns);
	vp_vec_deinit(&script->event.fields);
	vp_vec_deinit(&script->names);
	vp_vec_deinit(&script->threads);
	vp_map_deinit(&script->thread_of_key);
	vp_map_deinit(&script->comm_of_guest_tid);
	vp_intern_deinit(&script->comms);
	vp_recording_deinit(&script->recording);
	vp_vms_deinit(&script->vms);
	free(script->chosen);
	vp_vec_each (&script->notes, note)
		free(*note);
	vp_vec_deinit(&script->notes);
	free(script);
}

const struct vp_intern *vp_script_columns(const struct vp_script *script)
{
	return &script->columns;
}

const vp_sentences *vp_script_notes(const struct vp_script *script)
{
	return &script->notes;
}
